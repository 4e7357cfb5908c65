//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes a file beside `path`, flushes it to the disk, renames it and flushes its directory: whoever looks finds the old
/// file or the whole new one, whatever happens in between. A link stays a link, to the new content; a device or a pipe is written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let refused = |source| Error::Io { action: "write", path: path.to_owned(), source };
    let target = if path.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
    let target = target.map_err(refused)?;
    match target.metadata() {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            let mut device = OpenOptions::new().write(true).open(&target).map_err(refused)?;
            return device.write_all(bytes).map_err(refused);
        }
        Ok(found) if found.permissions().readonly() => {
            return Err(refused(ErrorKind::PermissionDenied.into()));
        }
        _ => {}
    }
    let mut beside = target.as_os_str().to_owned();
    beside.push(".part");
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, &target))
        .and_then(|()| sync_entry(&target));
    if written.is_err() {
        // What is left of an unfinished file is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(refused)
}

/// Flushes the directory that holds `path`, so that a new name in it survives a loss of power.
#[cfg(unix)]
pub(crate) fn sync_entry(path: &Path) -> std::io::Result<()> {
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    // A folder may be written to without being readable, and some file systems cannot flush one.
    match File::open(folder).map(|folder| folder.sync_all()) {
        Ok(Err(error)) if error.kind() != ErrorKind::InvalidInput => Err(error),
        _ => Ok(()),
    }
}

/// Other systems have no way to ask for it.
#[cfg(not(unix))]
pub(crate) fn sync_entry(_: &Path) -> std::io::Result<()> {
    Ok(())
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn links_stay_links_and_read_only_files_stay_as_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        write_whole(&file, b"old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write_whole(&link, b"new").unwrap();
        assert!(link.is_symlink() && std::fs::read(&file).unwrap() == b"new");
        let mut permissions = file.metadata().unwrap().permissions();
        permissions.set_readonly(true);
        std::fs::set_permissions(&file, permissions).unwrap();
        assert!(write_whole(&file, b"newer").is_err());
        assert!(std::fs::read(&file).unwrap() == b"new");
        assert!(write_whole(folder.path(), b"x").is_err());
    }
}
