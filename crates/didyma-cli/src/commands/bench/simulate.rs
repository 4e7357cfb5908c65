//! `didyma bench simulate`: simulations per second of each task.

use super::seconds;
use crate::ExitCode;
use crate::arguments::threads;
use crate::output::show;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use didyma::{Rows, parallel, simulator};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;

/// Count simulations per second of each task at its true parameters.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma bench simulate
  didyma bench simulate --task mg1 --threads 1 --json")]
pub struct BenchSimulateArgs {
    /// Task to simulate [default: all].
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Task::NAMES))]
    task: Option<String>,

    /// Threads [default: one, then all cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    threads: Option<usize>,

    /// How long to measure each.
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    seconds: f64,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

impl BenchSimulateArgs {
    fn tasks(&self) -> Vec<Task> {
        let wanted = |name: &&str| self.task.as_deref().is_none_or(|task| task == *name);
        Task::NAMES.into_iter().filter(wanted).filter_map(Task::named).collect()
    }

    fn threads(&self) -> Vec<usize> {
        let mut all = self.threads.map_or(vec![1, parallel::cores()], |threads| vec![threads]);
        all.dedup();
        all
    }
}

pub fn run(args: &BenchSimulateArgs) -> anyhow::Result<ExitCode> {
    show(&simulate(args)?, args.json)
}

/// Simulations of the first attempt, from which the size of the measured one follows.
const FIRST: usize = 200;

/// Speeds; the field names are the JSON keys.
#[derive(Debug, Serialize)]
struct SimulateReport {
    tasks: Vec<TaskSpeed>,
}

#[derive(Debug, Serialize)]
struct TaskSpeed {
    task: String,
    threads: usize,
    simulations: usize,
    per_second: f64,
}

/// Simulates each task at its θ*, by one thread and by all.
fn simulate(args: &BenchSimulateArgs) -> anyhow::Result<SimulateReport> {
    let mut tasks = Vec::new();
    for task in args.tasks() {
        for threads in args.threads() {
            tasks.push(speed(&task, threads, args.seconds)?);
        }
    }
    Ok(SimulateReport { tasks })
}

fn speed(task: &Task, threads: usize, seconds: f64) -> anyhow::Result<TaskSpeed> {
    let truth: Vec<f64> = task.truth.iter().flatten().copied().collect();
    let run = |count: usize| -> anyhow::Result<f64> {
        let theta = truth.repeat(count);
        let rows = Rows::new("theta", &theta, truth.len())?;
        let streams = Streams::new(1).simulations(Purpose::Simulation, 0);
        let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
        Ok(simulator::simulate(task.problem.simulator(), rows, &streams, 0, threads, go_on)?
            .seconds)
    };
    // Short runs find how many simulations a tenth of the time holds.
    let mut batch = FIRST;
    for _ in 0..2 {
        batch = ((batch as f64 / run(batch)? * 0.1 * seconds) as usize).clamp(FIRST, LARGEST);
    }
    let (mut simulations, mut spent) = (0, 0.0);
    while spent < seconds {
        spent += run(batch)?;
        simulations += batch;
    }
    Ok(TaskSpeed {
        task: task.name.clone(),
        threads,
        simulations,
        per_second: simulations as f64 / spent,
    })
}

/// Simulations of a run at most: more would measure how fast the system hands out memory.
const LARGEST: usize = 1 << 20;

impl fmt::Display for SimulateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task              threads  simulations  per second")?;
        for TaskSpeed { task, threads, simulations, per_second } in &self.tasks {
            write!(f, "\n{task:<16}  {threads:>7}  {simulations:>11}  {per_second:>10.0}")?;
        }
        Ok(())
    }
}
