//! A run as it is drawn: everything that figures and pages need, read once.

use super::columns::{Columns, columns};
use crate::error::{Error, Result};
use crate::evaluation::levels::{LevelReport, LevelStudy, TrainedFlow};
use crate::inference::posterior::Posterior;
use crate::inference::{EpochRecord, RoundReport, SimulatedRow};
use crate::problem::prior::Prior;
use crate::problem::simulator::{self, Simulator};
use crate::problem::tasks::{Reference, Task};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::run::{Checked, Findings, Manifest, Summary, Verdict};
use std::ops::ControlFlow;
use std::path::Path;

/// Samples of the reference, at most.
const REFERENCE: usize = 2_000;
/// Simulations of the predictive check.
const PREDICTIVE: usize = 1_000;
/// The highest level that is measured, and evaluations at each: enough for rates, in a fraction of a second.
const HIGHEST: u32 = 5;
const EVALUATIONS: usize = 4_000;

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
    /// Symbols of the parameters, where the task has them.
    pub symbols: Option<Vec<String>>,
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
    pub training: Vec<EpochRecord>,
    /// Simulations at samples of the posterior, by summary.
    pub predictive: Option<Columns>,
    /// Moments of the levels of the run's estimator on its flow.
    pub levels: Option<LevelReport>,
    /// The calibration of the posterior, or the reason why there is none.
    pub calibration: Checked,
    /// The verdict on the posterior, before simulations at its draws are looked at.
    pub verdict: Verdict,
    /// Warnings that no check of the verdict says.
    pub notes: Vec<String>,
}

impl RunData {
    /// Reads a run, also while it goes on.
    pub fn read(path: &Path, with_levels: bool, threads: usize) -> Result<Self> {
        Self::of(&Findings::read(path, threads)?, with_levels)
    }

    /// A run from what it found; levels are measured only if they are asked for, since that takes time. The result is
    /// the same for any number of threads.
    pub fn of(findings: &Findings, with_levels: bool) -> Result<Self> {
        let (run, threads) = (findings.run(), findings.threads());
        let (manifest, posterior) = (run.manifest().clone(), findings.posterior());
        let (rows, task) = (run.rows()?, manifest.task().ok());
        let prior = match (posterior, &task) {
            (Some(posterior), _) => posterior.prior().clone(),
            (None, Some(task)) => task.problem.prior().clone(),
            (None, None) => return Err(unknown(&manifest.task)),
        };
        let streams = Streams::new(manifest.config.seed);
        let theta = match findings.samples() {
            // A posterior that is nearly all outside of the prior has no figures, and the summary warns of it.
            Err(Error::Leakage { .. }) => None,
            theta => theta?,
        };
        let (task, dim) = (task.as_ref(), prior.dim());
        let predictive = match (task, theta) {
            (Some(task), Some(theta)) if manifest.is_cheap() => {
                let some = &theta[..(PREDICTIVE * dim).min(theta.len())];
                Some(predictive(task.problem.simulator(), some, streams, threads)?)
            }
            _ => None,
        };
        let measured = posterior.filter(|_| with_levels);
        let measured =
            measured.map(|p| levels(&manifest, p, &rows, &findings.results().rounds, threads));
        let (proposals, simulated) = by_round(&rows, dim);
        Ok(Self {
            name: name_of(run.path()),
            symbols: task.map(|task| task.labels.clone()),
            truth: task.and_then(|task| task.truth.clone()),
            observation: observation(posterior, task),
            reference: task.map_or(Ok(None), |task| reference(task, streams, threads))?,
            samples: theta.map(|theta| columns(theta, dim)),
            summary: findings.results().clone(),
            failure: commonest_failure(&rows),
            training: run.epochs()?,
            levels: measured.flatten(),
            calibration: findings.calibration().clone(),
            verdict: findings.verdict()?.clone(),
            notes: findings.notes(),
            manifest,
            prior,
            proposals,
            simulated,
            predictive,
        })
    }

    /// Simulates at draws of the posterior with the program of the user's problem; [`RunData::read`] does so only where it
    /// costs next to nothing.
    pub fn with_predictive(self, simulations: usize, threads: usize) -> Result<Self> {
        let task = self.manifest.task()?;
        self.predicted_by(task.problem.simulator(), simulations, threads)
    }

