//! Simulations that were made elsewhere, into a run.

use crate::error::{Advice, Error, Remedy, Result};
use crate::inference::SimulatedRow;
use crate::run::faults::Stored;
use crate::run::{Manifest, Origin, ProposalFile, RunDir, Shard, records};
use rusqlite::Connection;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::path::Path;

/// What merging shards came to.
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
    /// Takes the simulations of shards; those that are there already are left as they are, but for failed ones of a round
    /// whose training has not begun, which successes replace. All rows of a shard are checked before any is stored: they
    /// must be of this run, and have the parameters that were proposed.
    pub fn merge(&mut self, shards: &[impl AsRef<Path>]) -> Result<Merged> {
        let (manifest, open) = (self.manifest().clone(), self.rounds()? as u32 + 1);
        let (mut merged, mut proposals) = (Merged::default(), HashMap::new());
        for path in shards.iter().map(AsRef::as_ref) {
            let refuse =
                |fault: String| Err(Error::Shard { path: path.to_owned(), fault: fault.into() });
            let shard = Shard::read(path)?;
            let round = shard.origin.round;
            if let Some(fault) = mismatch(&shard.origin, &manifest, &self.identity()) {
                return refuse(fault);
            }
            if round > open {
                return refuse(format!("is of round {round}, but round {open} is not trained yet"));
            }
            let proposal = match proposals.entry(round) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(empty) => empty.insert(self.proposal(round, path)?),
            };
            let rows = shard.rows()?;
            if let Some(fault) = rows.iter().find_map(|row| stranger(row, proposal)) {
                return refuse(fault);
            }
            self.take(rows, round, &mut merged)?;
        }
        Ok(merged)
    }

    /// What was proposed for the round that a shard is of.
    fn proposal(&self, round: u32, shard: &Path) -> Result<ProposalFile> {
        let file = ProposalFile::path(self.path(), round);
        if file.is_file() {
            return ProposalFile::read(&file);
        }
        let text = format!("cannot be compared with {}, which is missing:", file.display());
        let fault = Advice::new(text, Remedy::Propose { dir: self.path().to_owned() });
        Err(Error::Shard { path: shard.to_owned(), fault })
    }

    /// Stores rows of a shard that are new, or better than those that are there.
    fn take(&mut self, rows: Vec<SimulatedRow>, round: u32, merged: &mut Merged) -> Result<()> {
        let sorted = Sorted::of(&self.connection, rows, round);
        let mut sorted = self.told(sorted)?;
        if !sorted.repaired.is_empty() && self.is_trained(round)? {
            sorted.merged.different += std::mem::take(&mut sorted.repaired).len();
        }
        let stored = sorted.store(&mut self.connection, merged);
        self.told(stored)
    }
}

/// Rows of a shard beside those that are there.
pub(super) struct Sorted {
    new: Vec<SimulatedRow>,
    /// Successes where failures are.
    repaired: Vec<SimulatedRow>,
    merged: Merged,
}

impl Sorted {
    /// Compares rows of a shard, which are in the order of their numbers, with those of the round that are there.
    pub(super) fn of(connection: &Connection, rows: Vec<SimulatedRow>, round: u32) -> Stored<Self> {
        let mut sorted = Self { new: Vec::new(), repaired: Vec::new(), merged: Merged::default() };
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(sorted) };
        let present = records::between(connection, round, first.index, last.index)?;
        let present: HashMap<u32, SimulatedRow> =
            present.into_iter().map(|row| (row.index, row)).collect();
        let merged = &mut sorted.merged;
        for row in rows {
            match present.get(&row.index) {
                None => sorted.new.push(row),
                Some(known) if *known == row => merged.known += 1,
                // Reasons hold times and places of files.
                Some(known) if known.x.is_err() && row.x.is_err() => merged.known += 1,
                Some(known) if known.x.is_err() => sorted.repaired.push(row),
                Some(_) => merged.different += 1,
            }
        }
        Ok(sorted)
    }

    /// Stores those that are new or better, all or none.
    pub(super) fn store(self, connection: &mut Connection, merged: &mut Merged) -> Stored<()> {
        let Self { mut new, repaired, merged: found } = self;
        merged.known += found.known;
        merged.different += found.different;
        merged.new += new.len();
        merged.repaired += repaired.len();
        new.extend(repaired);
        records::replace(connection, &new)
    }
}

/// Why a row is none of the proposed ones, if it is none.
pub(super) fn stranger(row: &SimulatedRow, proposal: &ProposalFile) -> Option<String> {
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
