//! The question: which parameters may have led to this observation?

pub mod check;
mod oddity;
pub mod prior;
pub(crate) mod question;
pub(crate) mod record;
pub mod simulator;
pub mod tasks;

pub use oddity::Oddity;
pub use question::Problem;
pub use record::{ProblemRecord, Source};
