//! New simulations of a calibration, in a database beside that of the run.

use crate::error::{Error, Fault, Result};
use crate::inference::SimulatedRow;
use crate::inference::posterior::Posterior;
use crate::run::faults::of_shard;
use crate::run::{CALIBRATION_DATABASE, RunDir, database, records};
use crate::storage::files::expect_plain;
use rusqlite::Connection;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The posterior that the simulations are for.
#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Origin {
    /// What tells the run from all others.
    calibration_of: String,
    /// A checksum of the posterior's parameters: proposals of another one have another law.
    posterior: u32,
}

/// The database, with the numbers of rows that a simulation has.
#[derive(Debug)]
pub(in crate::run) struct NewRows {
    pub path: PathBuf,
    pub connection: Connection,
    dims: (usize, usize),
}

impl NewRows {
    /// Opens the database beside a run, if there is one, or if it is to be made.
    pub(super) fn open(run: &RunDir, posterior: &Posterior, make: bool) -> Result<Option<Self>> {
        let path = run.file(CALIBRATION_DATABASE);
        for ending in ["", "-wal", "-shm", "-journal"] {
            expect_plain(&run.file(&format!("{CALIBRATION_DATABASE}{ending}")))?;
        }
        if !make && !path.exists() {
            return Ok(None);
        }
        let told = |fault| of_shard(&path, fault);
        let params: Vec<u8> =
            posterior.ensemble.members().iter().flatten().flat_map(|v| v.to_le_bytes()).collect();
        let origin =
            Origin { calibration_of: run.identity(), posterior: database::checksum(&[&params]) };
        let mut connection = database::make(&path).map_err(told)?;
        match database::recognise(&connection) {
            Err(Fault::NotBegun) => {
                let json = serde_json::to_string(&origin).expect("numbers and strings");
                database::begin(&mut connection, &json).map_err(told)?;
            }
            other => {
                let meta = other.and_then(database::Meta::current).map_err(told)?;
                if serde_json::from_str::<Origin>(&meta.config).ok() != Some(origin) {
                    let fault = "holds simulations for another posterior: move it away, then calibrate again";
                    return Err(Error::Shard { path, fault: fault.into() });
                }
            }
        }
        let dims = (posterior.dim(), posterior.observation().len());
        Ok(Some(Self { path, connection, dims }))
    }

    /// The simulations of one kind, by index.
    pub(super) fn rows(&self, round: u32) -> Result<Vec<SimulatedRow>> {
        let found = records::between(&self.connection, round, 0, u32::MAX);
        let found = found.map_err(|fault| of_shard(&self.path, fault))?;
        let (theta, x) = self.dims;
        let own = |row: &SimulatedRow| {
            row.theta.len() == theta && row.x.as_ref().map_or(true, |own| own.len() == x)
        };
        match found.iter().find(|row| !own(row)) {
            None => Ok(found),
            Some(row) => {
                let why =
                    format!("simulation {} has another size than those of the run", row.index);
                Err(of_shard(&self.path, Fault::corrupted(why)))
            }
        }
    }

    /// Stores simulations, all or none.
    pub(super) fn store(&mut self, rows: &[SimulatedRow]) -> Result<()> {
        let stored = records::store(&mut self.connection, rows);
        stored.map_err(|fault| of_shard(&self.path, fault))
    }

    /// Deletes the failed ones, so that they are simulated again; returns how many there were.
    pub(super) fn forget_failures(&mut self, round: u32) -> Result<usize> {
        let forgotten = records::forget_failures(&self.connection, round);
        forgotten.map_err(|fault| of_shard(&self.path, fault))
    }
}
