//! New simulations of a calibration that are made elsewhere: the same files as of a round, the one after the last.

use super::merge::{Sorted, stranger};
use crate::error::{Advice, Error, Remedy, Result};
use crate::run::faults::of_shard;
use crate::run::{Calibrator, Merged, Origin, ProposalFile, Shard};
use std::path::{Path, PathBuf};

impl Calibrator {
    /// Writes the parameters of so many new simulations beside the run, for shards; returns where. Repeated, it writes the same,
    /// and those of fewer simulations are the first of more.
    pub fn propose(&self, count: usize) -> Result<PathBuf> {
        let (run, posterior) = (self.run(), &self.posterior);
        let config = &run.manifest().config;
        let origin = Origin {
            run: Some(run.identity()),
            round: self.round(),
            seed: config.seed,
            simulations: count,
            summaries: posterior.observation().len(),
            in_a_row: config.failures.in_a_row,
        };
        let path = ProposalFile::path(run.path(), origin.round);
        // A file that is there stays: another kind of CPU could round its numbers differently.
        let there = path.is_file().then(|| ProposalFile::read(&path)).and_then(Result::ok);
        if there.is_none_or(|there| there.origin != origin) {
            let names = posterior.prior().names().map(str::to_owned).collect();
            ProposalFile { origin, names, theta: self.theta(count)? }.write(&path)?;
        }
        Ok(path)
    }

    /// Takes the simulations of shards among the new ones of the calibration. Those that are there already are left as they are, but
    /// for failed ones, which successes replace. All rows of a shard are checked before any is stored: they must be of this
    /// calibration, and have the parameters that were proposed.
    pub fn merge(&mut self, shards: &[impl AsRef<Path>]) -> Result<Merged> {
        let (mut merged, round) = (Merged::default(), self.round());
        let file = ProposalFile::path(self.run().path(), round);
        for path in shards.iter().map(AsRef::as_ref) {
            let refuse =
                |fault: String| Err(Error::Shard { path: path.to_owned(), fault: fault.into() });
            let shard = Shard::read(path)?;
            if let Some(fault) = self.mismatch(&shard.origin) {
                return refuse(fault);
            }
            if !file.is_file() {
                let text = format!("cannot be compared with {}, which is missing:", file.display());
                let (dir, count) = (self.run().path().to_owned(), shard.origin.simulations);
                let fault = Advice::new(text, Remedy::ProposeSimulations { dir, count });
                return Err(Error::Shard { path: path.to_owned(), fault });
            }
            let (proposal, rows) = (ProposalFile::read(&file)?, shard.rows()?);
            if let Some(fault) = rows.iter().find_map(|row| stranger(row, &proposal)) {
                return refuse(fault);
            }
            let stored = self.new_rows()?;
            let at = stored.path.clone();
            let sorted = Sorted::of(&stored.connection, rows, round);
            let sorted = sorted.and_then(|new| new.store(&mut stored.connection, &mut merged));
            sorted.map_err(|fault| of_shard(&at, fault))?;
        }
        self.simulated = true;
        Ok(merged)
    }

    /// Why simulations are not of this calibration, if they are not.
    fn mismatch(&self, origin: &Origin) -> Option<String> {
        let (run, round) = (self.run(), self.round());
        if origin.run.as_ref() != Some(&run.identity()) {
            return Some("is a shard of another run: calibrate that one with it".to_owned());
        }
        (origin.round != round).then(|| {
            let found = origin.round;
            format!("is of round {found}, but the simulations of this calibration are of round {round}: leave it out")
        })
    }
}
