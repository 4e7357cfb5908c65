//! Arguments of the commands that try a problem, or spread a run over a cluster: check, propose, merge, train; and which
//! shard to simulate.

use super::problem::ProblemArgs;
use super::runs::{ConfigArgs, ProgramArgs};
use super::{DeviceArgs, ThreadsArgs, whole};
use clap::Parser;
use std::path::PathBuf;

#[derive(Debug, Parser)]
pub struct ProposeArgs {
    /// Directory of the run; one that does not exist is made, if a task or a problem file is given as well.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// A built-in task, or the TOML file of a problem, for the first round.
    #[arg(value_name = "TASK|FILE.toml", value_parser = super::problem::given)]
    given: Option<super::problem::Given>,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Simulations of a round, as --simulations; all rounds have as many.
    #[arg(short = 'n', value_name = "COUNT", value_parser = whole::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub count: Option<usize>,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

impl ProposeArgs {
    pub fn problem(&self) -> Option<ProblemArgs> {
        self.given.clone().map(ProblemArgs::of)
    }
}

#[derive(Debug, Parser)]
pub struct MergeArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Files of `didyma simulate --shard`, in any order; one that was merged before changes nothing.
    #[arg(value_name = "SHARD", required = true)]
    pub shards: Vec<PathBuf>,
}

#[derive(Debug, Parser)]
pub struct TrainArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct CheckArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Number of simulations.
    #[arg(short = 'n', long = "count", default_value = "100", value_name = "COUNT")]
    #[arg(value_parser = super::problems::count, allow_negative_numbers = true)]
    pub count: usize,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Write a page with the figures as well.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// One of so many parts, from 1.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub part: usize,
    pub of: usize,
}

impl Part {
    /// Which of so many simulations are in it.
    pub fn range(self, total: usize) -> std::ops::Range<usize> {
        let Self { part, of } = self;
        total * (part - 1) / of..total * part / of
    }
}

pub fn part(text: &str) -> Result<Part, String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((part, of)) if (1..=of).contains(&part) && of <= 1_000_000 => Ok(Part { part, of }),
        _ => {
            Err("give the number of the shard and how many there are, as 3/20: from 1/20 to 20/20"
                .to_owned())
        }
    }
}
