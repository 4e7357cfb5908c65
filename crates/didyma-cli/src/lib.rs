//! The command line of Didyma: arguments in, one job done, an exit code out.
//!
//! Exit codes: 0 done, 1 the job ran but a check failed, 2 it could not run, 130 a run, or the watching of one, was
//! stopped by Ctrl-C or SIGTERM.

#![deny(missing_docs)]

mod arguments;
mod commands;
mod output;
mod terminal;
mod wording;

use anyhow::bail;
use clap::Parser;
use commands::Args;
use didyma::kernel::{KERNELS_VARIABLE, Kernels};
use output::{sentence, tell};
use std::ffi::OsString;
use std::sync::OnceLock;

/// 0 to 255, as shells count.
type ExitCode = u8;
const DONE: ExitCode = 0;
/// The job was done, and what it looked at is not as it should be.
const FAILED: ExitCode = 1;
/// The code that shells have for a program that Ctrl-C ended.
const STOPPED: ExitCode = 130;

/// How this program is started, for the runs that `didyma reproduce` starts.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Carries out a command line, of which the first word is the program's name; returns the exit code. `program` is how
/// the program is started: its file, or an interpreter and what it is to run.
pub fn main(program: Vec<OsString>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let _ = PROGRAM.set(program);
    run(&Args::parse_from(arguments)).unwrap_or_else(|error| {
        tell(&format!("error: {}", sentence(&error)));
        2
    })
}

fn run(args: &Args) -> anyhow::Result<ExitCode> {
    check_kernels()?;
    terminal::end_on_interrupt()?;
    args.command.run()
}

/// The library takes the best kernels if it does not know the ones asked for; a user should hear it.
fn check_kernels() -> anyhow::Result<()> {
    let names = || Kernels::<f32>::available().map(|kernels| kernels.name);
    match std::env::var_os(KERNELS_VARIABLE).map(|name| name.to_string_lossy().into_owned()) {
        Some(wanted) if !wanted.is_empty() && !names().any(|name| name == wanted) => bail!(
            "the environment variable {KERNELS_VARIABLE} is {wanted}, but this CPU has {}: set it to \
             one of these, or unset it",
            names().collect::<Vec<_>>().join(", ")
        ),
        _ => Ok(()),
    }
}
