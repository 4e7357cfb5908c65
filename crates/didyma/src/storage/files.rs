//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use std::fs::{File, FileType, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::Path;

/// Bytes of the largest file that a run writes, and more.
const LARGEST: u64 = 1 << 30;

/// Writes a file that the user named: whoever looks finds the old file or the whole new one, whatever happens in between.
/// A link stays a link, to the new content; a device or a pipe is written to.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let refused = |source| Error::Io { action: "write", path: path.to_owned(), source };
    let target = if path.is_symlink() { path.canonicalize() } else { Ok(path.to_owned()) };
    let target = target.map_err(refused)?;
    if target.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir()) {
        let mut device = OpenOptions::new().write(true).open(&target).map_err(refused)?;
        return device.write_all(bytes).map_err(refused);
    }
    replace(&target, bytes).map_err(refused)
}

/// Writes a file in the directory of a run, whole or not at all. The directory may come from somebody else: a link in
/// the place of the file is refused, since it could lead anywhere.
pub fn write_inside(path: &Path, bytes: &[u8]) -> Result<()> {
    expect_plain(path)?;
    let refused = |source| Error::Io { action: "write", path: path.to_owned(), source };
    replace(path, bytes).map_err(refused)
}

/// Reads a file in the directory of a run. A pipe would be waited for, and a device may have no end: both are refused, and
/// so is a file larger than any that a run writes.
pub(crate) fn read_inside(path: &Path) -> Result<Vec<u8>> {
    expect_regular(path)?;
    let refused = |source| Error::Io { action: "read", path: path.to_owned(), source };
    let file = File::open(path).map_err(refused)?;
    if file.metadata().is_ok_and(|found| found.len() > LARGEST) {
        return Err(refused(ErrorKind::FileTooLarge.into()));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(refused)?;
    Ok(bytes)
}

/// An error if something else is in the place of a file that is to be written: a link, too.
pub(crate) fn expect_plain(path: &Path) -> Result<()> {
    path.symlink_metadata().map_or(Ok(()), |found| expect_file(path, found.file_type()))
}

/// An error if something else is in the place of a file that is to be read; a link to a file is one.
pub(crate) fn expect_regular(path: &Path) -> Result<()> {
    path.metadata().map_or(Ok(()), |found| expect_file(path, found.file_type()))
}

fn expect_file(path: &Path, found: FileType) -> Result<()> {
    let found = match () {
        () if found.is_file() => return Ok(()),
        () if found.is_symlink() => "a link",
        () if found.is_dir() => "a directory",
        () => "a pipe or a device",
    };
    Err(Error::NotAFile { path: path.to_owned(), found })
}

/// Writes a file beside `target`, flushes it to the disk, renames it and flushes its directory.
fn replace(target: &Path, bytes: &[u8]) -> std::io::Result<()> {
    if target.metadata().is_ok_and(|found| found.permissions().readonly()) {
        return Err(ErrorKind::PermissionDenied.into());
    }
    let mut beside = target.as_os_str().to_owned();
    beside.push(".part");
    // What an ended process left there goes, and so does a link that somebody put there: the file is a new one.
    match std::fs::remove_file(&beside) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&beside);
    let written = file
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, target))
        .and_then(|()| sync_entry(target));
    if written.is_err() {
        // What is left of an unfinished file is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written
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

    #[test]
    fn links_in_a_run_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(at(to), at(name)).unwrap();
        std::fs::write(at("mine"), "mine").unwrap();
        link("mine", "link");
        link("none", "dangling");
        link("mine", "file.part");
        for name in ["link", "dangling"] {
            let told = write_inside(&at(name), b"new").unwrap_err().to_string();
            assert!(
                told.contains(&format!("{name} is a link, and not a file of the run: ")),
                "{told}"
            );
        }
        let told = write_inside(folder.path(), b"new").unwrap_err().to_string();
        assert!(told.contains("is a directory"), "{told}");
        assert!(read_inside(Path::new("/dev/zero")).is_err());
        write_inside(&at("file"), b"new").unwrap();
        assert!(!at("file").is_symlink() && read_inside(&at("file")).unwrap() == b"new");
        assert!(!at("none").exists() && !at("file.part").is_symlink());
        assert_eq!(read_inside(&at("link")).unwrap(), b"mine");
    }
}
