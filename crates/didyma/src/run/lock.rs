//! One process at a time works on a run: the operating system's lock, which ends with the process.

use super::faults::{LOCAL, Stored};
use crate::error::Fault;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Read, Seek, Write};
use std::path::Path;
use std::time::Duration;

/// Name of the file that is locked; what it says is only the number of the process.
pub(super) const LOCK: &str = "lock";

/// A lock that is held until it is dropped or the process ends, however it ends.
#[derive(Debug)]
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing the file is not enough: a process that was started at this moment may still share it.
        let _ = self.0.unlock();
    }
}

impl Lock {
    /// The number of the open file.
    #[cfg(unix)]
    pub(super) fn descriptor(&self) -> i32 {
        use std::os::fd::AsRawFd;
        self.0.as_raw_fd()
    }
}

/// How often a lock that another process has is tried: one who only looks, by [`held`], has it for microseconds.
const TRIES: u32 = 10;
/// How long to wait between two tries.
const PAUSE: Duration = Duration::from_millis(20);

/// Takes the lock of a run.
pub(super) fn take(directory: &Path) -> Stored<Lock> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, nix::libc::O_NOFOLLOW);
    let mut file = options.open(directory.join(LOCK))?;
    match try_often(&file) {
        Ok(()) => {
            // The lock counts; where there is no room for the number, messages do without.
            let _ = sign(&mut file);
            Ok(Lock(file))
        }
        Err(TryLockError::WouldBlock) => Err(Fault::Locked { process: signature(&mut file) }),
        Err(TryLockError::Error(source)) => Err(refused(source)),
    }
}

/// Why there is no lock. File systems without any are not out of room or broken.
fn refused(source: std::io::Error) -> Fault {
    match has_no_locks(&source) {
        true => Fault::Refused { reason: source.to_string(), remedy: LOCAL, begun: true },
        false => source.into(),
    }
}

/// Whether the file system cannot lock files: by its own word, or since nobody answers who could.
fn has_no_locks(error: &std::io::Error) -> bool {
    #[cfg(unix)]
    if error.raw_os_error() == Some(nix::libc::ENOLCK) {
        return true;
    }
    error.kind() == ErrorKind::Unsupported
}

fn try_often(file: &File) -> Result<(), TryLockError> {
    for _ in 1..TRIES {
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => std::thread::sleep(PAUSE),
            other => return other,
        }
    }
    file.try_lock()
}

/// Whether a process has the lock of a run. Nothing is written, and many may look at once.
pub(super) fn held(directory: &Path) -> Stored<bool> {
    let path = directory.join(LOCK);
    // A pipe would be waited for, and nobody can have locked it.
    if path.metadata().is_ok_and(|found| !found.is_file()) {
        return Ok(false);
    }
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error.into()),
    };
    match file.try_lock_shared() {
        Ok(()) => {
            file.unlock()?;
            Ok(false)
        }
        Err(TryLockError::WouldBlock) => Ok(true),
        // Where there are no locks nobody has one, and reading needs none.
        Err(TryLockError::Error(source)) if has_no_locks(&source) => Ok(false),
        Err(TryLockError::Error(source)) => Err(source.into()),
    }
}

fn sign(file: &mut File) -> std::io::Result<()> {
    file.set_len(0)?;
    file.rewind()?;
    file.write_all(std::process::id().to_string().as_bytes())
}

fn signature(file: &mut File) -> Option<u32> {
    let mut text = String::new();
    file.take(16).read_to_string(&mut text).ok()?;
    text.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::super::error;
    use super::*;

    #[test]
    fn a_file_system_without_locks_is_told() {
        let mut faults = vec![refused(ErrorKind::Unsupported.into())];
        #[cfg(unix)]
        faults.push(refused(std::io::Error::from_raw_os_error(nix::libc::ENOLCK)));
        let protocol = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_LOCK);
        faults.push(rusqlite::Error::SqliteFailure(protocol, None).into());
        for fault in faults {
            let told = error(Path::new("out"), fault.at_the_beginning()).to_string();
            let remedy = ": put the directory on a local disk, where files can be locked, then start it again";
            assert!(told.ends_with(remedy), "{told}");
        }
        let other = refused(ErrorKind::StorageFull.into());
        assert!(error(Path::new("out"), other).to_string().contains("make room"));
    }
}
