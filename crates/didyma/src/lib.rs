//! Didyma: simulation-based Bayesian inference by sequential neural posterior estimation.
//!
//! Given a simulator, a prior and an observation, a conditional neural spline flow q(θ | x) is trained
//! on simulated pairs until q(· | x_o) is the posterior. This is the library; the program `didyma` is a
//! thin layer on it.
//!
//! # A tour
//! Simulate pairs, train on them by maximum likelihood, and sample the posterior at an observation:
//!
//! ```
//! use didyma::estimator::Plan;
//! use didyma::rng::{Purpose, Streams};
//! use didyma::train::{AdamConfig, CpuEngine, Engine};
//! use didyma::{Dataset, FlowConfig, Rows, Scaling, SplineFlow};
//! use rand::RngExt;
//!
//! // θ ~ U(-1, 1), x = θ² + a little noise: the posterior at x = 0.25 has two modes, ±0.5.
//! let streams = Streams::new(1);
//! let mut rng = streams.stream(Purpose::Simulation, 0, 0);
//! let theta: Vec<f32> = (0..1000).map(|_| rng.random_range(-1.0..1.0)).collect();
//! let x: Vec<f32> = theta.iter().map(|t| t * t + rng.random_range(-0.05..0.05)).collect();
//! let (theta, x) = (Rows::new("theta", &theta, 1)?, Rows::new("x", &x, 1)?);
//! let data = Dataset::new(theta, x, &vec![-(2f64.ln()); 1000])?;
//!
//! // A small flow behind a scaling of both to unit variance, and an engine that trains it.
//! let config = FlowConfig { layers: 2, units: 16, bound: 3.0, ..FlowConfig::new(1, 1) };
//! let flow = SplineFlow::scaled(config, Scaling::of(theta)?, Scaling::of(x)?)?;
//! let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
//! let mut engine = CpuEngine::new(flow.clone(), params, &data, AdamConfig::default(), 1)?;
//! let mut plan = Plan::default();
//! for step in 0..200 {
//!     plan.clear();
//!     (0..100).for_each(|i| plan.push_own((100 * step + i) % 1000, 0.01));
//!     engine.step(&plan, 5e-3)?;
//! }
//!
//! // The posterior, by samples: both modes, and nothing in between.
//! let mut params = vec![0.0; flow.params_len()];
//! engine.read_params(&mut params);
//! let mut rng = streams.stream(Purpose::Posterior, 0, 0);
//! let (theta, _) = flow.sample(&params, &[0.25], 1000, &mut rng)?;
//! let near = |mode: f32| theta.iter().filter(|t| (**t - mode).abs() < 0.15).count();
//! assert!(near(0.5) > 300 && near(-0.5) > 300 && near(0.0) < 100);
//! # Ok::<(), didyma::Error>(())
//! ```
//!
//! # The modules, in reading order
//! [`rows`], [`rng`] and [`error`] are what everything uses; [`dataset`] holds simulations;
//! [`estimator`] says what a training step computes; [`flow`] is q(θ | x), on the loops of [`kernel`];
//! [`train`] brings them together; [`metrics`] compares the samples with those of a reference.

#![deny(missing_docs)]

pub mod baseline;
mod cholesky;
pub mod config;
pub mod coordinates;
pub mod dataset;
pub mod diagnostics;
mod dual;
pub mod error;
pub mod estimator;
pub mod files;
pub mod flow;
pub mod judge;
#[allow(unsafe_code)]
pub mod kernel;
pub mod metrics;
mod normal;
pub mod observe;
pub mod parallel;
pub mod posterior;
pub mod prior;
mod records;
pub mod report;
pub mod rng;
pub mod rounds;
pub mod rows;
pub mod run;
pub mod simulator;
pub mod table;
pub mod tasks;
pub mod tensors;
pub mod toy;
pub mod train;
pub mod workload;

pub use dataset::Dataset;
pub use error::{Error, Result};
pub use flow::{FlowConfig, Scaling, SplineFlow, Tape};
pub use rows::Rows;

/// The README's example, kept true by compiling it.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;
