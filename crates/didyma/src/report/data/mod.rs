//! Runs as they are drawn: one of them, and several side by side.

mod checks;
mod columns;
mod compare;
mod run;

pub(super) use checks::{Check, checks, joint_check};
pub use columns::{Columns, columns};
pub use compare::{Cohort, Comparison};
pub use run::RunData;
