//! How good a posterior is: metrics, calibration, a judge where the truth is known, a baseline, the levels of an estimator.

pub mod abc;
pub mod calibration;
mod judge;
pub mod levels;
pub mod metrics;

pub use judge::TaskJudge;
