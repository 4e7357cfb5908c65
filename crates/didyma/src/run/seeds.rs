//! Runs of several seeds in one directory: what they are of, so that each can begin or go on at any time.

use super::lock::{self, LOCK, Lock};
use super::place::{check_links, make_directory};
use super::{DATABASE, Fault, Manifest, RunDir, SEEDS, about, error};
use crate::error::{Error, Result};
use crate::storage::files::{read_inside, write_inside};
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::path::{Path, PathBuf};

/// Runs that differ in nothing but their seed, each an ordinary run in a directory `seed-S` of its own.
///
/// What they are of is on the disk before the first begins: whenever the process ends, all of them can go on.
#[derive(Debug)]
pub struct SeedSweep {
    path: PathBuf,
    stored: SweepFile,
    _lock: Option<Lock>,
}

/// More runs than anybody makes in one directory.
const MOST: u64 = 1_000_000;

/// What the file holds.
#[derive(Debug, Serialize, Deserialize)]
struct SweepFile {
    version: String,
    /// How many.
    seeds: u64,
    /// The run of the first seed.
    run: Manifest,
}

impl SeedSweep {
    /// Prepares so many runs in a new or empty directory, the first with the seed of `manifest`, the others with the seeds
    /// after it.
    pub fn create(path: &Path, manifest: &Manifest, seeds: u64) -> Result<Self> {
        let first = manifest.config.seed;
        if first.checked_add(seeds).is_none() {
            return Err(Error::setting("seed", first, "so small that the last seed is below 2^64"));
        }
        if !(1..=MOST).contains(&seeds) {
            return Err(Error::setting("seeds", seeds, format!("between 1 and {MOST}")));
        }
        manifest.check_names()?;
        make_directory(path)?;
        check_free(path)?;
        check_links(path)?;
        let lock = lock::take(path).map_err(|fault| error(path, fault.at_the_beginning()))?;
        let version = env!("CARGO_PKG_VERSION").to_owned();
        let stored = SweepFile { version, seeds, run: manifest.clone() };
        let json = serde_json::to_string_pretty(&stored).expect("numbers and strings");
        write_inside(&path.join(SEEDS), json.as_bytes())?;
        Ok(Self { path: path.to_owned(), stored, _lock: Some(lock) })
    }

    /// Opens runs to continue them; no other process can do so until it is dropped.
    pub fn open(path: &Path) -> Result<Self> {
        let found = Self::read(path)?;
        check_links(path)?;
        let lock = lock::take(path).map_err(|fault| error(path, fault))?;
        Ok(Self { _lock: Some(lock), ..found })
    }

    /// Opens runs to look at them.
    pub fn read(path: &Path) -> Result<Self> {
        let json = read_inside(&path.join(SEEDS))?;
        let bad = |why: String| about(path, path.join(SEEDS), Fault::SeedsFile(why));
        let stored = serde_json::from_slice(&json).map_err(|why| why.to_string());
        let stored = stored.and_then(|SweepFile { version, seeds, run }| {
            run.checked().map(|run| SweepFile { version, seeds, run })
        });
        let stored =
            stored.map_err(|why| bad(format!("it is damaged, or of another version ({why})")))?;
        let last = stored.run.config.seed.checked_add(stored.seeds);
        if !(1..=MOST).contains(&stored.seeds) || last.is_none() {
            return Err(bad(format!("since it tells of {} seeds", stored.seeds)));
        }
        Ok(Self { path: path.to_owned(), stored, _lock: None })
    }

    /// Whether a directory holds the runs of several seeds.
    pub fn is_at(path: &Path) -> bool {
        path.join(SEEDS).is_file()
    }

    /// The directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// All seeds.
    pub fn seeds(&self) -> Range<u64> {
        let first = self.stored.run.config.seed;
        first..first + self.stored.seeds
    }

    /// What the run of a seed is of.
    pub fn manifest(&self, seed: u64) -> Manifest {
        let mut manifest = self.stored.run.clone();
        manifest.config.seed = seed;
        manifest
    }

    /// Where the run of a seed is, or will be.
    pub fn directory(&self, seed: u64) -> PathBuf {
        self.path.join(format!("seed-{seed}"))
    }

    /// Opens the run of a seed to continue it, and begins it if it has not.
    pub fn run(&self, seed: u64) -> Result<RunDir> {
        let path = self.directory(seed);
        if path.is_symlink() {
            return Err(Error::NotAFile { path, found: "a link" });
        }
        RunDir::open_or_create(&path, &self.manifest(seed)).map_err(|fault| match fault {
            Error::Run { fault: Fault::Differs { .. }, .. } => error(&path, Fault::OtherRun),
            other => other,
        })
    }

