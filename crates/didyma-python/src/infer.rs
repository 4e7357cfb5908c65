//! `infer` and `resume`: whole runs.

use crate::arrays::vector;
use crate::caller::Caller;
use crate::choices::Choices;
use crate::errors::{Kind, python};
use crate::executor::Pool;
use crate::function::Function;
use crate::prior;
use crate::result::{Folder, Result as Found};
use crate::tasks::{Task, TaskSimulator};
use didyma::config::Config;
use didyma::parallel;
use didyma::prior::Prior;
use didyma::problem::{Problem, Source};
use didyma::rounds::Progress;
use didyma::run::{Manifest, RunDir, carry_on, progress};
use didyma::tasks::Task as Known;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::path::PathBuf;

/// How a user's function is run, which does not change what it gives.
pub struct Running<'a, 'py> {
    pub executor: Option<&'a Bound<'py, PyAny>>,
    pub vectorized: Option<bool>,
    pub batch_size: Option<usize>,
    pub progress: bool,
}

impl Running<'_, '_> {
    /// Who answers the engine; with a function, after first calls of it.
    pub fn caller(
        &self,
        py: Python<'_>,
        simulator: Option<&Bound<'_, PyAny>>,
        prior: &Prior,
        x_dim: usize,
    ) -> PyResult<Caller> {
        let function = match simulator {
            Some(simulator) => {
                let mut pool = self.executor.map(Pool::new).transpose()?;
                let (vectorized, batch) = (self.vectorized, self.batch_size);
                let function =
                    Function::probe(simulator, prior, x_dim, vectorized, batch, pool.as_mut())?;
                Some((function, pool))
            }
            None if self.executor.is_some() => {
                return Err(Kind::Executor.error(
                    "executor is for Python functions, and this simulator runs on all cores by itself: leave it out",
                ));
            }
            None => None,
        };
        let progress = py.import("didyma._progress")?.call_method1("make", (self.progress,))?;
        Ok(Caller { function, progress: progress.unbind() })
    }
}

/// Threads that were asked for, or all cores.
pub fn threads(asked: Option<usize>) -> PyResult<usize> {
    let threads = asked.unwrap_or_else(parallel::cores);
    parallel::check_threads(threads).map_err(python)?;
    Ok(threads)
}

/// The question of a run.
struct Question<'py> {
    manifest: Manifest,
    /// The user's function, if it is one.
    function: Option<Bound<'py, PyAny>>,
}

/// What a call says of the problem itself.
struct Stated<'a, 'py> {
    simulator: &'a Bound<'py, PyAny>,
    prior: Option<&'a Bound<'py, PyAny>>,
    x_o: Option<&'a Bound<'py, PyAny>>,
    truth: Option<&'a Bound<'py, PyAny>>,
    name: Option<String>,
    summaries: Option<Vec<String>>,
}

impl<'py> Stated<'_, 'py> {
    fn task(&self) -> Option<Task> {
        let simulator = self.simulator.cast::<TaskSimulator>().map(|s| s.get().task.clone());
        simulator.or_else(|_| self.simulator.cast::<Task>().map(|task| task.get().clone())).ok()
    }

    fn question(&self, choices: &Choices<'_, '_>) -> PyResult<Question<'py>> {
        let Some(task) = self.task() else { return self.of_function(choices.config(None)?) };
        let config = choices.config(task.file.as_ref().map(|file| &file.1))?;
        let known = &task.known;
        let prior = self.prior.map_or_else(|| Ok(known.prior.clone()), prior::of)?;
        let x_o = self.x_o.map(|x| vector("x_o", x)).transpose()?;
        let observation = x_o.unwrap_or_else(|| known.observation.clone());
        let whole = prior == known.prior && observation == known.observation;
        let plain = self.truth.is_none() && self.name.is_none() && self.summaries.is_none();
        let manifest = match &task.file {
            None if whole && plain => Manifest::of_task(&known.name, config),
            Some(file) if whole && plain => Manifest::of_problem(file.0.clone(), config),
            file => {
                let source = match file {
                    Some(file) => file.0.source.clone(),
                    None => Source::Task(known.name.clone()),
                };
                let summaries = self.summaries.clone().unwrap_or_else(|| known.summaries.clone());
                let name = self.name.clone().unwrap_or_else(|| known.name.clone());
                let problem = self.problem(name, prior, observation, summaries, source)?;
                Manifest::of_problem(problem, config)
            }
        };
        Ok(Question { manifest, function: None })
    }

    fn of_function(&self, config: Config) -> PyResult<Question<'py>> {
        let missing = |what: &str, give: &str| {
            Kind::Input.error(format!("{what} is missing: a simulator of your own needs {give}"))
        };
        let prior = self.prior.ok_or_else(|| missing("prior", "one, as didyma.Uniform"))?;
        let x_o = self.x_o.ok_or_else(|| missing("x_o", "an observation, a vector of numbers"))?;
        let (prior, observation) = (prior::of(prior)?, observation(x_o)?);
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                self.simulator.getattr("__name__").and_then(|n| n.extract()).unwrap_or_default()
            }
        };
        // A lambda's name says nothing.
        let name = if name.is_empty() || name.starts_with('<') { "model".to_owned() } else { name };
        let default = || (1..=observation.len()).map(|i| format!("x{i}")).collect();
        let summaries = self.summaries.clone().unwrap_or_else(default);
        let problem = self.problem(name, prior, observation, summaries, Source::Function)?;
        let manifest = Manifest::of_problem(problem, config);
        Ok(Question { manifest, function: Some(self.simulator.clone()) })
    }

    fn problem(
        &self,
        name: String,
        prior: Prior,
        observation: Vec<f64>,
        summaries: Vec<String>,
        source: Source,
    ) -> PyResult<Problem> {
        let truth = truth(self.truth, &prior)?;
        if summaries.len() != observation.len() {
            let (found, expected) = (summaries.len(), observation.len());
            return Err(Kind::Shape.error(format!(
                "summaries has {found} names, but x_o has {expected} numbers: give one for each"
            )));
        }
        let labels = prior.names().map(str::to_owned).collect();
        let about = String::new();
        Ok(Problem { name, about, prior, labels, summaries, observation, truth, source })
    }
}

