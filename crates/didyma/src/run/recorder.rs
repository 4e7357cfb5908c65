//! A run on the disk as it happens, and back again.

use super::checkpoint::check_manifest;
use super::{CHECKPOINT, POSTERIOR_CSV, POSTERIOR_NPZ, RunDir, RunProblem, SUMMARY, npz};
use crate::config::{Config, Inner, Start};
use crate::error::{Error, FileProblem, Result};
use crate::estimator::{Method, Named, Pool, Settings};
use crate::observe::{Event, Observer};
use crate::posterior::{Posterior, SampleStreams};
use crate::rng::{Purpose, Streams};
use crate::rounds::{Progress, RoundReport, Training};
use crate::table::Table;
use crate::train::{EngineState, FitState};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::io::ErrorKind;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// What a run is of: all that it depends on, the program and the kind of CPU excepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The task.
    pub task: String,
    /// Every setting.
    pub config: Config,
}

impl Manifest {
    /// The manifest of a run.
    pub fn of(run: &RunDir) -> Result<Self> {
        serde_json::from_str(run.config()).map_err(|error| {
            let why = format!("its configuration cannot be read: {error}");
            let problem = RunProblem::Database(FileProblem::Corrupted(why));
            Error::Run { path: run.path().to_owned(), problem }
        })
    }

    /// As files hold it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("numbers and strings")
    }

    /// As the first lines of a table.
    fn comments(&self) -> String {
        let mut lines = format!("didyma {}\ntask = {}", env!("CARGO_PKG_VERSION"), self.task);
        for (key, value, _) in self.config.list() {
            lines.push_str(&format!("\n{key} = {value}"));
        }
        lines
    }
}

/// The results of a run in short.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Version of the program.
    pub version: String,
    /// The task.
    pub task: String,
    /// The estimator's name.
    pub method: String,
    /// The profile's name.
    pub profile: String,
    /// The seed.
    pub seed: u64,
    /// Whether all rounds are done.
    pub finished: bool,
    /// The finished rounds.
    pub rounds: Vec<RoundReport>,
    /// Wall-clock time of all rounds.
    pub seconds_total: f64,
    /// The most memory that the process held, where the system tells.
    pub peak_rss_mb: Option<f64>,
    /// Pairs (θ, x) per second of training.
    pub pairs_per_second: f64,
    /// In plain words.
    pub warnings: Vec<String>,
    /// Every setting.
    pub config: Config,
}

impl Summary {
    /// The results of a run so far. How much memory it took is known to its own process only, which wrote it down.
    pub fn read(run: &RunDir) -> Result<Self> {
        let written = std::fs::read(run.file(SUMMARY)).ok();
        let written = written.and_then(|bytes| serde_json::from_slice::<Self>(&bytes).ok());
        Ok(Self {
            peak_rss_mb: written.and_then(|written| written.peak_rss_mb),
            version: run.version().to_owned(),
            ..Self::new(&Manifest::of(run)?, reports(run)?)
        })
    }

    /// Sums the rounds up.
    pub fn new(manifest: &Manifest, rounds: Vec<RoundReport>) -> Self {
        let Manifest { task, config } = manifest.clone();
        let seconds =
            |of: fn(&RoundReport) -> f64| rounds.iter().map(of).fold(0.0, |sum, s| sum + s);
        let train = seconds(|r| r.seconds_train);
        let pairs: u64 = rounds.iter().map(|round| round.pairs).sum();
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            task,
            method: config.method_name().to_owned(),
            profile: config.profile.name().to_owned(),
            seed: config.seed,
            finished: rounds.len() == config.rounds as usize,
            seconds_total: train + seconds(|r| r.seconds_simulate + r.seconds_score),
            peak_rss_mb: peak_rss_mb(),
            pairs_per_second: if train > 0.0 { pairs as f64 / train } else { 0.0 },
            warnings: warnings(&config, &rounds),
            rounds,
            config,
        }
    }
}

/// C2ST from which a posterior is visibly not the reference.
const VISIBLE: f64 = 0.6;

/// What a user should know before trusting the posterior.
fn warnings(config: &Config, rounds: &[RoundReport]) -> Vec<String> {
    let mut found = Vec::from_iter(cut_down(config, rounds));
    let failures: usize = rounds.iter().map(|round| round.failures).sum();
    let simulations: usize = rounds.iter().map(|round| round.simulations).sum();
    if failures > 0 {
        found.push(format!(
            "{failures} of {simulations} simulations failed: the posterior is that of parameters and success, as it is for \
             an observation that comes from a success"
        ));
    }
    for round in rounds.iter().filter(|round| round.stop_reason.name() == "diverged") {
        let number = round.round;
        found.push(format!(
            "training of round {number} diverged, and weights from before that were kept: lower train.rate"
        ));
    }
    if let Some(c2st) = rounds.last().and_then(|last| last.scores.c2st).filter(|c| *c > VISIBLE) {
        found.push(format!(
            "a classifier tells the posterior from the reference in {:.1} % of cases (50 % would be perfect)",
            100.0 * c2st
        ));
    }
    if let Some(last) = rounds.last().filter(|last| last.outside_prior > 0.05) {
        found.push(format!(
            "{:.1} % of the flow lies outside the prior and is rejected: unbounded coordinates leave nothing outside",
            100.0 * last.outside_prior
        ));
    }
    found
}

