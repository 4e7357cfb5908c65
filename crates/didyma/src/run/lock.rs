//! One process at a time works on a run: the operating system's lock, which ends with the process.

use super::problem::{RunProblem, Stored};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::path::Path;

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

/// Takes the lock of a run.
pub(super) fn take(directory: &Path) -> Stored<Lock> {
    let mut options = OpenOptions::new();
    let file = options.read(true).write(true).create(true).truncate(false);
    let mut file = file.open(directory.join(LOCK))?;
    match file.try_lock() {
        Ok(()) => {
            // The lock counts; where there is no room for the number, messages do without.
            let _ = sign(&mut file);
            Ok(Lock(file))
        }
        Err(TryLockError::WouldBlock) => Err(RunProblem::Locked { process: signature(&mut file) }),
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
