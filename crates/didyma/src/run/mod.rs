//! The directory of a run: everything that was simulated and learnt, safe whenever the process ends.
//!
//! ```text
//! run.db                  configuration, simulations, finished rounds, events (SQLite)
//! lock                    held by the process that works on the run
//! checkpoint.safetensors  where training stands
//! round-K.safetensors     the model after round K
//! summary.json, calibration.json, posterior.csv, posterior.npz   the results
//! calibration.db          new simulations of a calibration (SQLite)
//! report.html             a page about them
//! ```
//!
//! Runs of several seeds lie in one directory, beside `seeds.json`, which says what they are of: [`SeedSweep`].
//!
//! A simulation counts once [`RunDir::store`] returns: it is then on the disk. All other files appear whole
//! or not at all.

mod calibration;
mod checkpoint;
mod cluster;
mod database;
mod execute;
mod faults;
mod findings;
mod lock;
mod manifest;
mod place;
mod recorder;
mod records;
mod restore;
mod seeds;
mod steps;
mod summary;
mod verdict;
mod warnings;

pub use crate::error::Fault;
pub use calibration::{CalibrationRequest, Calibrator, Checked, Spread};
pub use cluster::{Merged, Origin, ProposalFile, Shard};
pub use execute::{execute, execute_task};
pub use findings::Findings;
pub use manifest::Manifest;
pub use recorder::Recorder;
pub use seeds::SeedSweep;
pub use summary::Summary;
pub use verdict::{Check, Outcome, Verdict, Word};
pub(crate) use verdict::{p_words, still_falling};

use crate::error::{Error, FileFault, Result};
use crate::inference::{EpochRecord, RoundReport, SimulatedRow};
use crate::storage::files::write_inside;
use faults::Stored;
use lock::Lock;
use place::{check_empty, check_links, emptied, existing, make_directory};
use rusqlite::Connection;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Name of the file with the simulations.
pub const DATABASE: &str = "run.db";
/// Name of the file that says where training stands.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// Name of the file that describes the runs of several seeds.
pub const SEEDS: &str = "seeds.json";
/// Name of the file with the results in short.
pub const SUMMARY: &str = "summary.json";
/// Name of the file with the calibration of the posterior.
pub const CALIBRATION: &str = "calibration.json";
/// Name of the file with simulations that were made for the calibration.
pub const CALIBRATION_DATABASE: &str = "calibration.db";
/// Name of the file with samples of the posterior, as text.
pub const POSTERIOR_CSV: &str = "posterior.csv";
/// Name of the file with samples of the posterior, for numpy.
pub const POSTERIOR_NPZ: &str = "posterior.npz";

/// Name of the page about the run.
pub const REPORT: &str = "report.html";

/// A run on the disk.
#[derive(Debug)]
pub struct RunDir {
    path: PathBuf,
    version: String,
    manifest: Manifest,
    /// The manifest as it is stored.
    stored: String,
    // Dropped before the lock, as fields are in their order: what it still writes when it closes is protected.
    connection: Connection,
    _lock: Option<Lock>,
}

impl RunDir {
    /// Begins a run in a new or empty directory.
    ///
    /// Ended at any moment, it leaves a whole run or a directory in which one can begin.
    pub fn create(path: &Path, manifest: &Manifest) -> Result<Self> {
        let refused = |fault: Fault| error(path, fault.at_the_beginning());
        manifest.check_names()?;
        make_directory(path)?;
        check_empty(path)?;
        check_links(path)?;
        let lock = lock::take(path).map_err(refused)?;
        let mut connection = database::make(&path.join(DATABASE)).map_err(refused)?;
        match database::recognise(&connection) {
            Err(Fault::NotBegun) => {}
            Ok(_) => return Err(refused(Fault::Exists)),
            Err(Fault::Database(FileFault::Foreign(_))) => {
                return Err(refused(Fault::NotEmpty));
            }
            Err(fault) => return Err(refused(fault)),
        }
        let json = manifest.to_json().to_string();
        let meta = database::begin(&mut connection, &json).map_err(refused)?;
        Self::new(path, (connection, meta), Some(lock))
    }

