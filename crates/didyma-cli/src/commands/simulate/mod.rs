//! `didyma simulate`: simulations of a problem, or one shard of a round.

mod shard;

use crate::arguments::{LoadedProblem, ProblemArgs, ProgramArgs, ThreadsArgs, count, whole};
use crate::output::{check_out, show, tell, write};
use crate::terminal::bar;
use crate::{DONE, ExitCode};
use anyhow::Context;
use clap::Parser;
use didyma::Rows;
use didyma::rng::{Purpose, Streams};
use didyma::simulator::{self, Simulations};
use didyma::storage::Table;
use didyma::tasks::Task;
use serde::Serialize;
use shard::{Part, part};
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Simulate a task or a problem of your own: at given parameters, at draws of its prior, or one shard of a round.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma simulate problem.toml -n 100 --out rows.csv
  didyma simulate problem.toml --proposal run/proposal-1.csv --shard 3/20 --out shard-3.db
  didyma simulate two-moons -n 5 --theta 0.2,0.3
  didyma simulate lotka-volterra -n 100000 --seed 7 --out lv.csv")]
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

pub fn run(args: &SimulateArgs) -> anyhow::Result<ExitCode> {
    if let Some(part) = args.shard {
        return shard::simulate(args, part);
    }
    simulate(args)?.map_or(Ok(DONE), |report| show(&report, args.json))
}

/// A run of simulations; its field names are the JSON keys.
#[derive(Debug, Serialize)]
struct SimulateReport {
    task: String,
    simulations: usize,
    failures: usize,
    first_failure: Option<String>,
    seed: u64,
    threads: usize,
    seconds: f64,
    per_second: f64,
    out: String,
}

impl fmt::Display for SimulateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, simulations, seconds, per_second, out, .. } = self;
        write!(
            f,
            "{simulations} simulations of {task} in {seconds:.2} s ({per_second:.0} a second), written to {out}"
        )?;
        match &self.first_failure {
            Some(reason) => {
                write!(f, "\n{} of them failed, the first because {reason}", self.failures)
            }
            None => Ok(()),
        }
    }
}

/// Simulates and writes the rows; without a file they go to the terminal, and there is nothing to report.
fn simulate(args: &SimulateArgs) -> anyhow::Result<Option<SimulateReport>> {
    let LoadedProblem { task, file } =
        args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(file.as_ref().map(|(problem, _)| problem))?;
    let (count, seed) = (args.count.context("-n is needed")?, args.seed.unwrap_or(1));
    check_out(args.out.as_deref())?;
    let theta = parameters(&task, args, count)?;
    let rows = Rows::new("theta", &theta, task.problem.prior().dim())?;
    let streams = Streams::new(seed).simulations(Purpose::Simulation, 0);
    let bar = bar(count as u64, "{bar:40} {pos}/{len} simulations, {per_sec}");
    let mut observe = |progress: simulator::Progress| {
        bar.set_position(progress.done as u64);
        ControlFlow::Continue(())
    };
    let threads = args.threads.count();
    let found =
        simulator::simulate(task.problem.simulator(), rows, &streams, 0, threads, &mut observe)?;
    bar.finish_and_clear();
    let Simulations { x, failures, seconds, .. } = found;
    if let (None, Some(first)) = (&args.out, failures.first()) {
        tell(&format!(
            "note: {} simulations failed, the first because {}",
            failures.len(),
            first.reason
        ));
    }
    write(table(&task, rows, &x), args.out.as_deref())?;
    Ok(args.out.as_ref().map(|out| SimulateReport {
        task: task.name,
        simulations: count,
        failures: failures.len(),
        first_failure: failures.first().map(|failure| failure.reason.clone()),
        seed,
        threads,
        seconds,
        per_second: count as f64 / seconds,
        out: out.display().to_string(),
    }))
}

/// Parameters, then summaries.
fn table(task: &Task, theta: Rows, x: &[f64]) -> Table {
    let names =
        task.problem.prior().names().map(str::to_owned).chain(task.summaries.iter().cloned());
    let columns = task.problem.prior().dim() + task.summaries.len();
    let mut data = Vec::with_capacity(theta.len() * columns);
    for (theta, x) in theta.iter().zip(x.chunks_exact(task.summaries.len())) {
        data.extend_from_slice(theta);
        data.extend_from_slice(x);
    }
    Table { names: names.collect(), columns, data }
}

/// θ of every row: drawn from the prior, or the same for all.
fn parameters(task: &Task, args: &SimulateArgs, count: usize) -> anyhow::Result<Vec<f64>> {
    let fixed = match args.theta.as_str() {
        "prior" => {
            let streams = Streams::new(args.seed.unwrap_or(1)).simulations(Purpose::Parameters, 0);
            return Ok(task.problem.prior().sample_rows(count, &streams, args.threads.count()));
        }
        "truth" => task.truth.clone().context(
            "--theta is \"truth\", but the problem has none: give numbers, or truth in its parameters",
        )?,
        text => text
            .split(',')
            .map(|field| field.trim().parse())
            .collect::<Result<_, _>>()
            .with_context(|| {
                format!(
                    "--theta is \"{text}\": give {} numbers separated by commas, prior, or truth",
                    task.problem.prior().dim()
                )
            })?,
    };
    task.problem.prior().expect_inside(&fixed).context("--theta")?;
    Ok(fixed.repeat(count))
}
