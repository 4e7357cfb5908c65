//! Inference step by step.

use crate::arrays::{count, matrix, observation, parameters, rows, type_name};
use crate::choices::Choices;
use crate::device::MachineChoice;
use crate::errors::{Kind, python};
use crate::folder::Folder;
use crate::posterior::Posterior;
use crate::prior::{self, Prior};
use crate::question::{task_of, truth};
use crate::result::Result as Found;
use crate::runner::{Runner, threads};
use crate::wait::wait;
use didyma::report::Overview;
use didyma::rng::{Purpose, Streams};
use didyma::simulator::{self, Simulator};
use didyma::steps::{Drawn, Steps, outcome};
use didyma::training::{Device, Machine};
use didyma::{ProblemRecord, Rows, Source, parallel};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Neural posterior estimation step by step, for those who simulate themselves.
///
/// >>> inference = didyma.NPE(prior, x_o=x_o, method="tgrr")
/// >>> for _ in range(10):
/// ...     theta = inference.propose(1000)
/// ...     x = simulator(theta)
/// ...     inference.append_simulations(theta, x)
/// ...     inference.train()
/// >>> posterior = inference.build_posterior()
///
/// Theta must be what `propose` gave, in its order: draws of anything else would need another loss, and are refused. In
/// the first round draws of the prior will do, and later ones too if `proposal=prior` says so.
///
/// `device` is as of `infer`: where flows are trained, and where they propose.
#[pyclass(name = "NPE", frozen, module = "didyma")]
pub struct Npe {
    state: Mutex<State>,
    device: Arc<dyn Device>,
    truth: Option<Vec<f64>>,
    name: String,
}

struct State {
    steps: Steps,
    /// Rows simulated that were not proposed.
    others: u64,
    /// What another thread is doing.
    under_way: Option<&'static str>,
}

/// The record of a problem whose simulator is elsewhere.
fn problem(name: &str, prior: &didyma::Prior, x_o: &[f64]) -> ProblemRecord {
    let source = Source::Function { batch: 0 };
    ProblemRecord::plain(name.to_owned(), prior.clone(), x_o.to_vec(), source)
}