    /// Opens a run to continue it; no other process can do so until it is dropped.
    pub fn open(path: &Path) -> Result<Self> {
        let database = existing(path)?;
        check_links(path)?;
        let refused = |fault| error(path, fault);
        let lock = lock::take(path).map_err(refused)?;
        let opened = database::open(&database).map_err(|fault| refused(emptied(path, fault)))?;
        Self::new(path, opened, Some(lock))
    }

    /// Opens the run of this manifest to continue it, and begins it if there is none. Another run is a fault.
    pub fn open_or_create(path: &Path, manifest: &Manifest) -> Result<Self> {
        match Self::open(path) {
            Ok(run) => run.manifest.expect(manifest, path).map(|()| run),
            Err(Error::Run { fault: Fault::Missing | Fault::NotBegun, .. }) => {
                Self::create(path, manifest)
            }
            Err(error) => Err(error),
        }
    }

    /// Opens a run to read it, and to write its results anew, which no other process does until it is dropped.
    pub fn hold(path: &Path) -> Result<Self> {
        let database = existing(path)?;
        check_links(path)?;
        let lock = lock::take(path).map_err(|fault| error(path, fault))?;
        let opened = database::read(&database);
        let opened = opened.map_err(|fault| error(path, emptied(path, fault)))?;
        Self::new(path, opened, Some(lock))
    }

    /// Opens a run to read it, also while another process continues it. Whatever writes is an error.
    pub fn read(path: &Path) -> Result<Self> {
        let database = existing(path)?;
        let opened = database::read(&database);
        let opened = opened.map_err(|fault| error(path, emptied(path, fault)))?;
        Self::new(path, opened, None)
    }

