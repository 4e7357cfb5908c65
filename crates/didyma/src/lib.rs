//! Didyma: simulation-based Bayesian inference by sequential neural posterior estimation.
//!
//! Given a simulator, a prior and an observation, a conditional neural spline flow q(θ | x) is trained
//! on simulated pairs until q(· | x_o) is the posterior. This is the library; the program `didyma` is a
//! thin layer on it.
//!
//! # The first program
//! ```no_run
//! use didyma::{Prior, Problem, from_fn, infer};
//! use rand::RngExt;
//!
//! # fn main() -> didyma::Result<()> {
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
//! # Ok(())
//! # }
//! ```
//! `examples/first_inference.rs` is this program, run by the tests; `own_simulator.rs` and `step_by_step.rs` stand beside it.
//!
//! # The nouns
//! A [`Problem`] is a [`Prior`], a [`Simulator`] and an observation; a [`Task`] is one whose truth is known. [`infer()`]
//! makes a run of it: rounds that propose parameters, simulate them and train q(θ | x), by the settings of a [`Config`],
//! on a [`Device`], told event by event to an [`Observer`]. It ends with a [`Posterior`], and everything that led to it
//! lies in a [`RunDir`](run::RunDir). [`infer_from`] is the algorithm alone, without a directory, and [`steps`] is for those
//! who simulate themselves.
//!
//! # The rooms
//! A module imports only those above it in this list; `tests/architecture.rs` checks it.
//!
//! - `error`, [`rng`], `rows`, [`parallel`], `named`, `names`: what everything uses
//! - [`math`]: mathematics that knows nothing of inference
//! - [`storage`]: files that appear whole or not at all
//! - `problem`: what is asked ([`prior`], [`simulator`], [`tasks`])
//! - `network`: the arithmetic ([`kernel`])
//! - `density`: what q(θ | x) is ([`flow`], [`score`], [`coordinates`])
//! - [`training`]: how it is learnt ([`estimator`])
//! - `inference`: the algorithm ([`config`], [`truncation`], [`failures`], [`steps`])
//! - `evaluation`: how good a posterior is ([`metrics`], [`calibration`], [`abc`], [`levels`])
//! - [`run`]: a run on the disk
//! - [`problem_file`]: a problem as TOML
//! - [`report`]: the page about a run
//! - `infer`: the front door

#![deny(missing_docs)]
#![warn(unreachable_pub)]

mod density;
mod error;
mod evaluation;
mod infer;
mod inference;
pub mod math;
mod named;
mod names;
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
pub use evaluation::{TaskJudge, abc, calibration, levels, metrics};
pub use flow::{FlowConfig, SplineFlow, Tape};
pub use infer::{Found, Infer, infer};
pub use inference::{
    Assignment, EpochRecord, Event, Inference, Judge, MemberReport, Observer, Points, Posterior,
    RoundReport, SampleStreams, Scores, SimulatedRow, State, Training, Untrained, config, failures,
    infer_from, propose, steps, truncation,
};
pub use named::Named;
pub use names::readable;
pub use network::kernel;
pub use prior::{Marginal, Prior};
pub use problem::{Oddity, Problem, ProblemRecord, Source, check, prior, simulator, tasks};
pub use rows::Rows;
pub use simulator::{Simulator, from_fn};
pub use tasks::Task;
pub use training::{Cpu, Device, Machine, estimator};

/// The README's example, kept true by compiling it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
