//! A run as it is drawn: everything that figures and pages need, read once.

use crate::diagnostics::{LevelReport, LevelStudy, TrainedFlow, level_settings};
use crate::error::Result;
use crate::estimator::Source;
use crate::posterior::{Posterior, SampleStreams};
use crate::prior::{Marginal, Prior};
use crate::rng::{Purpose, Streams};
use crate::rounds::{RoundReport, SimulatedRow};
use crate::rows::Rows;
use crate::run::{Manifest, RunDir, SUMMARY, Summary, posterior, reports};
use crate::simulator;
use crate::tasks::{Reference, Task};
use serde::Deserialize;
use std::ops::ControlFlow;
use std::path::Path;

/// Samples of the posterior that are drawn.
const SAMPLES: usize = 10_000;
/// Samples of the reference, at most.
const REFERENCE: usize = 2_000;
/// Simulations of the predictive check.
const PREDICTIVE: usize = 400;
/// The highest level that is measured, and evaluations at each: enough for rates, in a fraction of a second.
const HIGHEST: u32 = 5;
const EVALUATIONS: usize = 4_000;

/// Numbers by column.
pub type Columns = Vec<Vec<f64>>;

/// One epoch of training.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
pub struct Epoch {
    /// The round.
    pub round: u32,
    /// The epoch, from 1.
    pub epoch: u32,
    /// Its mean training loss; none if it was no number.
    pub train_loss: Option<f64>,
    /// The validation loss after it.
    pub validation_loss: Option<f64>,
}

/// A run as it is drawn.
#[derive(Debug)]
pub struct RunData {
    /// The directory's name.
    pub name: String,
    /// What the run is of.
    pub manifest: Manifest,
    /// Its results in short.
    pub summary: Summary,
    /// The prior.
    pub prior: Prior,
    /// What the parameters are called.
    pub labels: Vec<String>,
    /// The parameters that the observation is thought to come from.
    pub truth: Option<Vec<f64>>,
    /// The observation, with the names of its numbers.
    pub observation: Vec<(String, f64)>,
    /// Samples of the posterior, by parameter; none before the first round is done.
    pub samples: Option<Columns>,
    /// Samples of the true posterior, by parameter.
    pub reference: Option<Columns>,
    /// Parameters that were simulated: by round, then by parameter.
    pub proposals: Vec<Columns>,
    /// Simulations stored, and those of them that failed, by round.
    pub simulated: Vec<(usize, usize)>,
    /// The first words of the commonest failure.
    pub failure: Option<String>,
    /// Epochs in order.
    pub training: Vec<Epoch>,
    /// Simulations at samples of the posterior, by summary.
    pub predictive: Option<Columns>,
    /// Moments of the levels of the run's estimator on its flow.
    pub levels: Option<LevelReport>,
}

impl RunData {
    /// Reads a run, also while it goes on. The result is the same for any number of threads.
    pub fn read(path: &Path, threads: usize) -> Result<Self> {
        let run = RunDir::read(path)?;
        let manifest = Manifest::of(&run)?;
        let reports = reports(&run)?;
        let rows = run.rows()?;
        let posterior = if reports.is_empty() { None } else { Some(posterior(&run)?) };
        let task = Task::named(&manifest.task);
        let prior = match (&posterior, &task) {
            (Some(posterior), _) => posterior.prior().clone(),
            (None, Some(task)) => task.prior.clone(),
            (None, None) => return Err(unknown(&manifest.task)),
        };
        let streams = Streams::new(manifest.config.seed);
        let theta = posterior.as_ref().map(|posterior| {
            let from = SampleStreams::new(streams, Purpose::Posterior, 0);
            posterior.sample(SAMPLES, from, threads).map(|found| found.theta)
        });
        let theta = theta.transpose()?;
        let dim = prior.dim();
        let predictive = match (&task, &theta) {
            (Some(task), Some(theta)) => Some(predictive(task, theta, streams, threads)?),
            _ => None,
        };
        let measured = posterior.as_ref().map(|p| levels(&manifest, p, &rows, &reports, threads));
        let (proposals, simulated) = by_round(&rows, dim);
        Ok(Self {
            name: name_of(path),
            labels: labels(&prior, task.as_ref()),
            truth: task.as_ref().map(|task| task.truth.clone()),
            observation: observation(posterior.as_ref(), task.as_ref()),
            reference: task
                .as_ref()
                .map(|task| reference(task, streams, threads))
                .transpose()?
                .flatten(),
            samples: theta.map(|theta| columns(&theta, dim)),
            summary: summary(&run, &manifest, reports),
            failure: commonest_failure(&rows),
            training: epochs(&run)?,
            levels: measured.flatten(),
            manifest,
            prior,
            proposals,
            simulated,
            predictive,
        })
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// Where a parameter can lie by the prior.
    pub fn support(&self, parameter: usize) -> (f64, f64) {
        match self.prior.parameters()[parameter].marginal {
            Marginal::Uniform { low, high } => (low, high),
            Marginal::LogNormal { .. } => (0.0, f64::INFINITY),
            Marginal::Normal { .. } => (f64::NEG_INFINITY, f64::INFINITY),
        }
    }

    /// The method with what sets this run apart from others of the same task, but not its seed.
    pub fn method(&self) -> String {
        let Summary { method, profile, .. } = &self.summary;
        match profile.as_str() {
            "default" => method.clone(),
            other => format!("{method} ({other})"),
        }
    }
}

fn unknown(task: &str) -> crate::Error {
    crate::Error::setting("task", task, "one that this version has: update Didyma")
}

fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
}

