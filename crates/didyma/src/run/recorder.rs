//! A run on the disk as it happens.

use super::{RunDir, SUMMARY, Summary};
use crate::error::Result;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::Posterior;
use crate::inference::{EpochRecord, RoundReport};
use crate::storage::files::write_inside;
use serde_json::json;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Saves everything that happens, in time: simulations when they are reported, training after every epoch.
pub struct Recorder {
    run: RunDir,
    reports: Vec<RoundReport>,
    epochs: Vec<EpochRecord>,
    saved: Option<Instant>,
    /// Seconds that each member had trained when it was last heard of.
    trained: Vec<f64>,
}

/// Epochs that are shorter than this share a checkpoint.
const BETWEEN_CHECKPOINTS: Duration = Duration::from_millis(200);

impl Recorder {
    /// Records on, after these rounds.
    pub fn new(run: RunDir, reports: Vec<RoundReport>) -> Self {
        Self { run, reports, epochs: Vec::new(), saved: None, trained: Vec::new() }
    }

    /// The directory, and the reports of all rounds.
    pub fn finish(self) -> (RunDir, Vec<RoundReport>) {
        (self.run, self.reports)
    }

    fn save_epoch(&mut self, event: &Event) -> Result<()> {
        let Event::Epoch { report, training } = event else { return Ok(()) };
        let member = report.member as usize;
        let seconds = training.members[member].seconds;
        self.epochs.push(EpochRecord::new(report, Some(seconds)));
        self.trained.resize(training.members.len(), 0.0);
        let before = std::mem::replace(&mut self.trained[member], seconds);
        // A long epoch is saved, however recently another member's was.
        let short = (0.0..BETWEEN_CHECKPOINTS.as_secs_f64()).contains(&(seconds - before));
        let recent = short && self.saved.is_some_and(|saved| saved.elapsed() < BETWEEN_CHECKPOINTS);
        if recent && !training.is_done() {
            return Ok(());
        }
        self.run.save_training(training)?;
        self.run.log_epochs(&std::mem::take(&mut self.epochs))?;
        self.saved = Some(Instant::now());
        Ok(())
    }

    fn save_round(&mut self, report: &RoundReport, posterior: &Posterior) -> Result<()> {
        self.run.save_model(report.round, posterior)?;
        self.run.finish_round(report)?;
        self.reports.push(report.clone());
        // The last summary follows the samples that it promises.
        if report.round < self.run.manifest().config.rounds {
            self.run.write_summary(&Summary::new(self.run.manifest(), self.reports.clone()))?;
        }
        Ok(())
    }
}

impl RunDir {
    /// Saves the model after a round.
    pub(super) fn save_model(&self, round: u32, posterior: &Posterior) -> Result<()> {
        write_inside(&self.model(round), &posterior.to_bytes(&self.model_origin(round)))
    }

    /// Writes the results in short.
    pub(super) fn write_summary(&self, summary: &Summary) -> Result<()> {
        let text = serde_json::to_string_pretty(summary).expect("numbers and strings");
        self.write(SUMMARY, text.as_bytes())
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
