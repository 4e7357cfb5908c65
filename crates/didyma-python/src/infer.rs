//! `infer` and `resume`: whole runs.

use crate::caller::Caller;
use crate::choices::Choices;
use crate::device::MachineChoice;
use crate::errors::{Kind, python};
use crate::folder::Folder;
use crate::question::{Question, Statement};
use crate::result::Result as Found;
use crate::runner::Runner;
use didyma::Source;
use didyma::report::{Overview, opening, write_page};
use didyma::run::{Manifest, RunDir, execute_task};
use didyma::tasks::Task as Known;
use didyma::training::Machine;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::path::PathBuf;

/// Infers the posterior of a simulator's parameters at an observation.
///
/// simulator: a function from theta to x: of one row, (D,) -> (L,), or of many, (n, D) -> (n, L); which of them it is, is
///     found out by calling it (or said by `vectorized`). If it has a parameter `rng` it is given a numpy Generator, or by
///     `seed` a number, and then the run can be repeated to the bit. A function with neither is called twice at draws of
///     the prior, and warned of if it gives different x for the same theta. Or a task of `didyma.tasks`.
/// prior: Uniform, Normal, LogNormal or Independent.
/// x_o: the observation, L numbers.
/// rounds, simulations: rounds of simulating and training, and simulations of each (10 and 1000).
/// method: "tgrr" (default), "tsnpe", "grr", "ru", "atomic", "npe", ...; see `didyma.methods()`.
/// members: flows that are trained side by side on the same simulations; the posterior is their mixture (4).
/// seed: of all random numbers (1).
/// settings: any other setting, as {"train.batch": 200}; see `didyma.settings()`.
/// out: directory to keep the run in, safe at every moment: `didyma.resume` goes on. Without it, the result can be saved.
/// resume: whether to go on with the same run if `out` holds it already, rather than to refuse.
/// executor: a `concurrent.futures.Executor` to simulate on, or a function that makes one.
/// batch_size: rows of a call of a simulator of many rows (100). They share one `rng`, so that another size gives other noise.
/// truth, name, summaries: true parameters, name of the problem, names of the numbers of x, for plots and reports.
/// threads: of training (all cores). The result does not depend on it.
/// device: where flows are trained and evaluated: "auto" takes an NVIDIA GPU that `didyma.devices()` finds usable, else the
///     CPU; "cpu" or "cuda" take that. The same bytes on the same kind of device, the same within noise on another.
/// progress: whether to show it.
#[pyfunction]
#[pyo3(signature = (
    simulator, prior=None, x_o=None, *, rounds=None, simulations=None, method=None, profile=None, members=None, seed=None,
    settings=None, out=None, resume=false, executor=None, vectorized=None, batch_size=None, truth=None, name=None, summaries=None, threads=None,
    device="auto", progress=true
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
    members: Option<&Bound<'_, PyAny>>,
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
    device: &str,
    progress: bool,
) -> PyResult<Found> {
    let choices = Choices { method, profile, rounds, simulations, members, seed, settings };
    let stated = Statement { simulator, prior, x_o, truth, name, summaries };
    let Question { manifest, function } = stated.question(&choices)?;
    let computing = MachineChoice::new(threads, device)?;
    let running = Runner { executor, vectorized, batch_size, progress, began: None };
    if let Some(path) = &out {
        match RunDir::read(path) {
            Ok(run) if resume => {
                run.manifest().expect(&manifest, path).map_err(python)?;
                drop(run);
                return go_on(py, path.clone(), function.as_ref(), running, false, computing);
            }
            _ => RunDir::can_begin(path).map_err(python)?,
        }
    }
    let mut manifest = manifest;
    let task = manifest.task().map_err(python)?;
    let x_dim = task.problem.observation().len();
    let machine = computing.machine(py, &manifest.config, (task.problem.prior().dim(), x_dim))?;
    let mut caller = running.caller(py, function.as_ref(), task.problem.prior(), x_dim)?;
    if let (Some(problem), Some((function, _))) = (&mut manifest.problem, &caller.function) {
        problem.source = Source::Function { batch: function.batch() };
    }
    let folder = Folder::new(out)?;
    let run = RunDir::create(folder.path(), &manifest).map_err(python)?;
    carried(py, &mut caller, run, task, folder, machine)
}

/// Goes on with a run that was stopped, killed, or ended by an error, from where it was.
///
/// directory: the `out` of the run.
/// simulator: the function, if it is a run of one.
/// retry_failed: whether failed simulations of the round under way are made again.
/// device: as of `infer`. A run that goes on elsewhere than it began is the same within noise, not to the byte.
#[pyfunction]
#[pyo3(signature = (
    directory, simulator=None, *, executor=None, vectorized=None, batch_size=None, retry_failed=false, threads=None,
    device="auto", progress=true
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
    device: &str,
    progress: bool,
) -> PyResult<Found> {
    let running = Runner { executor, vectorized, batch_size, progress, began: None };
    let computing = MachineChoice::new(threads, device)?;
    go_on(py, directory, simulator, running, retry_failed, computing)
}