fn labels(prior: &Prior, task: Option<&Task>) -> Vec<String> {
    match task {
        Some(task) => task.labels.iter().map(|&label| label.to_owned()).collect(),
        None => prior.names().map(str::to_owned).collect(),
    }
}

fn observation(posterior: Option<&Posterior>, task: Option<&Task>) -> Vec<(String, f64)> {
    let values = posterior.map(|posterior| posterior.observation().to_vec());
    let values = values.or_else(|| task.map(|task| task.observation.clone())).unwrap_or_default();
    let name = |i: usize| match task.and_then(|task| task.summaries.get(i)) {
        Some(name) => (*name).to_owned(),
        None => format!("x{}", i + 1),
    };
    values.into_iter().enumerate().map(|(i, value)| (name(i), value)).collect()
}

/// What the run's own process wrote, where it did: memory is known to nobody else.
fn summary(run: &RunDir, manifest: &Manifest, reports: Vec<RoundReport>) -> Summary {
    let written = std::fs::read(run.file(SUMMARY)).ok();
    let written = written.and_then(|bytes| serde_json::from_slice::<Summary>(&bytes).ok());
    Summary {
        peak_rss_mb: written.and_then(|written| written.peak_rss_mb),
        version: run.version().to_owned(),
        ..Summary::new(manifest, reports)
    }
}

/// Rows of `dim` numbers, column by column.
pub fn columns(rows: &[f32], dim: usize) -> Columns {
    (0..dim).map(|i| rows.iter().skip(i).step_by(dim).map(|&v| f64::from(v)).collect()).collect()
}

fn reference(task: &Task, streams: Streams, threads: usize) -> Result<Option<Columns>> {
    match task.reference {
        Reference::None => Ok(None),
        _ => Ok(Some(columns(&task.reference(REFERENCE, &streams, threads)?, task.prior.dim()))),
    }
}

fn predictive(task: &Task, theta: &[f32], streams: Streams, threads: usize) -> Result<Columns> {
    let dim = task.prior.dim();
    let rows = Rows::new("theta", &theta[..(PREDICTIVE * dim).min(theta.len())], dim)?;
    let streams = streams.simulations(Purpose::Diagnostic, 0);
    let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
    let found = simulator::simulate(&*task.simulator, rows, &streams, 0, threads, go_on)?;
    let mut all = columns(&found.x, task.simulator.x_dim());
    // A failed simulation is NaN throughout.
    all.iter_mut().for_each(|column| column.retain(|value| value.is_finite()));
    Ok(all)
}

/// Levels of the run's method, or none where it has no levels or too few simulations.
fn levels(
    manifest: &Manifest,
    posterior: &Posterior,
    rows: &[SimulatedRow],
    reports: &[RoundReport],
    threads: usize,
) -> Option<LevelReport> {
    let config = &manifest.config;
    if !config.estimator.method.is_multilevel() {
        return None;
    }
    let rows = rows.iter().filter(|row| row.round as usize <= reports.len()).cloned().collect();
    let mut flow = TrainedFlow::of_posterior(posterior, rows, threads).ok()?;
    let settings = level_settings(config, None, &flow);
    let filled = (flow.largest_block() / settings.m0.max(1)).checked_ilog2()?;
    let study = LevelStudy { settings, highest: filled.min(HIGHEST), budget: EVALUATIONS };
    study.run(&mut flow, Streams::new(config.seed)).ok()
}

fn by_round(rows: &[SimulatedRow], dim: usize) -> (Vec<Columns>, Vec<(usize, usize)>) {
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or(0);
    let of = |round| rows.iter().filter(move |row| row.round == round);
    let proposals = (1..=rounds).map(|round| {
        let column = |i: usize| of(round).map(|row| f64::from(row.theta[i])).collect();
        (0..dim).map(column).collect()
    });
    let counts = (1..=rounds).map(|r| (of(r).count(), of(r).filter(|row| row.x.is_err()).count()));
    (proposals.collect(), counts.collect())
}

fn commonest_failure(rows: &[SimulatedRow]) -> Option<String> {
    let mut reasons: Vec<&String> = rows.iter().filter_map(|row| row.x.as_ref().err()).collect();
    reasons.sort_unstable();
    let groups = reasons.chunk_by(|a, b| a == b);
    let commonest = groups.max_by_key(|group| group.len())?;
    Some(commonest[0].chars().take(200).collect())
}

/// The epochs that were logged, each once: after a kill some are trained again.
fn epochs(run: &RunDir) -> Result<Vec<Epoch>> {
    let mut all: Vec<Epoch> = Vec::new();
    for (_, _, json) in run.events()?.iter().filter(|(_, kind, _)| kind == "epochs") {
        // A line that cannot be read is no reason to draw nothing.
        all.extend(serde_json::from_str::<Vec<Epoch>>(json).unwrap_or_default());
    }
    all.sort_by_key(|epoch| (epoch.round, epoch.epoch));
    all.dedup_by_key(|epoch| (epoch.round, epoch.epoch));
    Ok(all)
}
