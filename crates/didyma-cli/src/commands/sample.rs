//! `didyma sample`: draws from a run's posterior.

use crate::arguments::{RunArgs, columns_of, count, named};
use crate::output::{check_out, print, tell, write};
use crate::{DONE, ExitCode};
use anyhow::bail;
use clap::Parser;
use didyma::rng::{Purpose, Streams};
use didyma::run::{RunDir, Summaries};
use didyma::storage::Table;
use didyma::tasks::Task;
use didyma::{Points, SampleStreams};
use std::path::{Path, PathBuf};

/// Draw samples from a run's posterior.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma sample runs/two-moons-tgrr-1 -n 5000 --out samples.csv
  didyma sample runs/two-moons-tgrr-1 --observation other.csv
  didyma sample runs/two-moons-tgrr-1 -n 4096 --points sobol --out even.csv")]
pub struct SampleArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Number of samples.
    #[arg(short = 'n', long = "samples", default_value = "1000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file with one row of summaries, another observation than the run's. Only near that one is the flow trained
    /// well: a warning tells if it is far.
    #[arg(long, value_name = "FILE")]
    pub observation: Option<PathBuf>,

    /// How samples are spread: independently (random), or more evenly, by Sobol's sequence (sobol): means over a power of two
    /// of them have smaller errors.
    #[arg(long, value_name = "NAME", default_value = "random", value_parser = named::<Points>())]
    pub points: Points,

    /// CSV file to write [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunArgs,
}

/// Writes samples of the run's posterior.
pub fn run(args: &SampleArgs) -> anyhow::Result<ExitCode> {
    check_out(args.out.as_deref())?;
    let run = RunDir::read(&args.dir)?;
    let posterior = run.posterior()?;
    let x = match &args.observation {
        Some(path) => {
            let x = observation(path, &run.manifest().task()?)?;
            warn_if_far(&run, &x)?;
            x
        }
        None => posterior.observation().to_vec(),
    };
    // Other numbers than those of posterior.csv, which are round 0.
    let streams = Streams::new(args.run.seed);
    let from = SampleStreams::new(streams, Purpose::Posterior, 1).by(args.points);
    let found = posterior.sample_at(&x, args.count, from, args.run.threads.count())?;
    let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
    write(Table { columns: names.len(), names, data: found.theta }, args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} samples written to {}", args.count, out.display())),
        None => Ok(DONE),
    }
}

/// One row of the task's summaries.
fn observation(path: &Path, task: &Task) -> anyhow::Result<Vec<f64>> {
    let names: Vec<&str> = task.summaries.iter().map(String::as_str).collect();
    let x = columns_of("--observation", path, &names)?;
    let rows = x.len() / task.summaries.len();
    if rows != 1 {
        bail!("--observation: {} has {rows} rows, but one is needed", path.display());
    }
    Ok(x.to_vec())
}

/// q is trained where simulations fell, which in later rounds is near x_o.
fn warn_if_far(run: &RunDir, x: &[f64]) -> anyhow::Result<()> {
    let last = run.rounds()? as u32;
    if let Some(words) = Summaries::of_round(run, last)?.untrained(x) {
        tell(&format!("warning: {words}"));
    }
    Ok(())
}