/// Round 2 has the fewest rows to take inner samples from. Methods without a top level always get one, which needs no
/// word.
fn cut_down(config: &Config, rounds: &[RoundReport]) -> Option<String> {
    let successes: usize = rounds.get(..2)?.iter().map(|r| r.simulations - r.failures).sum();
    let rows = match config.train.inner {
        Inner::Pool => (successes as f64 * (1.0 - config.train.validation_share)) as u32,
        Inner::Batch => config.train.batch as u32,
    };
    let pool = Pool::new(0..rows, config.estimator.replacement).ok()?;
    let (asked, method) = (&config.estimator, config.estimator.method);
    let used = asked.clone().fitted_to(&pool);
    let levels = method.is_multilevel();
    let cut = [
        ("atoms", !levels && method != Method::Likelihood, asked.atoms, used.atoms),
        ("m0", levels, asked.m0, used.m0),
        ("base", levels, asked.base as usize, used.base as usize),
        ("top", levels && asked.top.is_some(), top(asked), top(&used)),
    ];
    let cut: Vec<_> = cut
        .iter()
        .filter(|(_, matters, asked, used)| *matters && used < asked)
        .map(|(name, _, asked, used)| format!("estimator.{name} {used} instead of {asked}"))
        .collect();
    (!cut.is_empty()).then(|| {
        let cut = cut.join(", ");
        format!("early rounds have too few simulations for the blocks asked for, and use {cut}: simulate more a round")
    })
}

fn top(settings: &Settings) -> usize {
    settings.top.map_or(0, |top| top as usize)
}

/// Saves everything that happens, in time: simulations when they are told of, training after every epoch.
pub struct Recorder {
    run: RunDir,
    manifest: Manifest,
    reports: Vec<RoundReport>,
    epochs: Vec<Value>,
    saved: Option<Instant>,
}

/// Epochs that are shorter than this share a checkpoint.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(200);

impl Recorder {
    /// Records on, after these rounds.
    pub fn new(run: RunDir, reports: Vec<RoundReport>) -> Result<Self> {
        let manifest = Manifest::of(&run)?;
        Ok(Self { run, manifest, reports, epochs: Vec::new(), saved: None })
    }

    /// The directory.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// Writes the results so far; the posterior's samples too, when all rounds are done.
    pub fn export(&self, posterior: Option<&Posterior>, threads: usize) -> Result<Summary> {
        let summary = Summary::new(&self.manifest, self.reports.clone());
        if let Some(posterior) = posterior.filter(|_| summary.finished) {
            self.export_samples(posterior, threads)?;
        }
        let text = serde_json::to_string_pretty(&summary).expect("numbers and strings");
        self.run.write(SUMMARY, text.as_bytes())?;
        Ok(summary)
    }

    fn export_samples(&self, posterior: &Posterior, threads: usize) -> Result<()> {
        let config = &self.manifest.config;
        // It is there already, unless it was lost since.
        posterior.save(&self.run.model(config.rounds), &self.manifest.to_json())?;
        let streams = Streams::new(config.seed);
        let from = SampleStreams::new(streams, Purpose::Posterior, 0);
        let theta = posterior.sample(config.samples, from, threads)?.theta;
        let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
        let columns: Vec<Vec<f32>> = (0..names.len())
            .map(|i| theta.iter().skip(i).step_by(names.len()).copied().collect())
            .collect();
        let shape = [1, config.samples];
        let arrays: Vec<_> =
            names.iter().zip(&columns).map(|(name, data)| (&**name, &shape[..], &**data)).collect();
        let comment = json!({"didyma": env!("CARGO_PKG_VERSION"), "run": self.manifest.to_json()});
        self.run.write(POSTERIOR_NPZ, &npz(&arrays, &comment.to_string())?)?;
        let table = Table { columns: names.len(), names, data: theta };
        self.run.write(POSTERIOR_CSV, table.text_after(&self.manifest.comments()).as_bytes())
    }

    fn save_epoch(&mut self, event: &Event) -> Result<()> {
        let Event::Epoch { report, fit, .. } = event else { return Ok(()) };
        self.epochs.push(json!({
            "round": report.round, "epoch": report.epoch,
            "train_loss": report.train_loss, "validation_loss": report.validation_loss,
            "seconds": fit.seconds,
        }));
        let recent = self.saved.is_some_and(|saved| saved.elapsed() < BETWEEN_CHECKPOINTS);
        if recent && fit.stop.is_none() {
            return Ok(());
        }
        self.run.save_training(event)?;
        let epochs = std::mem::take(&mut self.epochs);
        self.run.log("epochs", &Value::from(epochs).to_string())?;
        self.saved = Some(Instant::now());
        Ok(())
    }

