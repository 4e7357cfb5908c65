//! Inference without a neural network, to compare with and to make references.

mod adjust;
mod population;
mod smc_abc;

pub use smc_abc::{Generation, SmcAbc, SmcAbcResult, StopReason};
