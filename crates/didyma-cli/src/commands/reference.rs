//! `didyma reference`: samples of a task's true posterior.

use crate::arguments::{ProblemArgs, RunArgs, count};
use crate::output::{check_out, print, samples, write};
use crate::{DONE, ExitCode};
use clap::Parser;
use didyma::rng::Streams;
use std::path::PathBuf;

/// Write samples of a task's true posterior: exact, by a Markov chain, or stored.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  didyma reference two-moons -n 2000 --out reference.csv")]
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

/// Writes samples of the true posterior.
pub fn run(args: &ReferenceArgs) -> anyhow::Result<ExitCode> {
    let task = args.problem.task()?;
    check_out(args.out.as_deref())?;
    let RunArgs { seed, .. } = args.run;
    let data = task.reference(args.count, &Streams::new(seed), args.run.threads.count())?;
    write(samples(&task, data), args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} samples written to {}", args.count, out.display())),
        None => Ok(DONE),
    }
}
