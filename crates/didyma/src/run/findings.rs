//! The findings of a run: everything that summary, page and exports are made of, read and drawn once.

use super::summary::notes;
use super::{Checked, POSTERIOR_CSV, POSTERIOR_NPZ, RunDir, Summary, Verdict};
use crate::error::Result;
use crate::inference::posterior::{Posterior, SampleStreams, Samples};
use crate::rng::{Purpose, Streams};
use crate::storage::{Table, npz};
use serde_json::json;
use std::cell::OnceCell;
use std::path::Path;

/// Samples that tables and figures are made of.
const DRAWN: usize = 10_000;

/// The findings of a run so far: its results in short, its posterior, and samples of it.
#[derive(Debug)]
pub struct Findings {
    run: RunDir,
    summary: Summary,
    posterior: Option<Posterior>,
    samples: OnceCell<Samples>,
    calibration: OnceCell<Checked>,
    verdict: OnceCell<Verdict>,
    threads: usize,
}

impl Findings {
    /// Reads the findings of a run, also while it goes on.
    pub fn read(path: &Path, threads: usize) -> Result<Self> {
        Self::of(RunDir::read(path)?, threads)
    }

    /// The findings of a run that is open.
    pub fn of(run: RunDir, threads: usize) -> Result<Self> {
        let summary = Summary::read(&run)?;
        let posterior = if summary.rounds.is_empty() { None } else { Some(run.posterior()?) };
        Ok(Self::new(run, summary, posterior, threads))
    }

    pub(super) fn new(
        run: RunDir,
        mut summary: Summary,
        posterior: Option<Posterior>,
        threads: usize,
    ) -> Self {
        summary.warnings.extend(run.damaged_models(summary.rounds.len()));
        if let Some(posterior) = &posterior {
            // A task of another version has no names here.
            let names = run.manifest().task().map_or_else(|_| Vec::new(), |task| task.summaries);
            let ranges = posterior.ranges.as_ref();
            let far = ranges.and_then(|ranges| ranges.far(posterior.observation(), &names));
            summary.warnings.extend(far);
        }
        let (samples, calibration, verdict) = Default::default();
        Self { run, summary, posterior, samples, calibration, verdict, threads }
    }

    /// The directory of the run.
    pub fn run(&self) -> &RunDir {
        &self.run
    }

    /// The results in short.
    pub fn results(&self) -> &Summary {
        &self.summary
    }

    /// True if all rounds are finished.
    pub fn is_finished(&self) -> bool {
        self.summary.finished
    }

    /// The posterior of the last finished round.
    pub fn posterior(&self) -> Option<&Posterior> {
        self.posterior.as_ref()
    }

    /// Threads to compute with.
    pub fn threads(&self) -> usize {
        self.threads
    }

    /// The posterior alone, or the fault that no round is finished.
    pub fn into_posterior(self) -> Result<Posterior> {
        self.posterior.map_or_else(|| self.run.posterior(), Ok)
    }

    /// Samples of the posterior, drawn when they are first asked for; none before the first round is finished.
    pub fn samples(&self) -> Result<Option<&[f64]>> {
        let drawn = self.draws()?;
        Ok(drawn.map(|all| &all.theta[..(DRAWN * all.dim).min(all.theta.len())]))
    }

    /// The calibration of the posterior of the last round by simulations that training never saw; the reason if there is none. A
    /// finished run has it written down.
    pub fn calibration(&self) -> &Checked {
        self.calibration.get_or_init(|| match (&self.posterior, self.summary.rounds.last()) {
            (Some(_), Some(_)) if !self.is_finished() => {
                Err("it is made when all rounds are finished".to_owned())
            }
            (Some(posterior), Some(last)) => {
                let stored = self.run.calibration(last.round);
                stored.unwrap_or_else(|| self.run.calibrate(posterior, self.threads))
            }
            _ => Err("no round is finished".to_owned()),
        })
    }

    /// The verdict on the posterior so far.
    pub fn verdict(&self) -> Result<&Verdict> {
        if let Some(verdict) = self.verdict.get() {
            return Ok(verdict);
        }
        let verdict = Verdict::of(self, self.calibration())?;
        Ok(self.verdict.get_or_init(|| verdict))
    }

