//! Runs as they are drawn: one of them, and several side by side.

mod compare;
mod run;

pub use compare::{Comparison, Group};
pub use run::{Columns, Epoch, RunData, columns, epochs};
