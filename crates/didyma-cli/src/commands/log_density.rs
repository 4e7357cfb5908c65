//! `didyma log-density`: the log-density of a run's posterior at given parameters.

use crate::arguments::{ThreadsArgs, columns_of};
use crate::output::{check_out, print, tell, write};
use crate::{DONE, ExitCode};
use clap::Parser;
use didyma::Rows;
use didyma::run::RunDir;
use didyma::storage::Table;
use std::path::PathBuf;

/// Compute the log-density of a run's posterior at given parameters.
#[derive(Debug, Parser)]
pub struct LogDensityArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// CSV file with parameters, one set on each line.
    #[arg(long, value_name = "FILE")]
    pub theta: PathBuf,

    /// CSV file to write: the parameters and their log-density [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

/// Writes log-densities of given parameters.
pub fn run(args: &LogDensityArgs) -> anyhow::Result<ExitCode> {
    check_out(args.out.as_deref())?;
    let posterior = RunDir::read(&args.dir)?.posterior()?;
    let names: Vec<&str> = posterior.prior().names().collect();
    let theta = columns_of("--theta", &args.theta, &names)?;
    let rows = Rows::new("theta", &theta, names.len())?;
    let found = posterior.log_density(rows, args.threads.count())?;
    let outside = rows.iter().filter(|row| !posterior.prior().contains(row)).count();
    if outside > 0 {
        tell(&format!("note: {outside} rows lie outside the prior; their log-density is -inf"));
    }
    let data = rows.iter().zip(&found).flat_map(|(row, l)| row.iter().copied().chain([*l]));
    let data = data.collect();
    let names = with_density(&names);
    write(Table { columns: names.len(), names, data }, args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} rows written to {}", found.len(), out.display())),
        None => Ok(DONE),
    }
}

/// The parameters' names and that of the density's column, which no parameter has.
fn with_density(names: &[&str]) -> Vec<String> {
    let mut density = "log_density".to_owned();
    while names.contains(&density.as_str()) {
        density.push('_');
    }
    names.iter().map(|&name| name.to_owned()).chain([density]).collect()
}

#[cfg(test)]
mod tests {
    use super::with_density;

    #[test]
    fn the_columns_names_differ() {
        assert_eq!(with_density(&["a"]), ["a", "log_density"]);
        assert_eq!(with_density(&["log_density"]), ["log_density", "log_density_"]);
    }
}