#[pymethods]
impl Npe {
    #[new]
    #[pyo3(signature = (
        prior, x_o, *, method=None, profile=None, seed=None, settings=None, truth=None, name="model",
        device="auto"
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        py: Python<'_>,
        prior: &Bound<'_, PyAny>,
        x_o: &Bound<'_, PyAny>,
        method: Option<&str>,
        profile: Option<&str>,
        seed: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyMapping>>,
        truth: Option<&Bound<'_, PyAny>>,
        name: &str,
        device: &str,
    ) -> PyResult<Self> {
        let computing = MachineChoice::new(None, device)?;
        let choices = Choices { method, profile, seed, settings, ..Choices::default() };
        let config = choices.config(None)?;
        let (prior, x_o) = (prior::of(prior)?, observation("x_o", x_o, None)?);
        let truth = self::truth(truth, &prior)?;
        let dims = (prior.dim(), x_o.len());
        // Not when they are saved: the work is done then.
        problem(name, &prior, &x_o).check_names().map_err(python)?;
        let steps = Steps::new(prior, x_o, config).map_err(python)?;
        let device = computing.machine(py, steps.config(), dims)?.device;
        let state = Mutex::new(State { steps, others: 0, under_way: None });
        Ok(Self { state, device, truth, name: name.to_owned() })
    }

    /// Rounds that are trained.
    #[getter]
    fn rounds(&self) -> usize {
        self.state().steps.rounds()
    }

    /// Where flows are trained and where they propose, in words.
    #[getter]
    fn device(&self) -> String {
        self.device.describe()
    }

    /// Parameters to simulate in this round (1000), as a float64 array of shape (n, D): of the prior in the first round, then
    /// where the method looks. Asked again in the same round, it gives the same.
    #[pyo3(signature = (n=None))]
    fn propose<'py>(
        &self,
        py: Python<'py>,
        n: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (at_work, mut steps) = self.begin("propose")?;
        let n = n.map_or(Ok(steps.config().simulations), |n| count("n", n))?;
        let (dim, machine) = (steps.prior().dim(), self.machine(parallel::cores()));
        let (steps, theta) = wait(py, move || {
            let theta = steps.propose(n, machine)?.to_vec();
            Ok((steps, theta))
        })?;
        at_work.keep(steps);
        matrix(py, theta, dim)
    }

    /// Simulates theta by a function or a task, as `infer` does: x as a float64 array of shape (n, L), NaN where it failed. Rows
    /// that were proposed have the random numbers of their place in the round (those of a function of many rows: of their
    /// batch in this call), others new ones each time.
    #[pyo3(signature = (simulator, theta, *, executor=None, vectorized=None, batch_size=None, progress=true))]
    #[allow(clippy::too_many_arguments)]
    fn simulate<'py>(
        &self,
        py: Python<'py>,
        simulator: &Bound<'py, PyAny>,
        theta: &Bound<'py, PyAny>,
        executor: Option<&Bound<'py, PyAny>>,
        vectorized: Option<bool>,
        batch_size: Option<&Bound<'py, PyAny>>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let steps = self.state().steps.clone();
        let dims = (steps.prior().dim(), steps.observation().len());
        let theta = parameters(theta, steps.prior())?;
        let (purpose, first) = self.stream_of(&theta, dims.0);
        let task = task_of(simulator);
        let function = task.is_none().then_some(simulator);
        let running = Runner { executor, vectorized, batch_size, progress, began: None };
        let mut caller = running.caller(py, function, steps.prior(), dims.1)?;
        let streams = Streams::new(steps.config().seed);
        let streams = streams.simulations(purpose, steps.rounds() as u64 + 1);
        let found = caller.answer(py, "stopped; these simulations are lost", move |link| {
            let asking = link.simulator(dims);
            let known = task.as_ref().map(|task| task.known.problem.simulator());
            let simulator: &dyn Simulator = known.unwrap_or(&asking);
            let go_on = &mut |_: simulator::Progress| match link.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            let (theta, threads) = (Rows::new("theta", &theta, dims.0)?, parallel::cores());
            simulator::simulate(simulator, theta, &streams, first, threads, go_on)
        })?;
        matrix(py, found.x, dims.1)
    }

    /// Takes simulations of this round: theta of shape (n, D) and x of shape (n, L). Rows of x with NaN or infinity count
    /// as failed. Several calls add up.
    #[pyo3(signature = (theta, x, proposal=None))]
    fn append_simulations<'py>(
        slf: Bound<'py, Self>,
        theta: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        proposal: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, Self>> {
        let (at_work, mut steps) = slf.get().begin("append_simulations")?;
        let (dim, x_dim) = (steps.prior().dim(), steps.observation().len());
        let theta = parameters(theta, steps.prior())?;
        let x = rows("x", x, x_dim, "a column for each number of x_o")?;
        let posterior = proposal.and_then(|p| p.cast::<Posterior>().ok());
        let own = proposal.and_then(|p| p.cast::<Prior>().ok());
        let drawn = match (&posterior, &own, proposal) {
            (Some(posterior), ..) => Drawn::Posterior(&posterior.get().law),
            (_, Some(prior), _) => Drawn::Prior(&prior.get().0),
            (None, None, Some(other)) => {
                let found = type_name(other);
                return Err(Kind::Proposal.error(format!(
                    "proposal is of type {found}: give the prior or this inference's posterior, or leave it out with what propose gave"
                )));
            }
            (None, None, None) => Drawn::Unsaid,
        };
        let x = x.chunks_exact(x_dim).map(outcome).collect();
        let theta = Rows::new("theta", &theta, dim).map_err(python)?;
        steps.append(theta, x, drawn).map_err(python)?;
        at_work.keep(steps);
        drop(at_work);
        Ok(slf)
    }

    /// Trains on all simulations so far; this ends the round. Returns the posterior. Interrupted, it goes on when called
    /// again.
    #[pyo3(signature = (*, threads=None, progress=true))]
    fn train(
        &self,
        py: Python<'_>,
        threads: Option<&Bound<'_, PyAny>>,
        progress: bool,
    ) -> PyResult<Posterior> {
        let machine = self.machine(self::threads(threads)?);
        let (at_work, mut steps) = self.begin("train")?;
        let running =
            Runner { executor: None, vectorized: None, batch_size: None, progress, began: None };
        let mut caller = running.caller(py, None, steps.prior(), steps.observation().len())?;
        let (round, kept) = (steps.rounds() as u32 + 1, Arc::new(Mutex::new(None)));
        let keep = Arc::clone(&kept);
        let words = "stopped; what was trained is kept, and train() goes on";
        let trained = caller.answer(py, words, move |link| {
            let found = steps.train(machine, &mut link.observer(round));
            *keep.lock().unwrap_or_else(PoisonError::into_inner) = Some(steps);
            found
        });
        if let Some(steps) = kept.lock().unwrap_or_else(PoisonError::into_inner).take() {
            at_work.keep(steps);
        }
        _ = trained?;
        self.build_posterior(None)
    }

    /// The posterior of the last round. What `train` returned may be given, as sbi has it.
    #[pyo3(signature = (density_estimator=None))]
    fn build_posterior(&self, density_estimator: Option<Posterior>) -> PyResult<Posterior> {
        let state = self.state();
        let Some(law) = state.steps.posterior() else {
            let text = "there is no posterior yet: append simulations and train first";
            return Err(Kind::Proposal.error(text));
        };
        match density_estimator.filter(|given| !given.law.is_same(law)) {
            None => Ok(law.clone().into()),
            Some(_) => Err(Kind::Proposal.error(
                "density_estimator is not what the last train returned: give that, or leave it out",
            )),
        }
    }

    /// All of it as the result of a run, with summary, plots and report.
    fn result(&self, py: Python<'_>) -> PyResult<Found> {
        let folder = Folder::new(None)?;
        let (steps, problem, path) = self.recorded(folder.path());
        let (law, manifest, overview) = wait(py, move || {
            let findings = steps.save(&path, problem, parallel::cores())?;
            let (manifest, overview) =
                (findings.run().manifest().clone(), Overview::of(&findings)?);
            Ok((findings.into_posterior()?, manifest, overview))
        })?;
        Ok(Found::new(folder, law, manifest, overview))
    }

    /// Keeps all of it as a run in a new directory.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let (steps, problem, path) = self.recorded(&directory);
        wait(py, move || steps.save(&path, problem, parallel::cores()).map(drop))
    }

    fn __repr__(&self) -> String {
        let steps = &self.state().steps;
        format!(
            "NPE by {}: {} rounds trained, {} simulations since",
            steps.config().method_name(),
            steps.rounds(),
            steps.appended()
        )
    }
}

