//! The algorithm: rounds that propose, simulate and train, and the posterior that they lead to.

mod assignment;
mod batch;
pub mod config;
pub(crate) mod events;
pub mod failures;
mod finish;
pub(crate) mod inner;
mod levels;
mod members;
pub(crate) mod noise;
pub(crate) mod posterior;
mod proposals;
pub(crate) mod ranges;
mod rounds;
pub(crate) mod simulations;
pub(crate) mod split;
mod state;
pub mod steps;
pub mod truncation;

pub use assignment::Assignment;
pub use events::{Event, Observer};
pub use posterior::{Points, Posterior, SampleStreams};
pub use ranges::Untrained;
pub use rounds::{infer_from, propose};
pub(crate) use state::sound;
pub use state::{
    EpochRecord, Inference, Judge, MemberReport, RoundReport, Scores, SimulatedRow, State, Training,
};
