//! A part of a round that is simulated elsewhere, in a database of its own.

use super::proposal::Origin;
use crate::error::{Advice, Error, Fault, Remedy, Result};
use crate::inference::SimulatedRow;
use crate::inference::events::{Event, Observer};
use crate::inference::simulations::gaps;
use crate::run::faults::{Stored, of_shard};
use crate::run::{database, records};
use crate::storage::files::expect_regular;
use rusqlite::Connection;
use std::ops::{ControlFlow, Range};
use std::path::{Path, PathBuf};

/// Simulations that are done, and failed.
type Counts = (usize, usize);

/// A part of a round's simulations, in a database of its own.
#[derive(Debug)]
pub struct Shard {
    path: PathBuf,
    /// Which simulations they are.
    pub origin: Origin,
    connection: Connection,
}

impl Shard {
    /// Begins a shard, or goes on with one of the same simulations.
    pub fn open(path: &Path, origin: &Origin) -> Result<Self> {
        let told = |fault| of_shard(path, fault);
        let mut connection = database::make(path).map_err(told)?;
        let found = match database::recognise(&connection) {
            Err(Fault::NotBegun) => {
                let json = serde_json::to_string(origin).expect("numbers and strings");
                database::begin(&mut connection, &json).map_err(told)?;
                origin.clone()
            }
            other => {
                let meta = other.and_then(database::Meta::current).map_err(told)?;
                origin_of(&meta.config).map_err(told)?
            }
        };
        match found == *origin {
            true => Ok(Self { path: path.to_owned(), origin: found, connection }),
            false => Err(Error::Shard {
                path: path.to_owned(),
                fault: Advice::new(
                    "holds simulations of another round or run:",
                    Remedy::AnotherShard,
                ),
            }),
        }
    }

    /// Opens a shard that was made.
    pub fn read(path: &Path) -> Result<Self> {
        let told = |fault| of_shard(path, fault);
        let readable = std::fs::metadata(path);
        readable.map_err(|source| Error::Io { action: "read", path: path.to_owned(), source })?;
        expect_regular(path)?;
        let (connection, meta) = database::read(path).map_err(told)?;
        let origin = origin_of(&meta.config).map_err(told)?;
        Ok(Self { path: path.to_owned(), origin, connection })
    }

    /// Stores simulations, all or none.
    pub fn store(&mut self, rows: &[SimulatedRow]) -> Result<()> {
        records::store(&mut self.connection, rows).map_err(|fault| of_shard(&self.path, fault))
    }

    /// Deletes the failed ones, so that they are simulated again; returns how many there were.
    pub fn forget_failures(&mut self) -> Result<usize> {
        let forgotten = records::forget_failures(&self.connection, self.origin.round);
        forgotten.map_err(|fault| of_shard(&self.path, fault))
    }

    /// All simulations, by index.
    pub fn rows(&self) -> Result<Vec<SimulatedRow>> {
        let Origin { round, simulations, .. } = self.origin;
        let rows = records::rows(&self.connection, round..=round, simulations);
        rows.map_err(|fault| of_shard(&self.path, fault))
    }

    /// Which of these numbers are not simulated yet, as ranges; of the others, how many are done, and failed.
    pub fn missing(&self, of: Range<usize>) -> Result<(Vec<Range<usize>>, Counts)> {
        let mut rows = self.rows()?;
        rows.retain(|row| of.contains(&(row.index as usize)));
        let done: Vec<usize> = rows.iter().map(|row| row.index as usize).collect();
        let failed = rows.iter().filter(|row| row.x.is_err()).count();
        Ok((gaps(&done, of), (rows.len(), failed)))
    }

    /// Closes the shard as one file, without those that SQLite keeps beside it.
    pub fn close(self) -> Result<()> {
        let closed =
            self.connection.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()));
        closed.map_err(|fault| of_shard(&self.path, fault.into()))
    }
}

/// Stores what it is told of.
impl Observer for Shard {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        if let Event::Simulated { rows, .. } = event {
            self.store(rows)?;
        }
        Ok(ControlFlow::Continue(()))
    }
}

fn origin_of(config: &str) -> Stored<Origin> {
    serde_json::from_str(config).map_err(|_| Fault::foreign("it is no shard of a round"))
}
