//! `didyma bench simulate`: simulations per second of each task.

use crate::args::BenchSimulateArgs;
use didyma::Rows;
use didyma::rng::{Purpose, Streams};
use didyma::simulator;
use didyma::tasks::Task;
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;

/// Simulations of the first attempt, from which the size of the measured one follows.
const FIRST: usize = 200;

/// What was measured; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct SimulateReport {
    tasks: Vec<TaskSpeed>,
}

#[derive(Debug, Serialize)]
struct TaskSpeed {
    task: &'static str,
    threads: usize,
    simulations: usize,
    per_second: f64,
}

/// Simulates each task at its θ*, by one thread and by all.
pub fn simulate(args: &BenchSimulateArgs) -> anyhow::Result<SimulateReport> {
    let mut tasks = Vec::new();
    for task in args.tasks() {
        for threads in args.threads() {
            tasks.push(speed(&task, threads, args.seconds)?);
        }
    }
    Ok(SimulateReport { tasks })
}

fn speed(task: &Task, threads: usize, seconds: f64) -> anyhow::Result<TaskSpeed> {
    let truth: Vec<f32> = task.truth.iter().map(|&v| v as f32).collect();
    let run = |count: usize| -> anyhow::Result<f64> {
        let theta = truth.repeat(count);
        let rows = Rows::new("theta", &theta, truth.len())?;
        let streams = Streams::new(1).simulations(Purpose::Simulation, 0);
        let go_on = &mut |_| ControlFlow::Continue(());
        let found = simulator::simulate(&*task.simulator, rows, &streams, 0, threads, go_on)?;
        Ok(count as f64 / found.seconds)
    };
    // A short run finds the scale of the measured one.
    let few = ((run(FIRST)? * 0.1 * seconds) as usize).clamp(FIRST, MOST);
    let simulations = ((run(few)? * seconds) as usize).clamp(FIRST, MOST);
    Ok(TaskSpeed { task: task.name, threads, simulations, per_second: run(simulations)? })
}

/// Simulations of a measurement at most: their rows must fit into the memory.
const MOST: usize = 50_000_000;

impl fmt::Display for SimulateReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task              threads  simulations  per second")?;
        for TaskSpeed { task, threads, simulations, per_second } in &self.tasks {
            write!(f, "\n{task:<16}  {threads:>7}  {simulations:>11}  {per_second:>10.0}")?;
        }
        Ok(())
    }
}
