//! `didyma tasks`, `simulate` and `reference`: what the built-in problems are, and samples of them.

use crate::args::{Loaded, ReferenceArgs, RunArgs, SimulateArgs};
use crate::{print, progress};
use anyhow::{Context, bail};
use didyma::Rows;
use didyma::files::write_whole;
use didyma::rng::{Purpose, Streams};
use didyma::simulator::{self, Simulations};
use didyma::table::Table;
use didyma::tasks::{Reference, Task};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

/// All tasks; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct TaskList {
    tasks: Vec<TaskLine>,
}

#[derive(Debug, Serialize)]
struct TaskLine {
    name: String,
    about: String,
    parameters: Vec<ParameterLine>,
    summaries: Vec<String>,
    observation: Vec<f64>,
    truth: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    reference: &'static str,
}

#[derive(Debug, Serialize)]
struct ParameterLine {
    name: String,
    label: String,
    prior: String,
}

pub fn tasks() -> TaskList {
    let line = |task: Task| {
        let parameters = task.prior.parameters().iter();
        TaskLine {
            name: task.name,
            about: task.about,
            parameters: parameters
                .zip(task.labels)
                .map(|(p, label)| ParameterLine {
                    name: p.name.clone(),
                    label,
                    prior: p.marginal.to_string(),
                })
                .collect(),
            summaries: task.summaries,
            observation: task.observation,
            truth: task.truth,
            scale: task.scale,
            reference: match task.reference {
                Reference::Exact(_) => "exact",
                Reference::Chain { .. } => "Markov chain",
                Reference::Stored(_) => "stored ABC",
                Reference::None => "none",
            },
        }
    };
    TaskList { tasks: Task::NAMES.into_iter().filter_map(Task::named).map(line).collect() }
}

impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task              parameters  summaries  reference     about")?;
        for t in &self.tasks {
            let (parameters, summaries) = (t.parameters.len(), t.summaries.len());
            let (name, reference, about) = (&t.name, t.reference, &t.about);
            write!(f, "\n{name:<16}  {parameters:>10}  {summaries:>9}  {reference:<12}  {about}")?;
        }
        Ok(())
    }
}

/// A run of simulations; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct SimulateReport {
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
pub fn simulate(args: &SimulateArgs) -> anyhow::Result<Option<SimulateReport>> {
    let Loaded { task, file } = args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(file.as_ref().map(|(problem, _)| problem))?;
    let (count, seed) = (args.count.context("-n is needed")?, args.seed.unwrap_or(1));
    check_out(args.out.as_deref())?;
    let theta = parameters(&task, args, count)?;
    let dim = task.prior.dim();
    let rows = Rows::new("theta", &theta, dim)?;
    let streams = Streams::new(seed).simulations(Purpose::Simulation, 0);
    let bar = progress::bar(count as u64, "{bar:40} {pos}/{len} simulations, {per_sec}");
    let mut observe = |progress: simulator::Progress| {
        bar.set_position(progress.done as u64);
        ControlFlow::Continue(())
    };
    let threads = args.threads.count();
    let found = simulator::simulate(&*task.simulator, rows, &streams, 0, threads, &mut observe)?;
    bar.finish_and_clear();
    let Simulations { x, failures, seconds, .. } = found;
    let columns = dim + task.summaries.len();
    let mut data = Vec::with_capacity(count * columns);
    for (theta, x) in rows.iter().zip(x.chunks_exact(task.summaries.len())) {
        data.extend_from_slice(theta);
        data.extend_from_slice(x);
    }
    if let (None, Some(first)) = (&args.out, failures.first()) {
        crate::tell(&format!(
            "note: {} simulations failed, the first because {}",
            failures.len(),
            first.reason
        ));
    }
    let names = task.prior.names().map(str::to_owned).chain(task.summaries.iter().cloned());
    write(Table { names: names.collect(), columns, data }, args.out.as_deref())?;
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

/// θ of every row: drawn from the prior, or the same for all.
fn parameters(task: &Task, args: &SimulateArgs, count: usize) -> anyhow::Result<Vec<f32>> {
    let fixed = match args.theta.as_str() {
        "prior" => {
            let streams = Streams::new(args.seed.unwrap_or(1)).simulations(Purpose::Parameters, 0);
            return Ok(task.prior.sample_rows(count, &streams, args.threads.count()));
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
                    task.prior.dim()
                )
            })?,
    };
    task.prior.expect_inside(&fixed).context("--theta")?;
    let fixed: Vec<f32> = fixed.iter().map(|&t| t as f32).collect();
    Ok(fixed.repeat(count))
}

/// Writes samples of the true posterior.
pub fn reference(args: &ReferenceArgs) -> anyhow::Result<()> {
    let task = args.problem.task()?;
    check_out(args.out.as_deref())?;
    let RunArgs { seed, .. } = args.run;
    let data = task.reference(args.count, &Streams::new(seed), args.run.threads.count())?;
    write(samples(&task, data), args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} samples written to {}", args.count, out.display())),
        None => Ok(()),
    }
}

/// A table of parameters.
pub fn samples(task: &Task, data: Vec<f32>) -> Table {
    let names = task.prior.names().map(str::to_owned).collect();
    Table { names, columns: task.prior.dim(), data }
}

/// Refuses a file that cannot be written before any work is spent on it.
pub fn check_out(out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() {
        bail!("--out is {}, a folder: give a file", path.display());
    }
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!(
            "--out: could not write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

/// Writes a table to a file, or to the terminal: CSV, or the bare numbers if its name ends in .f32.
pub fn write(table: Table, out: Option<&Path>) -> anyhow::Result<()> {
    match out {
        Some(path) if path.extension().is_some_and(|extension| extension == "f32") => {
            let bytes: Vec<u8> = table.data.iter().flat_map(|v| v.to_le_bytes()).collect();
            Ok(write_whole(path, &bytes)?)
        }
        Some(path) => Ok(table.write(path)?),
        None => print(table.text().trim_end()),
    }
}
