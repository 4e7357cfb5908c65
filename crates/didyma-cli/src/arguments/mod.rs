//! Arguments that several commands share, checked as they are read.

mod config;
mod device;
mod estimator;
mod observations;
mod problem;
mod program;
mod table;
mod values;

pub use config::ConfigArgs;
pub use device::DeviceArgs;
pub use estimator::{EstimatorArgs, multilevel};
pub use observations::Observations;
pub use problem::{LoadedProblem, ProblemArgs, ProblemChoice, given};
pub use program::ProgramArgs;
pub use table::{columns_of, free_name};
pub use values::{between, count, members, named, seeds, threads, whole};

use clap::Parser;
use didyma::parallel;

/// On how many threads to work.
#[derive(Debug, Parser)]
pub struct ThreadsArgs {
    /// Threads [default: all cores]. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl ThreadsArgs {
    pub fn count(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }
}

/// Seed and threads.
#[derive(Debug, Parser)]
pub struct RunArgs {
    /// Seed of all random numbers.
    #[arg(long, default_value = "1", value_name = "NUMBER", value_parser = whole::<u64>)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}
