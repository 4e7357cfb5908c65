//! Simulation-based Bayesian inference by sequential neural posterior estimation.

pub mod error;
pub mod flow;
pub mod kernel;
pub mod rng;
pub mod rows;

pub use error::{Error, Result};
pub use flow::{FlowConfig, Scaling, SplineFlow, Tape};
pub use rows::Rows;
