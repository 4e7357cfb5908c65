//! `didyma sample`: draws from a run's posterior.

use crate::arguments::{Observations, RunArgs, count, free_name, named};
use crate::output::{check_out, print, write};
use crate::{DONE, ExitCode};
use clap::Parser;
use didyma::rng::{Purpose, Streams};
use didyma::run::RunDir;
use didyma::storage::Table;
use didyma::{Points, SampleStreams};
use std::path::PathBuf;

/// Draw samples from a run's posterior.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma sample runs/two-moons-tgrr-1 -n 5000 --out samples.csv
  didyma sample runs/two-moons-tgrr-1 --x other.csv
  didyma sample runs/two-moons-tgrr-1 --x many.csv -n 1000 --out draws.csv
  didyma sample runs/two-moons-tgrr-1 -n 4096 --points sobol --out even.csv

With several rows in --x, the first column of the result, `observation`, is the number of the row, from 1:
  observation,theta1,theta2
  1,0.31,-0.2
  …")]
pub struct SampleArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Number of samples, for each observation.
    #[arg(short = 'n', long = "samples", default_value = "1000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file with summaries, an observation on each line, in place of the run's. A posterior by npe is good wherever the
    /// prior's simulations fall; one of other methods near the run's observation only. A warning tells if one is outside of all
    /// simulations of the last round.
    #[arg(long, visible_alias = "observation", value_name = "FILE")]
    pub x: Option<PathBuf>,

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
    let x = Observations::read(&run, &posterior, args.x.as_deref())?;
    // Other numbers than those of posterior.csv, which are round 0.
    let streams = Streams::new(args.run.seed);
    let from = SampleStreams::new(streams, Purpose::Posterior, 1).by(args.points);
    let found = posterior.sample_many(x.rows()?, args.count, from, args.run.threads.count());
    let theta = found.map_err(|error| x.located(error))?;
    let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
    let observations = x.rows()?.len();
    let table = Table { columns: names.len(), names, data: theta };
    let table = if observations > 1 { numbered(table, args.count) } else { table };
    write(table, args.out.as_deref())?;
    let Some(out) = &args.out else { return Ok(DONE) };
    let each =
        if observations > 1 { format!(" of {observations} observations") } else { String::new() };
    print(&format!("{} samples{each} written to {}", args.count * observations, out.display()))
}

/// The table with the number of the observation, from 1, before each of its rows: so many rows have the same.
fn numbered(table: Table, each: usize) -> Table {
    let Table { mut names, columns, data } = table;
    let of = |(row, theta): (usize, &[f64])| {
        let number = (row / each + 1) as f64;
        [number].into_iter().chain(theta.iter().copied()).collect::<Vec<_>>()
    };
    let data = data.chunks_exact(columns).enumerate().flat_map(of).collect();
    names.insert(0, free_name("observation", &names));
    Table { names, columns: columns + 1, data }
}