/// x_o: a vector of finite numbers.
pub fn observation(x_o: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let observation = vector("x_o", x_o)?;
    match observation.iter().position(|x| !(*x as f32).is_finite()) {
        Some(i) => Err(Kind::NotFinite.error(format!(
            "x_o holds {} at place {i}: an observation needs finite numbers; leave out or replace what was not observed",
            observation[i]
        ))),
        None if observation.is_empty() => {
            Err(Kind::Shape.error("x_o is empty: give the observed numbers"))
        }
        None => Ok(observation),
    }
}

/// The true parameters, if they are known.
pub fn truth(truth: Option<&Bound<'_, PyAny>>, prior: &Prior) -> PyResult<Option<Vec<f64>>> {
    let Some(truth) = truth else { return Ok(None) };
    let truth = vector("truth", truth)?;
    prior.expect_inside(&truth).map_err(python)?;
    Ok(Some(truth))
}

/// Infers the posterior of a simulator's parameters at an observation.
///
/// simulator: a function from theta to x: of one row, (D,) -> (L,), or of many, (n, D) -> (n, L); which of them it is, is
///     found out by calling it (or said by `vectorized`). If it has a parameter `rng` it is given a numpy Generator, or by
///     `seed` a number, and then the run can be repeated to the bit. Or a task of `didyma.tasks`.
/// prior: Uniform, Normal, LogNormal or Independent.
/// x_o: the observation, L numbers.
/// rounds, simulations: rounds of simulating and training, and simulations of each (10 and 1000).
/// method: "tsnpe" (default), "tgrr", "grr", "ru", "atomic", "npe", ...; see `didyma.methods()`.
/// seed: of all random numbers (1).
/// settings: any other setting, as {"train.batch": 200}; see `didyma.settings()`.
/// out: directory to keep the run in, safe at every moment: `didyma.resume` goes on. Without it, the result can be saved.
/// executor: a `concurrent.futures.Executor` to simulate on, or a function that makes one.
/// batch_size: rows of a call of a simulator of many rows (100).
/// truth, name, summaries: true parameters, name of the problem, names of the numbers of x, for plots and reports.
/// threads: of training (all cores). The result does not depend on it.
/// progress: whether to show it.
#[pyfunction]
#[pyo3(signature = (
    simulator, prior=None, x_o=None, *, rounds=None, simulations=None, method=None, profile=None, seed=None, settings=None,
    out=None, executor=None, vectorized=None, batch_size=None, truth=None, name=None, summaries=None, threads=None,
    progress=true
))]
#[allow(clippy::too_many_arguments)]
pub fn infer(
    py: Python<'_>,
    simulator: &Bound<'_, PyAny>,
    prior: Option<&Bound<'_, PyAny>>,
    x_o: Option<&Bound<'_, PyAny>>,
    rounds: Option<u32>,
    simulations: Option<usize>,
    method: Option<&str>,
    profile: Option<&str>,
    seed: Option<u64>,
    settings: Option<&Bound<'_, PyMapping>>,
    out: Option<PathBuf>,
    executor: Option<&Bound<'_, PyAny>>,
    vectorized: Option<bool>,
    batch_size: Option<usize>,
    truth: Option<&Bound<'_, PyAny>>,
    name: Option<String>,
    summaries: Option<Vec<String>>,
    threads: Option<usize>,
    progress: bool,
) -> PyResult<Found> {
    let choices = Choices { method, profile, rounds, simulations, seed, settings };
    let stated = Stated { simulator, prior, x_o, truth, name, summaries };
    let Question { manifest, function } = stated.question(&choices)?;
    let threads = self::threads(threads)?;
    let task = manifest.problem().map_err(python)?;
    let running = Running { executor, vectorized, batch_size, progress };
    let x_dim = task.observation.len();
    let mut caller = running.caller(py, function.as_ref(), &task.prior, x_dim)?;
    let folder = Folder::new(out)?;
    let run = RunDir::create(folder.path(), &manifest.to_json().to_string()).map_err(python)?;
    carried(py, &mut caller, run, task, Progress::default(), folder, threads)
}