    fn save_round(&mut self, report: &RoundReport, posterior: &Posterior) -> Result<()> {
        posterior.save(&self.run.model(report.round), &self.manifest.to_json())?;
        let json = serde_json::to_string(report).expect("numbers and strings");
        self.run.finish_round(report.round, &json)?;
        self.reports.push(report.clone());
        // The last summary follows the samples that it promises.
        match report.round < self.manifest.config.rounds {
            true => self.export(None, 1).map(|_| ()),
            false => Ok(()),
        }
    }
}

impl Observer for Recorder {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        match event {
            Event::RoundStarted { round, missing, .. } => {
                self.run.log("round", &json!({"round": round, "missing": missing}).to_string())?;
            }
            Event::Simulated { rows, .. } => self.run.store(rows)?,
            Event::Epoch { .. } => self.save_epoch(event)?,
            Event::RoundFinished { report, posterior } => self.save_round(report, posterior)?,
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// What a run has come to, for [`crate::rounds::infer`] to go on from.
pub fn progress(run: &RunDir) -> Result<Progress> {
    let (reports, rows) = (reports(run)?, run.rows()?);
    let (config, finished) = (Manifest::of(run)?.config, reports.len() as u32);
    let simulated = |round| rows.iter().filter(|row| row.round == round).count();
    // Files that were put back from a copy may be of different times; nothing else leads to these.
    let needed = config.train.start == Start::Carried && finished < config.rounds;
    let bad = |fault: String| error(run, RunProblem::Checkpoint { fault, needed });
    let found = run.training().map_err(|error| match error {
        Error::ModelFile { problem, .. } if !matches!(problem, FileProblem::Newer { .. }) => {
            bad(problem.fault())
        }
        other => other,
    });
    let training = match found? {
        Some(t) if t.round == finished && t.fit.stop.is_none() => {
            return Err(bad("it is older than the database of the run".to_owned()));
        }
        Some(t) if t.round == finished + 1 && simulated(t.round) < config.simulations => {
            return Err(bad("it is newer than the database of the run".to_owned()));
        }
        Some(t) if (finished..=finished + 1).contains(&t.round) => Some(t),
        Some(_) => return Err(bad("it is of another round than the run".to_owned())),
        None if finished == 0 => None,
        None if needed => return Err(bad("it is missing".to_owned())),
        None => Some(after(run, &reports)?),
    };
    Ok(Progress { rows, reports, training })
}

/// The state after the last finished round, from its model: the optimiser starts anew in the next one anyway.
fn after(run: &RunDir, reports: &[RoundReport]) -> Result<Training> {
    let last = reports.last().expect("a round is finished");
    let Posterior { coordinates, params, .. } = model(run, last.round)?;
    let fit =
        FitState { stop: Some(last.stop_reason), ..FitState::new(EngineState::fresh(params)) };
    Ok(Training { round: last.round, coordinates, recentred: last.recentred, fit })
}

fn error(run: &RunDir, problem: RunProblem) -> Error {
    Error::Run { path: run.path().to_owned(), problem }
}

/// The finished rounds of a run.
pub fn reports(run: &RunDir) -> Result<Vec<RoundReport>> {
    let parse = |json: &String| {
        serde_json::from_str(json).map_err(|error| {
            let why = format!("the report of a round cannot be read: {error}");
            let problem = RunProblem::Database(FileProblem::Corrupted(why));
            Error::Run { path: run.path().to_owned(), problem }
        })
    };
    run.rounds()?.iter().map(parse).collect()
}

/// The posterior of a run's last finished round.
pub fn posterior(run: &RunDir) -> Result<Posterior> {
    match reports(run)?.last() {
        Some(last) => model(run, last.round),
        None => Err(Error::Run { path: run.path().to_owned(), problem: RunProblem::NoRound }),
    }
}

/// The posterior after a round.
fn model(run: &RunDir, round: u32) -> Result<Posterior> {
    let manifest = run.manifest();
    let loaded = Posterior::load_if(&run.model(round), |about| check_manifest(about, &manifest));
    loaded.map_err(|problem| match problem {
        Error::ModelFile { problem, .. } if !matches!(problem, FileProblem::Newer { .. }) => {
            let replaceable = run.file(CHECKPOINT).is_file();
            error(run, RunProblem::Model { round, fault: problem.fault(), replaceable })
        }
        Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
            let replaceable = run.file(CHECKPOINT).is_file();
            error(run, RunProblem::Model { round, fault: "it is missing".to_owned(), replaceable })
        }
        other => other,
    })
}

/// The most memory that this process held, in MB of 10⁶ bytes, by Linux's account.
fn peak_rss_mb() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}