impl Npe {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The steps so far, the record of their problem, and the path that they are to be saved at.
    fn recorded(&self, path: &Path) -> (Steps, ProblemRecord, PathBuf) {
        let steps = self.state().steps.clone();
        let problem = problem(&self.name, steps.prior(), steps.observation());
        (steps, ProblemRecord { truth: self.truth.clone(), ..problem }, path.to_owned())
    }

    fn machine(&self, threads: usize) -> Machine {
        Machine::new(threads, Arc::clone(&self.device))
    }

    /// Purpose of the rows' random streams, and the number of the first: its place in the round if they were proposed.
    fn stream_of(&self, theta: &[f64], dim: usize) -> (Purpose, u64) {
        let mut state = self.state();
        if let Some(place) = state.steps.number_of(theta) {
            return (Purpose::Simulation, place);
        }
        let first = state.others;
        state.others += (theta.len() / dim) as u64;
        (Purpose::OtherSimulation, first)
    }

    /// Begins something that changes the steps: one at a time.
    fn begin(&self, what: &'static str) -> PyResult<(AtWork<'_>, Steps)> {
        let mut state = self.state();
        if let Some(other) = state.under_way {
            return Err(Kind::Proposal.error(format!(
                "{what} cannot begin while {other} of the same inference is under way in another thread: wait for it"
            )));
        }
        state.under_way = Some(what);
        Ok((AtWork(self), state.steps.clone()))
    }
}

/// Something that changes the steps of an inference, until it is dropped.
struct AtWork<'a>(&'a Npe);

impl AtWork<'_> {
    fn keep(&self, steps: Steps) {
        self.0.state().steps = steps;
    }
}

impl Drop for AtWork<'_> {
    fn drop(&mut self) {
        self.0.state().under_way = None;
    }
}