/// Goes on with a run that was stopped, killed, or ended by an error, from where it was.
///
/// directory: the `out` of the run.
/// simulator: the function, if it is a run of one.
/// retry_failed: whether failed simulations of the round under way are made again.
#[pyfunction]
#[pyo3(signature = (
    directory, simulator=None, *, executor=None, vectorized=None, batch_size=None, retry_failed=false, threads=None,
    progress=true
))]
#[allow(clippy::too_many_arguments)]
pub fn resume(
    py: Python<'_>,
    directory: PathBuf,
    simulator: Option<&Bound<'_, PyAny>>,
    executor: Option<&Bound<'_, PyAny>>,
    vectorized: Option<bool>,
    batch_size: Option<usize>,
    retry_failed: bool,
    threads: Option<usize>,
    progress: bool,
) -> PyResult<Found> {
    let threads = self::threads(threads)?;
    let mut run = RunDir::open(&directory).map_err(python)?;
    let manifest = Manifest::of(&run).map_err(python)?;
    let of_function = manifest.problem.as_ref().is_some_and(|p| p.source == Source::Function);
    let finished = run.rounds().map_err(python)?.len() as u32;
    if simulator.is_some() != of_function && finished < manifest.config.rounds {
        return Err(Kind::Input.error(match of_function {
            true => "simulator is missing: the run is of a Python function, which only you have",
            false => "simulator was given, but the run knows its own: leave it out",
        }));
    }
    if retry_failed {
        run.forget_failures(finished + 1).map_err(python)?;
    }
    let task = manifest.problem().map_err(python)?;
    let simulator = simulator.filter(|_| of_function && finished < manifest.config.rounds);
    let running = Running { executor, vectorized, batch_size, progress };
    let mut caller = running.caller(py, simulator, &task.prior, task.observation.len())?;
    let so_far = self::progress(&run).map_err(python)?;
    carried(py, &mut caller, run, task, so_far, Folder::kept(directory), threads)
}

/// Carries a run on to its end.
fn carried(
    py: Python<'_>,
    caller: &mut Caller,
    run: RunDir,
    task: Known,
    progress: Progress,
    folder: Folder,
    threads: usize,
) -> PyResult<Found> {
    let rounds = Manifest::of(&run).map_err(python)?.config.rounds;
    let dims = (task.prior.dim(), task.observation.len());
    let (asks, kept) = (caller.function.is_some(), folder.is_kept());
    let path = folder.path().to_owned();
    let words = if asks { ", simulator" } else { "" };
    let go_on = format!("everything so far is saved; go on with didyma.resume({path:?}{words})");
    let done = caller.answer(py, &format!("stopped; {go_on}"), move |link| {
        let task = match asks {
            true => Known { simulator: Box::new(link.simulator(dims)), ..task },
            false => task,
        };
        let carried = carry_on(run, &task, progress, threads, &mut link.observer(rounds))?;
        if carried.finished && kept {
            // A run is not lost because a page about it cannot be written.
            let _ = didyma::report::write_page(&path, threads);
        }
        Ok(carried)
    });
    match done {
        Ok(carried) => Found::new(py, folder, carried.posterior, threads),
        Err(error) => {
            folder.keep();
            noted(py, &error, &go_on);
            Err(error)
        }
    }
}

/// Adds a line to an exception, where Python can (3.11).
fn noted(py: Python<'_>, error: &PyErr, text: &str) {
    if error.is_instance_of::<pyo3::exceptions::PyException>(py) {
        let _ = error.value(py).call_method1("add_note", (text,));
    }
}
