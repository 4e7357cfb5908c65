//! Simulation-based Bayesian inference by sequential neural posterior estimation.

pub mod dataset;
pub mod error;
pub mod estimator;
pub mod flow;
pub mod kernel;
pub mod rng;
pub mod rows;
pub mod train;
pub mod workload;

pub use dataset::Dataset;
pub use error::{Error, Result};
pub use flow::{FlowConfig, Scaling, SplineFlow, Tape};
pub use rows::Rows;