    /// The same with another simulator, for a run whose own is not here.
    pub fn predicted_by(
        self,
        simulator: &dyn Simulator,
        simulations: usize,
        threads: usize,
    ) -> Result<Self> {
        let Some(samples) = &self.samples else { return Ok(self) };
        let drawn = samples.first().map_or(0, Vec::len).min(simulations);
        let row = |i: usize| samples.iter().map(move |column| column[i]);
        let theta: Vec<f64> = (0..drawn).flat_map(row).collect();
        let streams = Streams::new(self.manifest.config.seed);
        let found = predictive(simulator, &theta, streams, threads)?;
        Ok(Self { predictive: Some(found), ..self })
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// What a parameter is called.
    pub fn label(&self, parameter: usize) -> &str {
        &self.prior.parameters()[parameter].name
    }

    /// Where a parameter can lie by the prior.
    pub fn support(&self, parameter: usize) -> (f64, f64) {
        self.prior.parameters()[parameter].marginal.support()
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

fn unknown(task: &str) -> Error {
    Error::setting(
        "task",
        task,
        "one that this version can simulate, or a run with a finished round: continue it first",
    )
}

fn name_of(path: &Path) -> String {
    let whole = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    whole.file_name().unwrap_or(whole.as_os_str()).to_string_lossy().into_owned()
}

fn observation(posterior: Option<&Posterior>, task: Option<&Task>) -> Vec<(String, f64)> {
    let values = posterior.map(|posterior| posterior.observation().to_vec());
    let values =
        values.or_else(|| task.map(|task| task.problem.observation().to_vec())).unwrap_or_default();
    let name = |i: usize| match task.and_then(|task| task.summaries.get(i)) {
        Some(name) => name.clone(),
        None => format!("x{}", i + 1),
    };
    values.into_iter().enumerate().map(|(i, value)| (name(i), value)).collect()
}

fn reference(task: &Task, streams: Streams, threads: usize) -> Result<Option<Columns>> {
    match task.reference {
        Reference::None => Ok(None),
        _ => Ok(Some(columns(
            &task.reference(REFERENCE, &streams, threads)?,
            task.problem.prior().dim(),
        ))),
    }
}

fn predictive(
    simulator: &dyn Simulator,
    theta: &[f64],
    streams: Streams,
    threads: usize,
) -> Result<Columns> {
    let rows = Rows::new("theta", theta, simulator.theta_dim())?;
    let streams = streams.simulations(Purpose::Diagnostic, 0);
    let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
    let found = simulator::simulate(simulator, rows, &streams, 0, threads, go_on)?;
    let mut all = columns(&found.x, simulator.x_dim());
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
    let mut flow =
        TrainedFlow::of_posterior(posterior, rows, config.failures.meaning, threads).ok()?;
    let study = LevelStudy::of_flow(config, &flow, HIGHEST, EVALUATIONS);
    // A flow whose levels cannot be measured has no figure of them; `didyma levels` tells why.
    study.run(&mut flow, Streams::new(config.seed)).ok()
}

fn by_round(rows: &[SimulatedRow], dim: usize) -> (Vec<Columns>, Vec<(usize, usize)>) {
    let rounds = rows.iter().map(|row| row.round).max().unwrap_or(0);
    let of = |round| rows.iter().filter(move |row| row.round == round);
    let proposals = (1..=rounds).map(|round| {
        let column = |i: usize| of(round).map(|row| row.theta[i]).collect();
        (0..dim).map(column).collect()
    });
    let counts = (1..=rounds).map(|r| (of(r).count(), of(r).filter(|row| row.x.is_err()).count()));
    (proposals.collect(), counts.collect())
}

fn commonest_failure(rows: &[SimulatedRow]) -> Option<String> {
    // Failures of one kind differ in their numbers, and in what follows the first line.
    let kind = |reason: &String| -> String {
        let first = reason.lines().next().unwrap_or_default();
        first.chars().filter(|c| !c.is_ascii_digit()).collect()
    };
    let reasons = rows.iter().filter_map(|row| row.x.as_ref().err());
    let mut reasons: Vec<_> = reasons.map(|reason| (kind(reason), reason)).collect();
    reasons.sort_unstable();
    let groups = reasons.chunk_by(|a, b| a.0 == b.0);
    let commonest = groups.max_by_key(|group| group.len())?;
    Some(commonest[0].1.chars().take(200).collect())
}