/// Goes on with the run in a directory.
fn go_on(
    py: Python<'_>,
    directory: PathBuf,
    simulator: Option<&Bound<'_, PyAny>>,
    running: Runner<'_, '_>,
    retry_failed: bool,
    computing: MachineChoice,
) -> PyResult<Found> {
    let run = RunDir::read(&directory).map_err(python)?;
    let manifest = run.manifest().clone();
    let finished = run.rounds().map_err(python)? as u32;
    drop(run);
    let began = batch_of(&manifest);
    let unfinished = finished < manifest.config.rounds;
    if simulator.is_some() != began.is_some() && unfinished {
        return Err(Kind::Input.error(match began {
            Some(_) => "simulator is missing: the run is of a Python function; give it as didyma.resume(directory, simulator)",
            None => "simulator was given, but the run knows its own: leave it out",
        }));
    }
    let task = manifest.task().map_err(python)?;
    let dims = (task.problem.prior().dim(), task.problem.observation().len());
    let machine = computing.machine(py, &manifest.config, dims)?;
    // A finished run needs nothing of them.
    let simulator = simulator.filter(|_| unfinished);
    let executor = running.executor.filter(|_| unfinished);
    let running = Runner { executor, began, ..running };
    let mut caller =
        running.caller(py, simulator, task.problem.prior(), task.problem.observation().len())?;
    let mut run = RunDir::open(&directory).map_err(python)?;
    if retry_failed {
        run.forget_failures(finished + 1).map_err(python)?;
    }
    carried(py, &mut caller, run, task, Folder::kept(directory), machine)
}

/// How the function of a run is called, if it is a run of one.
pub fn batch_of(manifest: &Manifest) -> Option<usize> {
    match manifest.problem.as_ref()?.source {
        Source::Function { batch } => Some(batch),
        _ => None,
    }
}

/// Carries a run on to its end.
fn carried(
    py: Python<'_>,
    caller: &mut Caller,
    run: RunDir,
    task: Known,
    folder: Folder,
    machine: Machine,
) -> PyResult<Found> {
    let (manifest, state) = (run.manifest().clone(), run.progress().map_err(python)?);
    let dims = (task.problem.prior().dim(), task.problem.observation().len());
    let (asks, kept) = (caller.function.is_some(), folder.is_kept());
    let (path, threads) = (folder.path().to_owned(), machine.threads);
    let words = if asks { ", simulator" } else { "" };
    #[cfg(unix)]
    let _held = Held::new(py, &run)?;
    let go_on = format!("everything so far is saved; go on with didyma.resume({path:?}{words})");
    let done = caller.answer(py, &format!("stopped; {go_on}"), move |link| {
        let task = match asks {
            true => Known { problem: task.problem.with_simulator(link.simulator(dims))?, ..task },
            false => task,
        };
        link.say(opening(&manifest, kept.then_some(&*path), &*machine.device));
        let mut observer = link.observer(manifest.config.rounds);
        let findings = execute_task(run, state, &task, machine, &mut observer)?;
        if findings.is_finished() && kept {
            // A run is not lost because a page about it cannot be written.
            let _ = write_page(&findings);
        }
        let overview = Overview::of(&findings)?;
        Ok((findings.posterior().cloned(), manifest, overview))
    });
    let found = match done {
        Ok((Some(posterior), manifest, overview)) => {
            Ok(Found::new(folder, posterior, manifest, overview))
        }
        Ok((None, ..)) => Found::read(py, folder, threads),
        Err(error) => {
            folder.keep();
            Err(error)
        }
    };
    found.map_err(|error| noted(py, error, &go_on))
}

/// The same exception, which also says where the run is.
fn noted(py: Python<'_>, error: PyErr, text: &str) -> PyErr {
    if error.is_instance_of::<PyKeyboardInterrupt>(py) {
        return PyKeyboardInterrupt::new_err(format!("stopped; {text}"));
    }
    if Kind::is_ours(py, &error) {
        let whole = format!("{}; {text}", error.value(py));
        // A message that cannot be changed is better than none.
        let _ = error.value(py).setattr("args", (whole,));
    }
    error
}

/// While it lives, forked processes let go of a run's lock.
#[cfg(unix)]
pub struct Held(Option<i32>);

#[cfg(unix)]
impl Held {
    pub fn new(py: Python<'_>, run: &RunDir) -> PyResult<Self> {
        let descriptor = run.lock_descriptor();
        py.import("didyma._fork")?.call_method1("hold", (descriptor,))?;
        Ok(Self(descriptor))
    }
}

#[cfg(unix)]
impl Drop for Held {
    fn drop(&mut self) {
        Python::attach(|py| {
            let module = py.import("didyma._fork");
            let _ = module.and_then(|module| module.call_method1("release", (self.0,)));
        });
    }
}
