//! Faults of SQLite and of the system as faults of a run.

use crate::error::{Error, Fault, FileFault};
use rusqlite::ErrorCode;
use std::io::ErrorKind;
use std::path::Path;

const MAKE_ROOM: &str = "make room on the disk";
const REPAIR: &str = "make room on the disk or repair it";
const PERMIT: &str = "permit writing there, or copy the directory to where it is permitted";
/// For file systems, as of some networks, that cannot lock files.
pub(super) const LOCAL: &str = "put the directory on a local disk, where files can be locked";

/// The outcome of an operation on the database.
pub(super) type Stored<T> = Result<T, Fault>;

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        let remedy = match error.sqlite_error_code() {
            _ if cannot_lock(&error) => LOCAL,
            Some(ErrorCode::DiskFull) => MAKE_ROOM,
            Some(ErrorCode::SystemIoFailure) => REPAIR,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
                PERMIT
            }
            Some(ErrorCode::OutOfMemory) => "give the program more memory",
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => return Self::Busy,
            Some(ErrorCode::NotADatabase) => return Self::foreign("it is no SQLite database"),
            // The statements are fixed and tested: when one fails otherwise, the file is not what was written.
            _ => return Self::corrupted(error),
        };
        Self::Refused { reason: error.to_string(), remedy, begun: true }
    }
}

/// Whether the file system refused a lock, or memory that is shared with other processes.
fn cannot_lock(error: &rusqlite::Error) -> bool {
    use rusqlite::ffi::{SQLITE_IOERR_LOCK, SQLITE_IOERR_RDLOCK, SQLITE_IOERR_SHMLOCK};
    let code = error.sqlite_error().map(|error| error.extended_code);
    let locks = [SQLITE_IOERR_LOCK, SQLITE_IOERR_RDLOCK, SQLITE_IOERR_SHMLOCK];
    code.is_some_and(|code| locks.contains(&code))
        || error.sqlite_error_code() == Some(ErrorCode::FileLockingProtocolFailed)
}

impl From<std::io::Error> for Fault {
    fn from(error: std::io::Error) -> Self {
        let remedy = match error.kind() {
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => MAKE_ROOM,
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => PERMIT,
            _ => REPAIR,
        };
        Self::Refused { reason: error.to_string(), remedy, begun: true }
    }
}

/// A fault of a database of simulations that is not that of a run.
pub(super) fn of_shard(path: &Path, fault: Fault) -> Error {
    let path = path.to_owned();
    let fault = match fault {
        Fault::Database(fault) => return Error::ModelFile { path, fault },
        Fault::NotBegun => {
            let fault = FileFault::Foreign("a shard (nothing has begun in it)".to_owned());
            return Error::ModelFile { path, fault };
        }
        Fault::Refused { reason, remedy, .. } => {
            format!("could not be read or written ({reason}): {remedy}")
        }
        _ => "is kept busy by another program: wait for it".to_owned(),
    };
    Error::Shard { path, fault: fault.into() }
}

#[cfg(test)]
mod tests {
    use super::super::error;
    use super::*;

    #[test]
    fn a_run_that_has_not_begun_is_not_to_be_resumed() {
        let full = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_FULL);
        let full = Fault::from(rusqlite::Error::SqliteFailure(full, None));
        let told = error(Path::new("out"), full.clone()).to_string();
        assert!(told.ends_with("make room on the disk, then resume the run"), "{told}");
        let told = error(Path::new("out"), full.at_the_beginning()).to_string();
        assert!(told.ends_with("make room on the disk, then start it again"), "{told}");
    }
}
