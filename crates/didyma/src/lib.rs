//! Didyma: simulation-based Bayesian inference by sequential neural posterior estimation.
//!
//! Given a simulator, a prior and an observation, a conditional neural spline flow q(θ | x) is trained
//! on simulated pairs until q(· | x_o) is the posterior. This is the library; the program `didyma` is a
//! thin layer on it.
//!
//! # A tour
//! A model of one's own, from prior and simulator to samples of the posterior:
//!
//! ```
//! use didyma::config::{Config, Profile};
//! use didyma::estimator::Method;
//! use didyma::SampleStreams;
//! use didyma::prior::Prior;
//! use didyma::rng::{Purpose, Streams};
//! use didyma::{Model, Progress, infer};
//! use didyma::simulator::from_fn;
//! use rand::RngExt;
//!
//! // θ ~ U(-1, 1), x = θ² + a little noise: the posterior at x = 0.25 has two modes, ±0.5.
//! let prior = Prior::uniform(["theta"], [-1.0], [1.0])?;
//! let simulator = from_fn(1, 1, |theta, rng, x| {
//!     x[0] = theta[0] * theta[0] + rng.random_range(-0.05..0.05);
//! });
//! let model = Model { prior: &prior, simulator: &simulator, observation: &[0.25], judge: None };
//!
//! // Three short rounds by TGRR; `()` watches them, and a `Recorder` would save them.
//! let mut config = Config::new(Profile::Default, Method::Tgrr);
//! (config.rounds, config.simulations, config.train.steps) = (3, 300, Some(150));
//! let found = infer(&model, &config, 1, Progress::default(), &mut ())?;
//!
//! // The posterior, by samples: both modes, and nothing in between.
//! let posterior = found.posterior.expect("all rounds are finished");
//! let streams = SampleStreams::new(Streams::new(1), Purpose::Posterior, 0);
//! let theta = posterior.sample(1000, streams, 1)?.theta;
//! let near = |mode: f32| theta.iter().filter(|t| (**t - mode).abs() < 0.15).count();
//! assert!(near(0.5) > 300 && near(-0.5) > 300 && near(0.0) < 100);
//! # Ok::<(), didyma::Error>(())
//! ```
//!
//! # The modules, in reading order
//! [`rounds`] is the algorithm: propose, simulate, train. [`config`] has every setting, [`posterior`] is what a run ends
//! with, [`observe`] what happens meanwhile, [`run`] the directory that it is saved in. [`prior`], [`simulator`] and
//! [`tasks`] state problems; [`estimator`] says what a training step computes; [`flow`] is q(θ | x), on the loops of
//! [`kernel`], in [`coordinates`] that suit it; [`train`] brings them together, on a [`device`]; [`metrics`] compares the samples with those
//! of a reference; [`validity`] learns which simulations fail. [`rows`], [`rng`] and [`error`] are what everything uses.

#![deny(missing_docs)]

mod density;
mod error;
mod evaluation;
mod inference;
pub mod lab;
mod math;
mod named;
mod network;
pub mod parallel;
mod problem;
pub mod problem_file;
pub mod report;
pub mod rng;
mod rows;
pub mod run;
pub mod storage;
pub mod training;

pub use config::{Algorithm, Config, Profile};
pub use density::{Dataset, Density, DensityConfig, coordinates, flow, score};
pub use error::{Advice, Error, Fault, FileFault, Remedy, Result, Wording};
pub use evaluation::{TaskJudge, abc, levels, metrics};
pub use flow::{FlowConfig, SplineFlow, Tape};
pub use inference::{
    Assignment, Event, Inference, Judge, Observer, Posterior, RoundReport, SampleStreams, Scores,
    SimulatedRow, State, Training, config, failures, infer_from, propose, steps, truncation,
};
pub use math::dual;
pub use named::Named;
pub use network::kernel;
pub use prior::{Marginal, Prior};
pub use problem::{Problem, ProblemRecord, Source, check, prior, simulator, tasks};
pub use rows::Rows;
pub use simulator::{Simulator, from_fn};
pub use tasks::Task;
pub use training::estimator;

/// The README's example, kept true by compiling it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
