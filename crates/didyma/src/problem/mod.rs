//! The question: which parameters may have led to this observation? A prior, a simulator, an observation.

pub mod check;
pub mod prior;
pub(crate) mod record;
pub mod simulator;
pub mod tasks;

pub use record::{Problem, Source};
