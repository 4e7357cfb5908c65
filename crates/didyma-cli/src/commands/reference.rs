//! Arguments of the commands that work on tasks: simulate, reference, abc, metrics.

use super::cluster::{Part, part};
use super::problem::{Given, ProblemArgs, given};
use super::runs::ProgramArgs;
use super::{ThreadsArgs, whole};
use clap::Parser;
use didyma::tasks::Task;
use std::path::PathBuf;

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

#[derive(Debug, Parser)]
pub struct TasksArgs {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct SimulateArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Parameters of every simulation, separated by commas; or prior, for a draw of it each time; or truth.
    #[arg(long, default_value = "prior", value_name = "NUMBERS", allow_hyphen_values = true)]
    pub theta: String,

    /// Number of simulations.
    #[arg(short = 'n', long = "simulations", value_name = "COUNT", value_parser = count)]
    #[arg(allow_negative_numbers = true, required_unless_present = "shard")]
    pub count: Option<usize>,

    /// Simulate only part I of N of a round, into --out, a database that `didyma merge` reads. Interrupted, the same
    /// command goes on.
    #[arg(long, value_name = "I/N", value_parser = part, conflicts_with = "theta")]
    pub shard: Option<Part>,

    /// The round's parameters, a file of `didyma propose` [default: those of a run's first round, draws of the prior].
    #[arg(long, value_name = "FILE", requires = "shard", conflicts_with_all = ["count", "seed"])]
    pub proposal: Option<PathBuf>,

    /// Make failed simulations of the shard again, after the simulator was repaired.
    #[arg(long, requires = "shard")]
    pub retry_failed: bool,

    /// Seed of all random numbers [default: 1; with --shard, what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// CSV file to write: parameters, then summaries [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    /// Print one JSON object about the run instead of text; needs --out.
    #[arg(long, requires = "out")]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct ReferenceArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Number of samples.
    #[arg(short = 'n', long = "samples", default_value = "2000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file to write, or bare little-endian numbers if it ends in .f32 [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Parser)]
pub struct AbcArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Simulations at most.
    #[arg(long, value_name = "COUNT", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub simulations: u64,

    /// Particles of a generation.
    #[arg(long, default_value = "4000", value_name = "COUNT", value_parser = whole::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub particles: usize,

    /// Tolerance at which to stop.
    #[arg(long, default_value = "0", value_name = "DISTANCE", allow_negative_numbers = true)]
    pub tolerance: f64,

    /// Share of simulations accepted below which to stop.
    #[arg(long, default_value = "0.005", value_name = "SHARE", allow_negative_numbers = true)]
    pub acceptance: f64,

    /// Samples to write.
    #[arg(short = 'n', long = "samples", default_value = "2000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file to write, or bare little-endian numbers if it ends in .f32 [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Leave the particles where they are, without regression adjustment.
    #[arg(long)]
    pub no_adjust: bool,

    /// Plain rejection instead of generations: draws of the prior, of which the nearest are kept.
    #[arg(long)]
    pub rejection: bool,

    /// Leave out samples where the posterior is 0 for sure, if the task knows (mg1: no service is shorter than
    /// service_min, so that no time between departures is).
    #[arg(long)]
    pub known_support: bool,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object about the run instead of text; needs --out.
    #[arg(long, requires = "out")]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct MetricsArgs {
    /// Reference samples, CSV.
    #[arg(value_name = "REFERENCE")]
    pub reference: PathBuf,

    /// Samples to judge, CSV.
    #[arg(value_name = "SAMPLES")]
    pub samples: PathBuf,

    /// Task whose parameter columns are compared, and whose simulator gives the LMD.
    #[arg(long, value_name = "TASK|FILE.toml", value_parser = given)]
    task: Option<Given>,

    /// The first column of both files only numbers the rows.
    #[arg(long)]
    pub index: bool,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl MetricsArgs {
    pub fn task(&self) -> anyhow::Result<Option<Task>> {
        self.task.as_ref().map(Given::task).transpose()
    }
}

/// Rows that fit into a machine's memory.
pub(super) fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(count) if (1..=10_000_000).contains(&count) => Ok(count),
        _ => Err("give a whole number between 1 and 10000000".to_owned()),
    }
}
