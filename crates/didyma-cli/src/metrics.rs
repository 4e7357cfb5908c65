//! `didyma metrics`: how far two sets of samples are from each other.

use crate::args::MetricsArgs;
use anyhow::{Context, bail};
use didyma::Rows;
use didyma::metrics::{c2st, median_distance, mmd2, sliced_wasserstein};
use didyma::rng::{Purpose, Streams};
use didyma::simulator;
use didyma::table::Table;
use didyma::tasks::Task;
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;

/// Directions of the sliced Wasserstein distance.
const PROJECTIONS: usize = 200;

/// What was found; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct MetricsReport {
    c2st: f64,
    mmd2: f64,
    sliced_wasserstein: f64,
    /// Absent without a task.
    lmd: Option<f64>,
    reference_rows: usize,
    sample_rows: usize,
    columns: usize,
}

pub fn metrics(args: &MetricsArgs) -> anyhow::Result<MetricsReport> {
    let task = args.task();
    let (reference, columns) = read(&args.reference, args.index, task.as_ref())?;
    let (samples, sample_columns) = read(&args.samples, args.index, task.as_ref())?;
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
    let (threads, streams) = (args.run.threads(), Streams::new(args.run.seed));
    Ok(MetricsReport {
        c2st: c2st(reference, samples, threads, &streams)?,
        mmd2: mmd2(reference, samples, threads)?,
        sliced_wasserstein: sliced_wasserstein(reference, samples, PROJECTIONS, threads, &streams)?,
        lmd: task.map(|task| lmd(&task, samples, threads, &streams)).transpose()?,
        reference_rows: reference.len(),
        sample_rows: samples.len(),
        columns,
    })
}

/// The columns to compare: a task's parameters, or all.
fn read(path: &Path, index: bool, task: Option<&Task>) -> anyhow::Result<(Vec<f32>, usize)> {
    let table = Table::read(path, index)?;
    let Some(task) = task else { return Ok((table.data, table.columns)) };
    let names: Vec<&str> = task.prior.names().collect();
    let data = table.select(&names).with_context(|| {
        let (path, task) = (path.display(), task.name);
        format!("{path} lacks a parameter of {task}: it needs the columns {}", names.join(", "))
    })?;
    Ok((data, names.len()))
}

/// log of the median distance of one simulation per sample; samples outside the prior are an error.
fn lmd(task: &Task, samples: Rows, threads: usize, streams: &Streams) -> anyhow::Result<f64> {
    for (i, row) in samples.iter().enumerate() {
        let theta: Vec<f64> = row.iter().map(|&v| f64::from(v)).collect();
        task.prior
            .expect_inside(&theta)
            .with_context(|| format!("row {} of the samples", i + 1))?;
    }
    let streams = streams.simulations(Purpose::Metric, 0);
    let go_on = &mut |_| ControlFlow::Continue(());
    let found = simulator::simulate(&*task.simulator, samples, &streams, 0, threads, go_on)?;
    let x = Rows::new("x", &found.x, task.simulator.x_dim())?;
    Ok(median_distance(x, &task.observation, &task.scale)?.ln())
}

impl fmt::Display for MetricsReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { c2st, mmd2, sliced_wasserstein, reference_rows, sample_rows, columns, .. } =
            self;
        writeln!(
            f,
            "{reference_rows} reference and {sample_rows} sample rows of {columns} columns"
        )?;
        writeln!(f, "  C2ST                {c2st:.4}   0.5: cannot be told apart, 1: always")?;
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
