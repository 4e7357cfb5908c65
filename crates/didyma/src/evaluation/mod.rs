//! How good a posterior is: metrics, a judge where the truth is known, a baseline, the levels of an estimator.

pub mod abc;
mod judge;
pub mod levels;
pub mod metrics;

pub use judge::TaskJudge;
