//! Timing of training steps.

mod report;
mod step;

pub use step::StepBench;
