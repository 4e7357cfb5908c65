//! A run on the disk as it happens.

use super::{Manifest, POSTERIOR_CSV, POSTERIOR_NPZ, RunDir, SUMMARY, Summary};
use crate::error::Result;
use crate::inference::RoundReport;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::rng::{Purpose, Streams};
use crate::storage::npz;
use crate::storage::table::Table;
use serde_json::{Value, json};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

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
        let theta = posterior.draw(config.samples, from, threads)?.theta;
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
