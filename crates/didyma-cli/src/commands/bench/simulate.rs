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
    task: String,
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
    let truth: Vec<f32> = task.truth.iter().flatten().map(|&v| v as f32).collect();
    let run = |count: usize| -> anyhow::Result<f64> {
        let theta = truth.repeat(count);
        let rows = Rows::new("theta", &theta, truth.len())?;
        let streams = Streams::new(1).simulations(Purpose::Simulation, 0);
        let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
        Ok(simulator::simulate(&*task.simulator, rows, &streams, 0, threads, go_on)?.seconds)
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