    /// Warnings that no check of the verdict says.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = notes(self.run.manifest(), &self.summary.rounds);
        notes.extend(self.run.damaged_models(self.summary.rounds.len()));
        notes
    }

    /// Puts a calibration in the place of the one before, on the disk too, and judges anew. The directory must be held.
    pub(super) fn with_calibration(self, calibration: Checked) -> Result<Self> {
        self.run.save_calibration(self.summary.config.rounds, &calibration)?;
        let (calibration, verdict) = (OnceCell::from(calibration), OnceCell::new());
        let mut found = Self { calibration, verdict, ..self };
        let verdict = Some(found.verdict()?.clone());
        found.summary.verdict.clone_from(&verdict);
        let version = env!("CARGO_PKG_VERSION").to_owned();
        found.run.write_summary(&Summary { version, verdict, ..found.summary.clone() })?;
        Ok(found)
    }

    /// Enough draws for the tables and for the files. Fewer draws are the first ones of more.
    fn draws(&self) -> Result<Option<&Samples>> {
        let Some(posterior) = &self.posterior else { return Ok(None) };
        if let Some(samples) = self.samples.get() {
            return Ok(Some(samples));
        }
        let config = &self.summary.config;
        let count = if self.is_finished() { DRAWN.max(config.samples) } else { DRAWN };
        let streams = SampleStreams::new(Streams::new(config.seed), Purpose::Posterior, 0);
        let drawn = posterior.draw(count, streams, self.threads)?;
        Ok(Some(self.samples.get_or_init(|| drawn)))
    }

    /// Writes the results into the directory, and lets go of its lock: from here on it is read only.
    pub(super) fn exported(self, path: &Path) -> Result<Self> {
        self.export()?;
        let mut found = self.released(path)?;
        found.summary.verdict = found.verdict.get().cloned();
        // Written results name the program that wrote them; a run read back, the one that began it.
        found.summary.version = found.run.version().to_owned();
        Ok(found)
    }

    /// Lets go of the lock: from here on the directory is read only.
    pub(super) fn released(self, path: &Path) -> Result<Self> {
        let Self { run, summary, posterior, samples, calibration, verdict, threads } = self;
        drop(run);
        let run = RunDir::read(path)?;
        Ok(Self { run, summary, posterior, samples, calibration, verdict, threads })
    }

    /// Writes the summary, and when all rounds are finished the samples before it.
    fn export(&self) -> Result<()> {
        if let Some(posterior) = self.posterior.as_ref().filter(|_| self.is_finished()) {
            self.export_samples(posterior)?;
            self.run.save_calibration(self.summary.config.rounds, self.calibration())?;
        }
        let verdict = Some(self.verdict()?.clone());
        self.run.write_summary(&Summary { verdict, ..self.summary.clone() })
    }

    fn export_samples(&self, posterior: &Posterior) -> Result<()> {
        let manifest = self.run.manifest();
        let (rounds, rows) = (manifest.config.rounds, manifest.config.samples);
        // It is there already, unless it was lost since.
        self.run.save_model(rounds, posterior)?;
        let Some(Samples { theta, dim, .. }) = self.draws()? else { return Ok(()) };
        let (theta, dim) = (theta[..rows * dim].to_vec(), *dim);
        let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
        let columns: Vec<Vec<f64>> =
            (0..dim).map(|i| theta.iter().skip(i).step_by(dim).copied().collect()).collect();
        let shape = [1, rows];
        let arrays: Vec<_> =
            names.iter().zip(&columns).map(|(name, data)| (&**name, &shape[..], &**data)).collect();
        let comment = json!({"didyma": env!("CARGO_PKG_VERSION"), "run": manifest.to_json()});
        self.run.write(POSTERIOR_NPZ, &npz(&arrays, &comment.to_string())?)?;
        let table = Table { columns: dim, names, data: theta };
        self.run.write(POSTERIOR_CSV, table.text_after(&manifest.comments()).as_bytes())
    }
}
