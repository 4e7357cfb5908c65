//! An inference made step by step, saved as a finished run.

use super::{Findings, Manifest, Recorder, RunDir, Summary};
use crate::error::{Error, Result};
use crate::inference::config::Config;
use crate::inference::events::{Event, Observer};
use crate::inference::steps::Steps;
use crate::problem::record::ProblemRecord;
use std::path::Path;

impl Steps {
    /// Writes all of it as a finished run, in a new directory.
    pub fn save(&self, path: &Path, problem: ProblemRecord, threads: usize) -> Result<Findings> {
        let rounds = self.finished.len() as u32;
        if rounds == 0 {
            let fault = "is not trained yet: train first".into();
            return Err(Error::Proposal { round: 1, fault });
        }
        let of_round = |round| self.rows.iter().filter(|row| row.round == round).count();
        // As many as the largest round has: rows beyond are taken for damage.
        let simulations = (1..=rounds).map(of_round).max().unwrap_or_default();
        let config = Config { rounds, simulations, ..self.config().clone() };
        let manifest = Manifest::of_problem(problem, config);
        let mut run = RunDir::create(path, &manifest)?;
        run.log_epochs(&self.epochs)?;
        let mut recorder = Recorder::new(run, Vec::new());
        for (report, posterior) in &self.finished {
            let round = report.round;
            let rows: Vec<_> = self.rows.iter().filter(|r| r.round == round).cloned().collect();
            let (done, total, failed, rate) = (rows.len(), rows.len(), report.failures, 0.0);
            let rows = &rows;
            _ = recorder.notice(&Event::Simulated { round, rows, done, total, failed, rate })?;
            _ = recorder.notice(&Event::RoundFinished { report, posterior })?;
        }
        let (run, reports) = recorder.finish();
        let summary = Summary::new(run.manifest(), reports);
        Findings::new(run, summary, self.posterior().cloned(), threads).exported(path)
    }
}
