//! The front door: a problem in, a posterior out, and a run on the disk that survives a kill.

use crate::error::{Error, Result};
use crate::inference::config::{Algorithm, Layer, Profile};
use crate::inference::{Observer, Posterior};
use crate::parallel;
use crate::problem::{Problem, ProblemRecord, Source};
use crate::problem_file::FileSettings;
use crate::report::{Overview, write_page};
use crate::run::{Manifest, RunDir, execute};
use crate::training::{Cpu, Device, Machine};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

/// Begins an inference of the posterior of a problem: choose what differs from the defaults, then [`Infer::run`].
///
/// ```
/// use didyma::{Method, Prior, Problem, from_fn, infer};
/// use rand::RngExt;
/// let prior = Prior::uniform(["theta"], [-1.0], [1.0])?;
/// let simulator = from_fn(1, 1, |theta, rng, x| {
///     x[0] = theta[0] + rng.random_range(-0.1..0.1);
/// });
/// let problem = Problem::new(prior, simulator, [0.25])?;
/// let found = infer(&problem)
///     .method(Method::Tgrr)
///     .rounds(2)
///     .simulations(200)
///     .set("train.steps", 50)
///     .seed(7)
///     .run()?;
/// assert_eq!(found.posterior().sample(100, 1)?.len(), 100);
/// # Ok::<(), didyma::Error>(())
/// ```
pub fn infer<'a>(problem: &'a Problem<'a>) -> Infer<'a> {
    Infer {
        problem,
        name: "problem".to_owned(),
        settings: Layer::default(),
        threads: parallel::cores(),
        device: Arc::new(Cpu),
        out: None,
        resume: false,
        observer: None,
    }
}

/// An inference that is about to run, made by [`infer`].
#[must_use = "nothing happens before `run`"]
pub struct Infer<'a> {
    problem: &'a Problem<'a>,
    name: String,
    settings: Layer,
    threads: usize,
    device: Arc<dyn Device>,
    out: Option<PathBuf>,
    resume: bool,
    observer: Option<&'a mut dyn Observer>,
}

impl<'a> Infer<'a> {
    /// Rounds of simulating and training (10).
    pub fn rounds(self, rounds: u32) -> Self {
        self.set("rounds", rounds)
    }

    /// Simulations of a round (1000).
    pub fn simulations(self, simulations: usize) -> Self {
        self.set("simulations", simulations)
    }

    /// Members of the ensemble: models that are trained side by side, whose mixture is the posterior (1).
    pub fn members(self, members: usize) -> Self {
        self.set("ensemble.members", members)
    }

    /// The seed of all random numbers (1).
    pub fn seed(self, seed: u64) -> Self {
        self.set("seed", seed)
    }

    /// The method, an [`Algorithm`] or an estimator's [`Method`](crate::estimator::Method).
    pub fn method(mut self, method: impl Into<Algorithm>) -> Self {
        self.settings.method = Some(method.into());
        self
    }

    /// The profile that all other settings start from.
    pub fn profile(mut self, profile: Profile) -> Self {
        self.settings.profile = Some(profile);
        self
    }

    /// Any other setting by its name, as `train.batch`; [`Config::list`](crate::Config::list) has them all.
    pub fn set(mut self, key: &str, value: impl ToString) -> Self {
        self.settings.set(key, value);
        self
    }

    /// Threads (all cores). The result does not depend on them.
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads;
        self
    }

    /// The device that trains and evaluates flows (the CPU).
    pub fn device(mut self, device: Arc<dyn Device>) -> Self {
        self.device = device;
        self
    }

    /// A new or empty directory to keep the run in: everything that is done is safe there at once. Without it, the run
    /// lies in a temporary directory that goes with the result.
    pub fn out(mut self, directory: impl AsRef<Path>) -> Self {
        self.out = Some(directory.as_ref().to_owned());
        self
    }

    /// Continues the run that `directory` holds, if it is this one, and begins it there otherwise.
    pub fn resume(self, directory: impl AsRef<Path>) -> Self {
        Self { resume: true, ..self.out(directory) }
    }

    /// Hears of everything that happens, and may stop the run.
    pub fn observer(mut self, observer: &'a mut dyn Observer) -> Self {
        self.observer = Some(observer);
        self
    }

    /// The name of the problem, for summaries and pages.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Runs until all rounds are finished, or the observer stops it after at least one.
    ///
    /// A run that fails keeps its directory, a temporary one too.
    pub fn run(mut self) -> Result<Found> {
        let config = FileSettings::default().config(&self.settings)?;
        let (prior, x_o) = (self.problem.prior().clone(), self.problem.observation().to_vec());
        let source = Source::Function { batch: 0 };
        let name = std::mem::take(&mut self.name);
        let manifest = Manifest::of_problem(ProblemRecord::plain(name, prior, x_o, source), config);
        let (path, temporary) = match self.out.take() {
            Some(path) => (std::path::absolute(&path).unwrap_or(path), None),
            None => temporary()?,
        };
        match self.work(&path, &manifest, temporary.is_none()) {
            Ok((posterior, summary)) => Ok(Found { summary, posterior, path, temporary }),
            Err(error) => {
                temporary.map(TempDir::keep);
                Err(error)
            }
        }
    }

    /// Works on the run in `path`, which has a page if it is kept.
    fn work(self, path: &Path, manifest: &Manifest, kept: bool) -> Result<(Posterior, Overview)> {
        let run = if self.resume {
            RunDir::open_or_create(path, manifest)?
        } else {
            RunDir::create(path, manifest)?
        };
        let state = run.progress()?;
        let machine = Machine::new(self.threads, self.device);
        let mut nobody = ();
        let observer = self.observer.unwrap_or(&mut nobody);
        let findings = execute(run, state, self.problem, None, machine, observer)?;
        if findings.is_finished() && kept {
            // A run is not lost because a page about it cannot be written.
            let _ = write_page(&findings);
        }
        let summary = Overview::of(&findings)?;
        Ok((findings.into_posterior()?, summary))
    }
}

fn temporary() -> Result<(PathBuf, Option<TempDir>)> {
    let made = tempfile::Builder::new().prefix("didyma-").tempdir();
    let refused = |source| Error::Io { action: "create", path: std::env::temp_dir(), source };
    let made = made.map_err(refused)?;
    Ok((made.path().to_owned(), Some(made)))
}

/// A posterior, with the run that led to it.
#[derive(Debug)]
pub struct Found {
    summary: Overview,
    posterior: Posterior,
    path: PathBuf,
    temporary: Option<TempDir>,
}

impl Found {
    /// The run in short: rounds, parameters, warnings. It prints as a table.
    pub fn summary(&self) -> &Overview {
        &self.summary
    }

    /// The posterior of the last finished round.
    pub fn posterior(&self) -> &Posterior {
        &self.posterior
    }

    /// The directory of the run, if it is kept.
    pub fn directory(&self) -> Option<&Path> {
        self.temporary.is_none().then_some(&*self.path)
    }

    /// True unless an observer stopped the run early.
    pub fn is_finished(&self) -> bool {
        self.summary.summary.finished
    }
}
