//! Simulations that were made elsewhere, into a run.

use super::{Manifest, Origin, ProposalFile, RunDir, Shard, records};
use crate::error::{Error, Result};
use crate::rounds::SimulatedRow;
use std::collections::HashMap;
use std::path::Path;

/// What merging a shard came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Merged {
    /// Simulations that are new.
    pub new: usize,
    /// Simulations that were there, and are the same, or failed both times.
    pub known: usize,
    /// Failed ones that a success has taken the place of, before training.
    pub repaired: usize,
    /// Simulations that were there with another outcome; the first one is kept.
    pub different: usize,
}

impl RunDir {
    /// Takes the simulations of a shard; those that are there already are left as they are, but for failed ones of a round
    /// whose training has not begun, which successes replace. All rows are checked before
    /// any is stored: they must be of this run, and have the parameters that were proposed.
    pub fn merge(&mut self, path: &Path) -> Result<Merged> {
        let shard = Shard::read(path)?;
        let origin = &shard.origin;
        let manifest = Manifest::of(self)?;
        let refuse = |problem: String| Err(Error::Shard { path: path.to_owned(), problem });
        if let Some(problem) = mismatch(origin, &manifest, &self.identity()) {
            return refuse(problem);
        }
        let finished = self.rounds()?.len() as u32;
        if origin.round > finished + 1 {
            let round = finished + 1;
            return refuse(format!(
                "is of round {}, but round {round} is not trained yet",
                origin.round
            ));
        }
        let file = ProposalFile::path(self.path(), origin.round);
        if !file.is_file() {
            let (dir, file) = (self.path().display(), file.display());
            return refuse(format!(
                "cannot be compared with {file}, which is missing: run `didyma propose {dir}`"
            ));
        }
        let proposal = ProposalFile::read(&file)?;
        let open = !self.is_trained(origin.round)?;
        let present: HashMap<u32, SimulatedRow> = (self.rows()?.into_iter())
            .filter(|row| row.round == origin.round)
            .map(|row| (row.index, row))
            .collect();
        let (mut merged, mut new, mut repaired) = (Merged::default(), Vec::new(), Vec::new());
        for row in shard.rows()? {
            if let Some(problem) = stranger(&row, &proposal) {
                return refuse(problem);
            }
            match present.get(&row.index) {
                None => new.push(row),
                Some(known) if *known == row => merged.known += 1,
                // Reasons hold times and places of files.
                Some(known) if known.x.is_err() && row.x.is_err() => merged.known += 1,
                Some(known) if known.x.is_err() && open => repaired.push(row),
                Some(_) => merged.different += 1,
            }
        }
        (merged.new, merged.repaired) = (new.len(), repaired.len());
        new.extend(repaired);
        let stored = records::replace(&mut self.connection, &new);
        self.told(stored)?;
        Ok(merged)
    }
}

/// Why a row is none of the proposed ones, if it is none.
fn stranger(row: &SimulatedRow, proposal: &ProposalFile) -> Option<String> {
    let (index, round) = (row.index as usize, proposal.origin.round);
    match () {
        () if row.round != round || index >= proposal.origin.simulations => {
            Some(format!("has a simulation {index} that the round has not"))
        }
        () if row.x.as_ref().is_ok_and(|x| x.len() != proposal.origin.summaries) => {
            Some(format!("has another number of summaries than the run in simulation {index}"))
        }
        () if row.theta != proposal.row(index) => Some(format!(
            "has other parameters for simulation {index} than were proposed: simulate with this run's own proposal-{round}.csv"
        )),
        () => None,
    }
}

/// Why simulations are not of this run, if they are not.
fn mismatch(origin: &Origin, manifest: &Manifest, identity: &str) -> Option<String> {
    let Origin { run, seed, simulations, .. } = origin;
    let config = &manifest.config;
    match () {
        () if run.as_ref().is_some_and(|run| run != identity) => {
            Some("is a shard of another run: merge it into that one".to_owned())
        }
        () if *seed != config.seed => {
            Some(format!("was simulated with seed {seed}, but the run has seed {}", config.seed))
        }
        () if *simulations != config.simulations => Some(format!(
            "is of a round of {simulations} simulations, but the run's rounds have {}",
            config.simulations
        )),
        () => None,
    }
}