    fn new(
        path: &Path,
        (connection, meta): (Connection, database::Meta),
        lock: Option<Lock>,
    ) -> Result<Self> {
        let database::Meta { version, config: stored, .. } = meta;
        let manifest = serde_json::from_str(&stored).map_err(|why| why.to_string());
        let manifest: Manifest = manifest.and_then(Manifest::checked).map_err(|why| {
            let why =
                format!("its configuration cannot be read, and may be of another version: {why}");
            error(path, Fault::corrupted(why))
        })?;
        // Rounds and samples that nobody can ask for would not fit into any memory.
        manifest.config.check_sizes().map_err(|why| error(path, Fault::corrupted(why)))?;
        Ok(Self { path: path.to_owned(), version, manifest, stored, connection, _lock: lock })
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All that the run depends on.
    pub fn manifest(&self) -> &Manifest {
        &self.manifest
    }

    /// What tells the run from all others.
    pub fn identity(&self) -> String {
        format!("{:08x}", database::checksum(&[self.stored.as_bytes()]))
    }

    /// Version of the program that began the run.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Where a file of the run is, for example [`CHECKPOINT`].
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// Where the model after a round is.
    pub fn model(&self, round: u32) -> PathBuf {
        self.file(&format!("round-{round}.safetensors"))
    }

    /// Writes a file of the run, whole or not at all.
    pub fn write(&self, name: &str, bytes: &[u8]) -> Result<()> {
        write_inside(&self.file(name), bytes)
    }

    /// Stores simulations, all or none; one whose round and index are there already is ignored.
    ///
    /// They are on the disk when this returns, which takes the disk a few milliseconds however many they are.
    pub fn store(&mut self, rows: &[SimulatedRow]) -> Result<()> {
        // Nothing is told of while simulations take long: no reason to wait for the disk.
        if rows.is_empty() {
            return Ok(());
        }
        let stored = records::store(&mut self.connection, rows);
        self.told(stored)
    }

    /// All simulations, by round and index. All have the same sizes, and are of rounds that the run has.
    pub fn rows(&self) -> Result<Vec<SimulatedRow>> {
        let config = &self.manifest.config;
        // Rounds that were made step by step have each a number of simulations of its own.
        let made = self.reports()?.iter().map(|report| report.simulations).max();
        let most = config.simulations.max(made.unwrap_or(0));
        self.told(records::rows(&self.connection, 1..=config.rounds, most))
    }

    /// How many simulations are stored, and how many of these failed: quicker than [`RunDir::rows`], which checks them.
    pub fn counts(&self) -> Result<(usize, usize)> {
        self.told(records::counts(&self.connection))
    }

    /// How many simulations of a round are stored.
    pub fn count(&self, round: u32) -> Result<usize> {
        self.told(records::count(&self.connection, round))
    }

    /// Deletes the failed simulations of a round, so that they are simulated again; returns how many there were.
    ///
    /// Refused if the round is finished or its training has begun, which rest on them.
    pub fn forget_failures(&mut self, round: u32) -> Result<usize> {
        if self.is_trained(round)? {
            let why = "one whose training has not begun: what was learnt rests on its failures as they are";
            return Err(Error::setting("round", round, why));
        }
        self.told(records::forget_failures(&self.connection, round))
    }

    /// Whether training of a round has begun.
    pub(super) fn is_trained(&self, round: u32) -> Result<bool> {
        let begun = self.training()?.is_some_and(|training| training.round >= round);
        Ok(begun || self.rounds()? >= round as usize)
    }

    /// Stores the report of a round, which is then finished; an earlier report of it is replaced.
    pub fn finish_round(&mut self, report: &RoundReport) -> Result<()> {
        let json = serde_json::to_string(report).expect("numbers and strings");
        self.told(records::finish_round(&self.connection, report.round, &json))
    }

    /// Number of finished rounds: quicker than [`RunDir::reports`], which reads them.
    pub fn rounds(&self) -> Result<usize> {
        Ok(self.stored_rounds()?.len())
    }

    /// The reports of the finished rounds, in order.
    pub fn reports(&self) -> Result<Vec<RoundReport>> {
        let parse = |(json, round): (String, u32)| {
            let bad = |why| error(&self.path, Fault::corrupted(why));
            let report: RoundReport = serde_json::from_str(&json)
                .map_err(|why| bad(format!("the report of a round cannot be read: {why}")))?;
            if report.round != round || report.failures > report.simulations {
                return Err(bad(format!("the report of round {round} cannot be its own")));
            }
            Ok(report)
        };
        self.stored_rounds()?.into_iter().zip(1..).map(parse).collect()
    }

    fn stored_rounds(&self) -> Result<Vec<String>> {
        self.told(records::rounds(&self.connection, self.manifest.config.rounds))
    }

    /// Notes epochs of training.
    pub fn log_epochs(&mut self, epochs: &[EpochRecord]) -> Result<()> {
        let json = serde_json::to_value(epochs).expect("numbers");
        self.log("epochs", &json.to_string())
    }

    /// The epochs of training, each once: after a kill some are trained again, and the later one counts. Events enter no
    /// result, so that one that cannot be read, or is of no round of the run, is left out.
    pub fn epochs(&self) -> Result<Vec<EpochRecord>> {
        let mut epochs = each_epoch(&self.events()?);
        epochs.retain(|epoch| (1..=self.manifest.config.rounds).contains(&epoch.round));
        Ok(epochs)
    }

    /// Notes an event with the time of the clock. Nothing that is computed may depend on it.
    pub fn log(&mut self, kind: &str, json: &str) -> Result<()> {
        self.told(records::log(&self.connection, kind, json))
    }

    /// All events in order: seconds since 1970, kind, JSON.
    pub fn events(&self) -> Result<Vec<(f64, String, String)>> {
        self.told(records::events(&self.connection))
    }

    /// The open file that is locked while this process may continue the run. A process that is forked shares it, and must
    /// close it, or the run stays locked while that process lives.
    #[cfg(unix)]
    pub fn lock_descriptor(&self) -> Option<i32> {
        self._lock.as_ref().map(Lock::descriptor)
    }

    /// An error if no run can begin in this directory.
    pub fn can_begin(path: &Path) -> Result<()> {
        match path {
            path if path.is_file() => Err(error(path, Fault::NotADirectory)),
            path if path.exists() => check_empty(path),
            _ => Ok(()),
        }
    }

    /// Whether a process works on the run at this moment.
    pub fn is_worked_on(&self) -> Result<bool> {
        self.told(lock::held(&self.path))
    }

    fn told<T>(&self, stored: Stored<T>) -> Result<T> {
        stored.map_err(|fault| error(&self.path, fault))
    }
}

fn error(path: &Path, fault: Fault) -> Error {
    about(path, path.join(DATABASE), fault)
}

/// An error about one file of a run.
fn about(path: &Path, file: PathBuf, fault: Fault) -> Error {
    Error::Run { path: path.to_owned(), file, fault }
}

/// The epochs among events, by round, member and number.
fn each_epoch(events: &[(f64, String, String)]) -> Vec<EpochRecord> {
    let batches = events.iter().filter(|(_, kind, _)| kind == "epochs");
    let all = batches.flat_map(|(_, _, json)| {
        serde_json::from_str::<Vec<EpochRecord>>(json).unwrap_or_default()
    });
    let by_number: BTreeMap<_, _> =
        all.map(|epoch| ((epoch.round, epoch.member, epoch.epoch), epoch)).collect();
    by_number.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::config::Config;

    fn event(kind: &str, epochs: &[(u32, u32, f64)]) -> (f64, String, String) {
        let epoch = |(round, epoch, loss): &(u32, u32, f64)| serde_json::json!({"round": round, "epoch": epoch, "train_loss": loss});
        let epochs: Vec<_> = epochs.iter().map(epoch).collect();
        (0.0, kind.to_owned(), serde_json::Value::from(epochs).to_string())
    }

    #[test]
    fn epochs_are_found_each_once() {
        let found = each_epoch(&[
            event("epochs", &[(1, 1, 9.0), (1, 2, 8.0)]),
            event("round", &[]),
            event("epochs", &[(2, 1, 5.0), (2, 2, 4.0)]),
            event("epochs", &[(2, 3, f64::NAN)]),
            event("epochs", &[(2, 2, 3.0)]),
            (0.0, "epochs".to_owned(), "[{\"rou".to_owned()),
        ]);
        let losses: Vec<_> = found.iter().map(|e| (e.round, e.epoch, e.train_loss)).collect();
        let expected = [
            (1, 1, Some(9.0)),
            (1, 2, Some(8.0)),
            (2, 1, Some(5.0)),
            (2, 2, Some(3.0)),
            (2, 3, None),
        ];
        assert_eq!(losses, expected);
    }

    #[test]
    fn a_full_disk_loses_nothing_and_does_not_stop_the_run_for_good() {
        let folder = tempfile::tempdir().unwrap();
        let mut run =
            RunDir::create(folder.path(), &Manifest::of_task("two-moons", Config::default()))
                .unwrap();
        let row =
            |index| SimulatedRow { round: 1, index, theta: vec![1.0; 100], x: Ok(vec![2.0; 100]) };
        run.store(&[row(0)]).unwrap();
        let pages: u32 = run.connection.query_row("PRAGMA page_count", [], |r| r.get(0)).unwrap();
        let limit = |run: &RunDir, pages: u32| {
            run.connection
                .pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
                .unwrap();
        };
        limit(&run, pages);
        let many: Vec<SimulatedRow> = (0..100).map(row).collect();
        let told = run.store(&many).unwrap_err().to_string();
        let remedy = "nothing stored so far is lost; make room on the disk, then resume the run";
        assert!(told.ends_with(remedy), "{told}");
        assert_eq!(run.rows().unwrap(), [row(0)]);
        limit(&run, 1_000_000);
        run.store(&many).unwrap();
        assert_eq!(run.rows().unwrap(), many);
    }
}
