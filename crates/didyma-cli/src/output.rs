//! Results on the terminal and in files.

use crate::{DONE, ExitCode, wording};
use anyhow::{Context, bail};
use didyma::readable;
use didyma::storage::{Table, write_whole};
use didyma::tasks::Task;
use serde::Serialize;
use std::fmt::Display;
use std::io::{ErrorKind, Write};
use std::path::Path;

/// Prints a result as text or as one JSON object.
pub fn show(report: &(impl Display + Serialize), json: bool) -> anyhow::Result<ExitCode> {
    print(&if json { serde_json::to_string(report)? } else { report.to_string() })
}

/// Prints a line; a reader that has gone away (`| head`) is no error. Whatever comes from files of a run that somebody
/// else has made, such as the reason of a failure, gives the terminal no orders.
pub fn print(text: &str) -> anyhow::Result<ExitCode> {
    match writeln!(std::io::stdout(), "{}", readable(text)) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(error).context("the result could not be printed")
        }
        _ => Ok(DONE),
    }
}

/// Prints a line on stderr; a reader that has gone away is no reason to stop.
pub fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{}", readable(text));
}

/// A path as a shell reads it, for commands that a user may paste.
pub fn pasted(path: &Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// The error and its causes, each told once.
pub fn sentence(error: &anyhow::Error) -> String {
    let words = |cause: &(dyn std::error::Error + 'static)| match cause.downcast_ref() {
        Some(error) => wording::sentence(error),
        None => cause.to_string(),
    };
    error.chain().map(words).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        told if told.contains(&cause) => text,
        told => format!("{told}: {cause}"),
    })
}

/// A table of parameters.
pub fn samples(task: &Task, data: Vec<f64>) -> Table {
    let names = task.problem.prior().names().map(str::to_owned).collect();
    Table { names, columns: task.problem.prior().dim(), data }
}

/// Refuses a file that cannot be written before any work is spent on it.
pub fn check_out(out: Option<&Path>) -> anyhow::Result<()> {
    let Some(path) = out else { return Ok(()) };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if path.is_dir() {
        bail!("--out is {}, a folder: give a file", path.display());
    }
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        bail!(
            "--out: could not write {}: the folder {} does not exist",
            path.display(),
            folder.display()
        );
    }
    Ok(())
}

/// Writes a table to a file, or to the terminal: CSV, or the bare numbers in single precision if its name ends
/// in .f32.
pub fn write(table: Table, out: Option<&Path>) -> anyhow::Result<()> {
    match out {
        Some(path) if path.extension().is_some_and(|extension| extension == "f32") => {
            let bytes: Vec<u8> =
                table.data.iter().flat_map(|&v| (v as f32).to_le_bytes()).collect();
            Ok(write_whole(path, &bytes)?)
        }
        Some(path) => Ok(table.write(path)?),
        None => print(table.text().trim_end()).map(drop),
    }
}
