//! `didyma log-density`: the log-density of a run's posterior at given parameters.

use crate::arguments::{Observations, ThreadsArgs, columns_of, free_name};
use crate::output::{check_out, print, tell, write};
use crate::{DONE, ExitCode};
use anyhow::bail;
use clap::Parser;
use didyma::Rows;
use didyma::run::RunDir;
use didyma::storage::Table;
use std::path::PathBuf;

/// Compute the log-density of a run's posterior at given parameters.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma log-density runs/two-moons-tgrr-1 --theta samples.csv --out densities.csv
  didyma log-density runs/two-moons-tgrr-1 --theta samples.csv --x other.csv
  didyma log-density runs/two-moons-tgrr-1 --theta pairs.csv --x pairs.csv

The last takes pairs from one file, as `didyma simulate` writes them: columns are found by their names.")]
pub struct LogDensityArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// CSV file with parameters, one set on each line.
    #[arg(long, value_name = "FILE")]
    pub theta: PathBuf,

    /// CSV file with summaries, in place of the run's observation: one line for all parameters, or one for each set of them, in the
    /// same order. A warning tells if one is outside of all simulations of the last round.
    #[arg(long, value_name = "FILE")]
    pub x: Option<PathBuf>,

    /// CSV file to write: the parameters and their log-density [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// Writes log-densities of given parameters.
pub fn run(args: &LogDensityArgs) -> anyhow::Result<ExitCode> {
    check_out(args.out.as_deref())?;
    let run = RunDir::read(&args.dir)?;
    let posterior = run.posterior()?;
    let names: Vec<&str> = posterior.prior().names().collect();
    let theta = columns_of("--theta", &args.theta, &names)?;
    let rows = Rows::new("theta", &theta, names.len())?;
    let x = Observations::read(&run, &posterior, args.x.as_deref())?;
    let observed = x.rows()?;
    if ![1, rows.len()].contains(&observed.len()) {
        bail!(
            "--x: {} rows, where --theta has {}: give one row, or one for each set of parameters",
            observed.len(),
            rows.len()
        );
    }
    let found = posterior.log_density_many(rows, observed, args.threads.count());
    let found = found.map_err(|error| x.located(error))?;
    let outside = rows.iter().filter(|row| !posterior.prior().contains(row)).count();
    if outside > 0 {
        tell(&format!("note: {outside} rows lie outside the prior; their log-density is -inf"));
    }
    let data = rows.iter().zip(&found).flat_map(|(row, l)| row.iter().copied().chain([*l]));
    let data = data.collect();
    let density = free_name("log_density", &names);
    let names: Vec<String> = names.into_iter().map(str::to_owned).chain([density]).collect();
    write(Table { columns: names.len(), names, data }, args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} rows written to {}", found.len(), out.display())),
        None => Ok(DONE),
    }
}
