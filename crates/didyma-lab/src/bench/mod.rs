//! Timing of training steps.

mod report;
mod step;

pub use report::StepReport;
pub use step::StepBench;
