//! Timing of training steps.

mod peak;
mod report;
mod step;

pub use report::StepReport;
pub use step::StepBench;
