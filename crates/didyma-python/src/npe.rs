//! Inference step by step.

use crate::arrays::{matrix, observation, parameters, rows, type_name, whole};
use crate::choices::Choices;
use crate::errors::{Kind, python};
use crate::folder::Folder;
use crate::infer::{Running, threads};
use crate::posterior::Posterior;
use crate::prior::{self, Prior};
use crate::question::truth;
use crate::result::Result as Found;
use crate::wait::wait;
use didyma::problem::{Problem, Source};
use didyma::rng::{Purpose, Streams};
use didyma::simulator::simulate;
use didyma::steps::{Drawn, Steps};
use didyma::{Rows, parallel};
use numpy::PyArray2;
use pyo3::prelude::*;
use pyo3::types::PyMapping;
use std::ops::ControlFlow;
use std::path::PathBuf;

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
#[pyclass(name = "NPE", module = "didyma")]
pub struct Npe {
    steps: Steps,
    truth: Option<Vec<f64>>,
    name: String,
    /// Rows simulated that were not proposed.
    others: u64,
}

/// From where the random numbers of rows count that were not proposed: beyond all places in a round.
const OTHERS: u64 = 1 << 40;

#[pymethods]
impl Npe {
    #[new]
    #[pyo3(signature = (
        prior, x_o, *, method=None, profile=None, seed=None, settings=None, truth=None, name="model"
    ))]
    #[allow(clippy::too_many_arguments)]
    fn new(
        prior: &Bound<'_, PyAny>,
        x_o: &Bound<'_, PyAny>,
        method: Option<&str>,
        profile: Option<&str>,
        seed: Option<&Bound<'_, PyAny>>,
        settings: Option<&Bound<'_, PyMapping>>,
        truth: Option<&Bound<'_, PyAny>>,
        name: &str,
    ) -> PyResult<Self> {
        let choices = Choices { method, profile, seed, settings, ..Choices::default() };
        let config = choices.config(None)?;
        let (prior, x_o) = (prior::of(prior)?, observation("x_o", x_o, None)?);
        let truth = self::truth(truth, &prior)?;
        let (steps, name) = (Steps::new(prior, x_o, config).map_err(python)?, name.to_owned());
        Ok(Self { steps, truth, name, others: 0 })
    }

    /// Rounds that are trained.
    #[getter]
    fn rounds(&self) -> usize {
        self.steps.rounds()
    }

    /// Parameters to simulate in this round (1000), as a float32 array of shape (n, D): of the prior in the first round, then
    /// where the method looks.
    #[pyo3(signature = (n=None))]
    fn propose<'py>(
        &mut self,
        py: Python<'py>,
        n: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let n = whole("n", n)?.unwrap_or(self.steps.config().simulations);
        let mut steps = self.steps.clone();
        let (steps, theta) = wait(py, move || {
            let theta = steps.propose(n, parallel::cores())?.to_vec();
            Ok((steps, theta))
        })?;
        self.steps = steps;
        matrix(py, theta, self.steps.prior().dim())
    }

    /// Simulates theta by a function, as `infer` does: x as a float32 array of shape (n, L), NaN where it failed. Rows that
    /// were proposed have the random numbers of their place in the round, others new ones each time.
    #[pyo3(signature = (simulator, theta, *, executor=None, vectorized=None, batch_size=None, progress=true))]
    #[allow(clippy::too_many_arguments)]
    fn simulate<'py>(
        &mut self,
        py: Python<'py>,
        simulator: &Bound<'py, PyAny>,
        theta: &Bound<'py, PyAny>,
        executor: Option<&Bound<'py, PyAny>>,
        vectorized: Option<bool>,
        batch_size: Option<&Bound<'py, PyAny>>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyArray2<f32>>> {
        let dims = (self.steps.prior().dim(), self.steps.observation().len());
        let theta = parameters(theta, self.steps.prior())?;
        let first = self.steps.number_of(&theta).unwrap_or_else(|| {
            self.others += theta.len() as u64;
            OTHERS + self.others
        });
        let running = Running { executor, vectorized, batch_size, progress };
        let mut caller = running.caller(py, Some(simulator), self.steps.prior(), dims.1)?;
        let streams = Streams::new(self.steps.config().seed);
        let streams = streams.simulations(Purpose::Simulation, self.steps.rounds() as u64 + 1);
        let found = caller.answer(py, "stopped; these simulations are lost", move |link| {
            let (simulator, theta) = (link.simulator(dims), Rows::new("theta", &theta, dims.0)?);
            let go_on = &mut |_: didyma::simulator::Progress| match link.is_stopped() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            };
            simulate(&simulator, theta, &streams, first, 1, go_on)
        })?;
        matrix(py, found.x, dims.1)
    }

    /// Takes simulations of this round: theta of shape (n, D) and x of shape (n, L). Rows of x with NaN or infinity count
    /// as failed. Several calls add up.
    #[pyo3(signature = (theta, x, proposal=None))]
    fn append_simulations<'py>(
        mut slf: PyRefMut<'py, Self>,
        theta: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        proposal: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<PyRefMut<'py, Self>> {
        let (dim, x_dim) = (slf.steps.prior().dim(), slf.steps.observation().len());
        let theta = parameters(theta, slf.steps.prior())?;
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
        let outcome = |row: &[f64]| match row.iter().position(|v| !(*v as f32).is_finite()) {
            Some(i) => Err(format!("summary {} is {}", i + 1, row[i])),
            None => Ok(row.iter().map(|&v| v as f32).collect()),
        };
        let x = x.chunks_exact(x_dim).map(outcome).collect();
        let theta = Rows::new("theta", &theta, dim).map_err(python)?;
        slf.steps.append(theta, x, drawn).map_err(python)?;
        Ok(slf)
    }

    /// Trains on all simulations so far; this ends the round. Returns the posterior. Interrupted, it goes on when called
    /// again.
    #[pyo3(signature = (*, threads=None, progress=true))]
    fn train(
        &mut self,
        py: Python<'_>,
        threads: Option<&Bound<'_, PyAny>>,
        progress: bool,
    ) -> PyResult<Posterior> {
        let threads = self::threads(threads)?;
        let running = Running { executor: None, vectorized: None, batch_size: None, progress };
        let mut caller =
            running.caller(py, None, self.steps.prior(), self.steps.observation().len())?;
        let (round, kept) = (self.steps.rounds() as u32 + 1, Kept::default());
        let (mut steps, keep) = (self.steps.clone(), kept.clone());
        let words = "stopped; what was trained is kept, and train() goes on";
        let trained = caller.answer(py, words, move |link| {
            let found = steps.train(threads, &mut link.observer(round));
            keep.put(steps);
            found
        });
        if let Some(steps) = kept.take() {
            self.steps = steps;
        }
        _ = trained?;
        self.build_posterior(None)
    }

    /// The posterior of the last round. What `train` returned may be given, as sbi has it.
    #[pyo3(signature = (density_estimator=None))]
    fn build_posterior(&self, density_estimator: Option<Posterior>) -> PyResult<Posterior> {
        let Some(law) = self.steps.posterior() else {
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
        self.saved(py, folder.path().to_owned())?;
        Found::new(py, folder, None, parallel::cores())
    }

    /// Keeps all of it as a run in a new directory.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        self.saved(py, directory)
    }

    fn __repr__(&self) -> String {
        let steps = &self.steps;
        format!(
            "NPE by {}: {} rounds trained, {} simulations since",
            steps.config().method_name(),
            steps.rounds(),
            steps.appended()
        )
    }
}

impl Npe {
    fn saved(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let (steps, name, truth) = (self.steps.clone(), self.name.clone(), self.truth.clone());
        let prior = steps.prior().clone();
        let observation = steps.observation().to_vec();
        let labels = prior.names().map(str::to_owned).collect();
        let summaries = (1..=observation.len()).map(|i| format!("x{i}")).collect();
        let (about, source) = (String::new(), Source::Function);
        let problem = Problem { name, about, prior, labels, summaries, observation, truth, source };
        wait(py, move || steps.save(&path, problem, parallel::cores()))
    }
}

/// What an engine leaves for its caller, however it ended.
#[derive(Clone, Default)]
struct Kept(std::sync::Arc<std::sync::Mutex<Option<Steps>>>);

impl Kept {
    fn put(&self, steps: Steps) {
        if let Ok(mut place) = self.0.lock() {
            *place = Some(steps);
        }
    }

    fn take(&self) -> Option<Steps> {
        self.0.lock().ok()?.take()
    }
}
