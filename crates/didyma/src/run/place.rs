//! The place of a run: a directory in which one can begin, or in which one lies.

use super::lock::LOCK;
use super::{DATABASE, Fault, SEEDS, SeedSweep, about, error};
use crate::error::{Error, Result};
use crate::storage::files::{expect_plain, sync_entry};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Files that a run may leave behind if it is ended while it begins.
const BEGINNINGS: [&str; 5] = [LOCK, DATABASE, "run.db-wal", "run.db-shm", "run.db-journal"];

/// Makes the directory of a run.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    if path.is_file() {
        return Err(error(path, Fault::NotADirectory));
    }
    let made = std::fs::create_dir_all(path).and_then(|()| sync_entry(path));
    made.map_err(|source| Error::Io { action: "create", path: path.to_owned(), source })
}

/// An error if there is anything from which a run could not begin.
pub(super) fn check_empty(path: &Path) -> Result<()> {
    let refused = |source| Error::Io { action: "read", path: path.to_owned(), source };
    for entry in std::fs::read_dir(path).map_err(refused)? {
        let name = entry.map_err(refused)?.file_name();
        if !BEGINNINGS.iter().any(|&known| name == known) {
            let there = |name| path.join(name).is_file();
            let fault = if there(DATABASE) {
                Fault::Exists
            } else if there(SEEDS) {
                Fault::SeedsExist
            } else {
                Fault::NotEmpty
            };
            return Err(error(path, fault));
        }
    }
    Ok(())
}

/// An error if one of the files that are opened to be written is a link: it could lead anywhere.
pub(super) fn check_links(path: &Path) -> Result<()> {
    BEGINNINGS.iter().try_for_each(|name| expect_plain(&path.join(name)))
}

/// A database in which nothing has begun, beside files that a run has made, has lost what it held.
pub(super) fn emptied(path: &Path, fault: Fault) -> Fault {
    match fault {
        Fault::NotBegun if check_empty(path).is_err() => {
            Fault::corrupted("it is empty, beside files of a run")
        }
        other => other,
    }
}

/// The path of the database, if there is one.
pub(super) fn existing(path: &Path) -> Result<PathBuf> {
    let database = path.join(DATABASE);
    // Also to be read: SQLite makes files beside the one that a link leads to.
    BEGINNINGS.iter().try_for_each(|name| expect_plain(&path.join(name)))?;
    match std::fs::metadata(&database) {
        Ok(found) if found.is_file() => Ok(database),
        Err(source) if source.kind() == ErrorKind::PermissionDenied => {
            Err(Error::Io { action: "read", path: database, source })
        }
        _ if SeedSweep::is_at(path) => {
            let sweep = SeedSweep::read(path)?;
            Err(about(path, sweep.directory(sweep.seeds().start), Fault::Seeds))
        }
        _ => Err(error(path, Fault::Missing)),
    }
}