    /// Opens the run of a seed to look at it; none if it has not begun.
    pub fn look(&self, seed: u64) -> Result<Option<RunDir>> {
        let path = self.directory(seed);
        match RunDir::read(&path) {
            Ok(run) if *run.manifest() == self.manifest(seed) => Ok(Some(run)),
            Ok(_) => Err(error(&path, Fault::OtherRun)),
            Err(Error::Run { fault: Fault::Missing | Fault::NotBegun, .. }) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether a process works on the runs at this moment.
    pub fn is_worked_on(&self) -> Result<bool> {
        lock::held(&self.path).map_err(|fault| error(&self.path, fault))
    }
}

/// An error if there is anything but what a process that was ended here may have left.
fn check_free(path: &Path) -> Result<()> {
    let refused = |source| Error::Io { action: "read", path: path.to_owned(), source };
    for entry in std::fs::read_dir(path).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        let fault = match name.to_str() {
            Some(LOCK) => continue,
            Some(name) if name.strip_suffix(".part") == Some(SEEDS) => continue,
            _ if SeedSweep::is_at(path) => Fault::SeedsExist,
            _ if path.join(DATABASE).is_file() => Fault::Exists,
            _ => Fault::NotEmpty,
        };
        return Err(error(path, fault));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::config::{Algorithm, Config, Profile};

    fn manifest(seed: u64) -> Manifest {
        let config = Config::new(Profile::Default, Algorithm::Npe);
        Manifest::of_task("two-moons", Config { seed, ..config })
    }

    #[test]
    fn ended_at_any_moment_all_runs_can_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("sweep");
        // Ended before the file was whole.
        std::fs::create_dir(&path).unwrap();
        std::fs::write(path.join("seeds.json.part"), "{").unwrap();
        std::fs::write(path.join(LOCK), "1").unwrap();
        let sweep = SeedSweep::create(&path, &manifest(5), 3).unwrap();
        let locked = SeedSweep::open(&path).unwrap_err().to_string();
        assert!(locked.contains("another process"), "{locked}");
        // Ended while one run had begun, and another had a directory.
        drop(sweep.run(5).unwrap());
        std::fs::create_dir(sweep.directory(6)).unwrap();
        std::fs::write(sweep.directory(6).join(DATABASE), "").unwrap();
        drop(sweep);
        let sweep = SeedSweep::open(&path).unwrap();
        assert_eq!(sweep.seeds().collect::<Vec<_>>(), [5, 6, 7]);
        let begun = |seed| sweep.look(seed).unwrap().is_some();
        assert_eq!([5, 6, 7].map(begun), [true, false, false]);
        for seed in sweep.seeds() {
            let run = sweep.run(seed).unwrap();
            assert_eq!(*run.manifest(), manifest(seed));
        }
    }

    #[test]
    fn what_is_no_place_for_runs_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let told = |made: Result<SeedSweep>| made.unwrap_err().to_string();
        let path = folder.path().join("sweep");
        let sweep = SeedSweep::create(&path, &manifest(1), 2).unwrap();
        let again = told(SeedSweep::create(&path, &manifest(1), 2));
        assert!(again.contains("already holds runs of several seeds"), "{again}");
        let run = RunDir::create(&path, &manifest(1)).unwrap_err().to_string();
        assert!(run.contains("already holds runs of several seeds"), "{run}");
        let one = RunDir::read(&path).unwrap_err().to_string();
        assert!(one.contains("give one of them, as") && one.ends_with("seed-1"), "{one}");
        drop(RunDir::create(&sweep.directory(2), &manifest(3)).unwrap());
        let other = sweep.run(2).unwrap_err().to_string();
        assert!(other.contains("another run than the ones beside it: move it away"), "{other}");
        let inside = told(SeedSweep::create(&sweep.directory(2), &manifest(1), 2));
        assert!(inside.contains("already holds a run:"), "{inside}");
        let last = told(SeedSweep::create(&folder.path().join("last"), &manifest(u64::MAX), 2));
        assert!(last.contains("seed") && !folder.path().join("last").exists(), "{last}");
        std::fs::write(path.join(SEEDS), "{\"seeds\": 2").unwrap();
        let damaged = told(SeedSweep::read(&path));
        assert!(damaged.contains("seeds.json cannot be used"), "{damaged}");
        let endless = serde_json::json!({"version": "1", "seeds": 1u64 << 60, "run": manifest(1)});
        std::fs::write(path.join(SEEDS), endless.to_string()).unwrap();
        let endless = told(SeedSweep::read(&path));
        assert!(endless.contains("it tells of 1152921504606846976 seeds"), "{endless}");
    }
}
