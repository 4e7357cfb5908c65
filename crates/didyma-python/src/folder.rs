//! The directory of a run, kept or temporary.

use crate::errors::Kind;
use didyma::Error;
use didyma::run::RunDir;
use pyo3::prelude::*;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The directory of a run, which may be a temporary one.
pub struct Folder {
    path: PathBuf,
    temporary: Option<TempDir>,
}

impl Folder {
    /// The one asked for, or a temporary one.
    pub fn new(out: Option<PathBuf>) -> PyResult<Self> {
        if let Some(path) = out {
            return Ok(Self::kept(path));
        }
        let temporary = tempfile::Builder::new().prefix("didyma-").tempdir().map_err(|error| {
            Kind::Run.error(format!("no temporary directory could be made ({error}): give out"))
        })?;
        Ok(Self { path: temporary.path().to_owned(), temporary: Some(temporary) })
    }

    pub fn kept(path: PathBuf) -> Self {
        // The process may go to another directory later.
        Self { path: std::path::absolute(&path).unwrap_or(path), temporary: None }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn is_kept(&self) -> bool {
        self.temporary.is_none()
    }

    /// Leaves the files where they are.
    pub fn keep(mut self) {
        if let Some(temporary) = self.temporary.take() {
            let _ = temporary.keep();
        }
    }
}

/// Copies the files of a run to a new directory, the database first read to its end.
pub fn copied(from: &Path, to: &Path) -> didyma::Result<()> {
    let manifest = RunDir::read(from)?.manifest().clone();
    RunDir::can_begin(to)?;
    // It refuses what no run can begin in, and makes what is missing.
    drop(RunDir::create(to, &manifest)?);
    let io = |action, path: &Path| {
        let path = path.to_owned();
        move |source| Error::Io { action, path, source }
    };
    for entry in std::fs::read_dir(from).map_err(io("read", from))? {
        let entry = entry.map_err(io("read", from))?;
        if entry.file_name() != "lock" && entry.path().is_file() {
            let path = to.join(entry.file_name());
            std::fs::copy(entry.path(), &path).map_err(io("write", &path))?;
        }
    }
    Ok(())
}
