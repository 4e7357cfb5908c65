//! One process at a time works on a run: the operating system's lock, which ends with the process.

use super::faults::Stored;
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
    let file = options.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(directory.join(LOCK))?;
    match try_often(&file) {
        Ok(()) => {
            // The lock counts; where there is no room for the number, messages do without.
            let _ = sign(&mut file);
            Ok(Lock(file))
        }
        Err(TryLockError::WouldBlock) => Err(Fault::Locked { process: signature(&mut file) }),
        Err(TryLockError::Error(source)) => Err(source.into()),
    }
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
    let file = match File::open(directory.join(LOCK)) {
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
