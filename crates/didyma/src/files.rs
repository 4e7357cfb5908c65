//! Files that appear whole or not at all.

use crate::error::{Error, Result};
use std::fs::File;
use std::io::Write;
use std::path::Path;

/// Writes a file beside `path`, flushes it to the disk and renames it: whoever looks finds the old file or the whole
/// new one, whatever happens in between.
pub fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(".part");
    let written = File::create(&beside)
        .and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()))
        .and_then(|()| std::fs::rename(&beside, path));
    if written.is_err() {
        // What is left of an unfinished file is of no use; the first error is the one to tell.
        let _ = std::fs::remove_file(&beside);
    }
    written.map_err(|source| Error::Io { action: "write", path: path.to_owned(), source })
}
