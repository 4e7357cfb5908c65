//! What this process may lack for a simulation: no fault of the simulator, and nothing that is stored.

use crate::error::Error;
use std::io;

/// Something that could not be done for want of descriptors, processes, memory or room.
#[derive(Debug)]
pub(super) struct Lack {
    action: &'static str,
    reason: String,
    remedy: &'static str,
}

impl Lack {
    /// None if the error has another cause.
    pub(super) fn of(action: &'static str, error: &io::Error) -> Option<Self> {
        Some(Self { action, reason: error.to_string(), remedy: remedy(error)? })
    }

    /// A temporary directory is ours, whatever is wrong with it.
    pub(super) fn of_scratch(action: &'static str, error: &io::Error) -> Self {
        let remedy = remedy(error)
            .unwrap_or("make room in the temporary directory, and let files be written there");
        Self { action, reason: error.to_string(), remedy }
    }

    pub(super) fn error(&self) -> Error {
        Error::Lack { action: self.action, reason: self.reason.clone(), remedy: self.remedy }
    }
}

/// What helps against a lack; none if the error is something else.
#[cfg(unix)]
pub(super) fn remedy(error: &io::Error) -> Option<&'static str> {
    use nix::errno::Errno;
    Some(match Errno::from_raw(error.raw_os_error()?) {
        Errno::EMFILE | Errno::ENFILE => "raise the limit on open files, or take fewer workers",
        Errno::EAGAIN => "raise the limit on processes, or take fewer workers",
        Errno::ENOMEM => "free memory, or take fewer workers",
        Errno::ENOSPC | Errno::EDQUOT => "make room on the disk",
        _ => return None,
    })
}

/// What helps against a lack; none if the error is something else.
#[cfg(not(unix))]
pub(super) fn remedy(error: &io::Error) -> Option<&'static str> {
    Some(match error.kind() {
        io::ErrorKind::OutOfMemory => "free memory, or take fewer workers",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "make room on the disk",
        _ => return None,
    })
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_lack_is_told_with_its_remedy_and_other_errors_are_none() {
        let told = |code| {
            let error = io::Error::from_raw_os_error(code);
            Lack::of("start a program", &error).map(|lack| lack.error().to_string())
        };
        assert_eq!(
            told(nix::libc::EMFILE).unwrap(),
            "could not start a program for a simulation (Too many open files (os error 24)): raise the limit on open \
             files, or take fewer workers, then go on; it has not failed"
        );
        for code in [nix::libc::ENFILE, nix::libc::EAGAIN, nix::libc::ENOMEM, nix::libc::ENOSPC] {
            assert!(told(code).is_some());
        }
        for code in [nix::libc::ENOENT, nix::libc::EACCES, nix::libc::E2BIG, nix::libc::ETXTBSY] {
            assert!(told(code).is_none());
        }
    }
}
