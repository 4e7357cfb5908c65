//! Didyma: simulation-based Bayesian inference by sequential neural posterior estimation.
//!
//! Given a simulator, a prior and an observation, a conditional neural spline flow q(θ | x) is trained
//! on simulated pairs until q(· | x_o) is the posterior. This is the library; the program `didyma` is a
//! thin layer on it.
//!
//! # The first program
//! ```
//! use didyma::{Prior, Problem, from_fn, infer};
//! use rand::RngExt;
//!
//! # fn main() -> didyma::Result<()> {
//! # let folder = tempfile::tempdir().expect("a temporary directory");
//! # std::env::set_current_dir(folder.path()).expect("it is there");
//! // θ ~ U(-1, 1), x = θ² + a little noise: the posterior at x = 0.25 has two modes, ±0.5.
//! let prior = Prior::uniform(["theta"], [-1.0], [1.0])?;
//! let simulator = from_fn(1, 1, |theta, rng, x| {
//!     x[0] = theta[0] * theta[0] + rng.random_range(-0.05..0.05);
//! });
//!
//! let problem = Problem::new(prior, simulator, [0.25])?;
//! let found = infer(&problem).rounds(3).out("run").run()?;
//! println!("{}", found.summary());
//! let theta = found.posterior().sample(1000, 2)?; // rows, a seed
//!
//! let near = |mode: f32| theta.rows().filter(|row| (row[0] - mode).abs() < 0.15).count();
//! assert!(near(0.5) > 300 && near(-0.5) > 300 && near(0.0) < 100);
//! # Ok(())
//! # }
//! ```
//!
//! # The nouns
//! A [`Problem`] is a [`Prior`], a [`Simulator`] and an observation; a [`Task`] is one whose truth is known. [`infer()`]
//! makes a run of it: rounds that propose parameters, simulate them and train q(θ | x), by the settings of a [`Config`],
//! on a [`Device`], told event by event to an [`Observer`]. It ends with a [`Posterior`], and everything that led to it
//! lies in a [`RunDir`](run::RunDir). [`infer_from`] is the algorithm alone, without a directory, and [`steps`] is for those
//! who simulate themselves.
//!
//! # The rooms
//! Modules import only those above them in this list; `tests/architecture.rs` checks it.
//! `error`, [`rng`], `rows`, [`parallel`], `named` are what everything uses; [`math`]; [`storage`]: files that appear
//! whole; `problem`: what is asked; `network`: the arithmetic; `density`: what q(θ | x) is, a [`flow`] or a [`score`];
//! [`training`]: how it is learnt, with the [`estimator`] of the loss; `inference`: the algorithm; `evaluation`: how good
//! a posterior is; [`run`]: a run on the disk; [`problem_file`]; [`report`]: the page; `infer`: the front door.

#![deny(missing_docs)]
#![warn(unreachable_pub)]

mod density;
mod error;
mod evaluation;
mod infer;
mod inference;
pub mod math;
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
pub use estimator::Method;
pub use evaluation::{TaskJudge, abc, levels, metrics};
pub use flow::{FlowConfig, SplineFlow, Tape};
pub use infer::{Found, Infer, infer};
pub use inference::{
    Assignment, EpochRecord, Event, Inference, Judge, Observer, Posterior, RoundReport,
    SampleStreams, Scores, SimulatedRow, State, Training, config, failures, infer_from, propose,
    steps, truncation,
};
pub use named::Named;
pub use network::kernel;
pub use prior::{Marginal, Prior};
pub use problem::{Problem, ProblemRecord, Source, check, prior, simulator, tasks};
pub use rows::Rows;
pub use simulator::{Simulator, from_fn};
pub use tasks::Task;
pub use training::{Cpu, Device, Machine, estimator};

/// The README's example, kept true by compiling it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
