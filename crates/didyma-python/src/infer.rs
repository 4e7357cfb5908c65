//! `infer` and `resume`: whole runs.

use crate::arrays::whole;
use crate::caller::Caller;
use crate::choices::Choices;
use crate::errors::{Kind, python};
use crate::executor::Pool;
use crate::folder::Folder;
use crate::function::Function;
use crate::question::{Question, Stated};
use crate::result::Result as Found;
use didyma::parallel;
use didyma::prior::Prior;
use didyma::problem::Source;
use didyma::rounds::Progress;
use didyma::run::{Manifest, RunDir, carry_on, progress as run_progress};
use didyma::tasks::Task as Known;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::path::{Path, PathBuf};

/// How a user's function is run, which does not change what it gives.
pub struct Running<'a, 'py> {
    pub executor: Option<&'a Bound<'py, PyAny>>,
    pub vectorized: Option<bool>,
    pub batch_size: Option<&'a Bound<'py, PyAny>>,
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
                let (vectorized, batch) = (self.vectorized, whole("batch_size", self.batch_size)?);
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
pub fn threads(asked: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let threads = whole("threads", asked)?.unwrap_or_else(parallel::cores);
    parallel::check_threads(threads).map_err(python)?;
    Ok(threads)
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
/// resume: whether to go on with the same run if `out` holds it already, rather than to refuse.
/// executor: a `concurrent.futures.Executor` to simulate on, or a function that makes one.
/// batch_size: rows of a call of a simulator of many rows (100). They share one `rng`, so that another size gives other noise.
/// truth, name, summaries: true parameters, name of the problem, names of the numbers of x, for plots and reports.
/// threads: of training (all cores). The result does not depend on it.
/// progress: whether to show it.
#[pyfunction]
#[pyo3(signature = (
    simulator, prior=None, x_o=None, *, rounds=None, simulations=None, method=None, profile=None, seed=None, settings=None,
    out=None, resume=false, executor=None, vectorized=None, batch_size=None, truth=None, name=None, summaries=None, threads=None,
    progress=true
))]
#[allow(clippy::too_many_arguments)]
pub fn infer(
    py: Python<'_>,
    simulator: &Bound<'_, PyAny>,
    prior: Option<&Bound<'_, PyAny>>,
    x_o: Option<&Bound<'_, PyAny>>,
    rounds: Option<&Bound<'_, PyAny>>,
    simulations: Option<&Bound<'_, PyAny>>,
    method: Option<&str>,
    profile: Option<&str>,
    seed: Option<&Bound<'_, PyAny>>,
    settings: Option<&Bound<'_, PyMapping>>,
    out: Option<PathBuf>,
    resume: bool,
    executor: Option<&Bound<'_, PyAny>>,
    vectorized: Option<bool>,
    batch_size: Option<&Bound<'_, PyAny>>,
    truth: Option<&Bound<'_, PyAny>>,
    name: Option<String>,
    summaries: Option<&Bound<'_, PyAny>>,
    threads: Option<&Bound<'_, PyAny>>,
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
    let (run, so_far) = begun(folder.path(), &manifest, resume)?;
    carried(py, &mut caller, run, task, so_far, folder, threads)
}

/// A new run, or the same one if it is there and may go on.
fn begun(path: &Path, manifest: &Manifest, resume: bool) -> PyResult<(RunDir, Progress)> {
    if !resume || RunDir::read(path).is_err() {
        let run = RunDir::create(path, &manifest.to_json().to_string()).map_err(python)?;
        return Ok((run, Progress::default()));
    }
    let run = RunDir::open(path).map_err(python)?;
    if Manifest::of(&run).map_err(python)? != *manifest {
        return Err(Kind::Run.error(format!(
            "{} holds another run (its prior, observation, settings or seed differ): choose another out, or go on with that \
             one by didyma.resume",
            path.display()
        )));
    }
    let so_far = run_progress(&run).map_err(python)?;
    Ok((run, so_far))
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
    batch_size: Option<&Bound<'_, PyAny>>,
    retry_failed: bool,
    threads: Option<&Bound<'_, PyAny>>,
    progress: bool,
) -> PyResult<Found> {
    let threads = self::threads(threads)?;
    let mut run = RunDir::open(&directory).map_err(python)?;
    let manifest = Manifest::of(&run).map_err(python)?;
    let of_function = manifest.problem.as_ref().is_some_and(|p| p.source == Source::Function);
    let finished = run.rounds().map_err(python)?.len() as u32;
    if simulator.is_some() != of_function && finished < manifest.config.rounds {
        return Err(Kind::Input.error(match of_function {
            true => "simulator is missing: the run is of a Python function; give it as didyma.resume(directory, simulator)",
            false => "simulator was given, but the run knows its own: leave it out",
        }));
    }
    if retry_failed {
        run.forget_failures(finished + 1).map_err(python)?;
    }
    let task = manifest.problem().map_err(python)?;
    // A finished run needs nothing of them.
    let unfinished = finished < manifest.config.rounds;
    let (simulator, executor) = (simulator.filter(|_| unfinished), executor.filter(|_| unfinished));
    let running = Running { executor, vectorized, batch_size, progress };
    let mut caller = running.caller(py, simulator, &task.prior, task.observation.len())?;
    let so_far = run_progress(&run).map_err(python)?;
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
