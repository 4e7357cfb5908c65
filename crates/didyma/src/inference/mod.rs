//! The algorithm: rounds that propose, simulate and train, and the posterior that they lead to.

mod batch;
pub mod config;
pub(crate) mod events;
pub mod failures;
pub(crate) mod posterior;
mod rounds;
mod simulating;
pub(crate) mod simulations;
mod split;
mod state;
pub mod steps;
pub mod truncation;

pub use events::{Event, Observer};
pub use posterior::{Posterior, SampleStreams};
pub use rounds::{infer, propose};
pub use simulating::Simulating;
pub use state::{Inference, Judge, Model, Progress, RoundReport, Scores, SimulatedRow, Training};
