//! `didyma metrics`: how far two sets of samples are from each other.

use crate::ExitCode;
use crate::arguments::{ProblemChoice, RunArgs, given};
use crate::output::show;
use anyhow::{Context, bail};
use clap::Parser;
use didyma::math::Estimate;
use didyma::metrics::{CLASSIFIER_SEEDS, c2st, median_distance, mmd2, sliced_wasserstein};
use didyma::rng::{Purpose, Streams};
use didyma::storage::Table;
use didyma::tasks::Task;
use didyma::{Rows, simulator};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Compare samples with a reference: C2ST, MMD², sliced Wasserstein, and LMD with a task.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma metrics reference.csv samples.csv
  didyma metrics reference.csv samples.csv --task mg1 --json | jq .c2st")]
pub struct MetricsArgs {
    /// Reference samples, CSV.
    #[arg(value_name = "REFERENCE")]
    pub reference: PathBuf,

    /// Samples to judge, CSV.
    #[arg(value_name = "SAMPLES")]
    pub samples: PathBuf,

    /// Task whose parameter columns are compared, and whose simulator gives the LMD.
    #[arg(long, value_name = "TASK|FILE.toml", value_parser = given)]
    task: Option<ProblemChoice>,

    /// The first column of both files only numbers the rows.
    #[arg(long)]
    pub index: bool,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl MetricsArgs {
    fn task(&self) -> anyhow::Result<Option<Task>> {
        self.task.as_ref().map(ProblemChoice::task).transpose()
    }
}

pub fn run(args: &MetricsArgs) -> anyhow::Result<ExitCode> {
    show(&metrics(args)?, args.json)
}

/// Directions of the sliced Wasserstein distance.
const PROJECTIONS: usize = 200;

/// Distances; the field names are the JSON keys.
#[derive(Debug, Serialize)]
struct MetricsReport {
    /// Mean over classifier seeds, and its standard error over them.
    c2st: f64,
    c2st_error: f64,
    c2st_seeds: usize,
    c2st_rows: usize,
    mmd2: f64,
    sliced_wasserstein: f64,
    /// Absent without a task.
    lmd: Option<f64>,
    reference_rows: usize,
    sample_rows: usize,
    columns: usize,
}

fn metrics(args: &MetricsArgs) -> anyhow::Result<MetricsReport> {
    let task = args.task()?;
    let reference = Table::read(&args.reference, args.index)?;
    let samples = Table::read(&args.samples, args.index)?;
    // What is compared: the task's parameters, the reference's columns by their names, or all columns in order.
    let names: Vec<String> = match &task {
        Some(task) => task.problem.prior().names().map(str::to_owned).collect(),
        None if samples.names.is_empty() => Vec::new(),
        None => reference.names.clone(),
    };
    let (reference, columns) = select(reference, &names, &args.reference)?;
    let (samples, sample_columns) = select(samples, &names, &args.samples)?;
    if columns != sample_columns {
        bail!(
            "{} has {columns} columns and {} has {sample_columns}: give files with the same parameters, or \
             --task to pick a task's columns by name",
            args.reference.display(),
            args.samples.display()
        );
    }
    let reference = Rows::new("reference", &reference, columns)?;
    let samples = Rows::new("samples", &samples, columns)?;
    let (threads, streams) = (args.run.threads.count(), Streams::new(args.run.seed));
    let rows = reference.len().min(samples.len());
    // First, since it can refuse a row.
    let lmd = task.map(|task| lmd(&task, samples, &args.samples, &args.run)).transpose()?;
    // With unequal numbers a classifier could always name the larger set.
    let c2st = c2st(first(reference, rows)?, first(samples, rows)?, threads, &streams)?;
    Ok(MetricsReport {
        c2st: c2st.mean,
        c2st_error: c2st.error,
        c2st_seeds: CLASSIFIER_SEEDS,
        c2st_rows: rows,
        mmd2: mmd2(reference, samples, threads)?,
        sliced_wasserstein: sliced_wasserstein(reference, samples, PROJECTIONS, threads, &streams)?,
        lmd,
        reference_rows: reference.len(),
        sample_rows: samples.len(),
        columns,
    })
}

/// The first rows.
fn first(rows: Rows<'_>, count: usize) -> didyma::Result<Rows<'_>> {
    Rows::new("samples", &rows.data()[..count * rows.columns()], rows.columns())
}

/// The columns of these names, or all if there are none.
fn select(table: Table, names: &[String], path: &Path) -> anyhow::Result<(Vec<f64>, usize)> {
    if names.is_empty() {
        return Ok((table.data, table.columns));
    }
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let data = table.select(&names).with_context(|| {
        format!("{} lacks a column: it needs {}", path.display(), names.join(", "))
    })?;
    Ok((data, names.len()))
}

/// log of the median distance of one simulation per sample; samples outside the prior are an error.
fn lmd(task: &Task, samples: Rows, path: &Path, run: &RunArgs) -> anyhow::Result<f64> {
    for (i, row) in samples.iter().enumerate() {
        task.problem
            .prior()
            .expect_inside(row)
            .with_context(|| format!("{}, row {}", path.display(), i + 1))?;
    }
    let (threads, streams) = (run.threads.count(), Streams::new(run.seed));
    let scale = task.distance_scale(&streams, threads)?;
    let streams = streams.simulations(Purpose::Metric, 0);
    let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
    let found =
        simulator::simulate(task.problem.simulator(), samples, &streams, 0, threads, go_on)?;
    let x = Rows::new("x", &found.x, task.problem.simulator().x_dim())?;
    Ok(median_distance(x, task.problem.observation(), &scale)?.ln())
}

impl fmt::Display for MetricsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { mmd2, sliced_wasserstein, reference_rows, sample_rows, columns, .. } = self;
        writeln!(
            f,
            "{reference_rows} reference and {sample_rows} sample rows of {columns} columns"
        )?;
        let (rows, seeds) = (self.c2st_rows, self.c2st_seeds);
        let equal = if reference_rows == sample_rows {
            String::new()
        } else {
            format!(", first {rows} rows of each")
        };
        let c2st = Estimate { mean: self.c2st, error: self.c2st_error };
        writeln!(
            f,
            "  C2ST                {c2st:.4}   0.5: cannot be told apart, 1: always (over {seeds} classifier seeds{equal})"
        )?;
        writeln!(f, "  MMD^2               {mmd2:.6}   0: the same law")?;
        write!(f, "  sliced Wasserstein  {sliced_wasserstein:.5}   mean shift along a line")?;
        match self.lmd {
            Some(lmd) => write!(
                f,
                "\n  LMD                 {lmd:.4}   log of the median distance to the observation"
            ),
            None => Ok(()),
        }
    }
}
