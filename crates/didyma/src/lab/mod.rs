//! Studies of the estimators.

pub mod complexity;
pub mod convergence;
pub mod toy;
pub mod workload;
