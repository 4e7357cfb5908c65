//! The command line of Didyma: arguments in, one job done, an exit code out.
//!
//! Exit codes: 0 done, 1 the job ran but a check failed, 2 it could not run, 130 a run, or the watching of one, was
//! stopped by Ctrl-C or SIGTERM.

#![deny(missing_docs)]

mod abc;
mod alpha;
mod args;
mod bench;
mod check;
mod cluster;
mod device;
mod infer;
mod init;
mod levels;
mod live;
mod metrics;
mod problems;
mod progress;
mod report;
mod reproduce;
mod results;
mod seeds;
mod settings;
mod watch;

use anyhow::{Context, bail};
use args::{Args, BenchCommand, Command};
use clap::Parser;
use didyma::kernel::{KERNELS_VARIABLE, Kernels};
use didyma::run::Group;
use std::ffi::OsString;
use std::io::{ErrorKind, Write};
use std::sync::OnceLock;

pub use args::DeviceChoice;
pub use device::{Devices, devices};

/// 0 to 255, as shells count.
type ExitCode = u8;
const DONE: ExitCode = 0;

/// How this program is started, for the runs that `didyma reproduce` starts.
static PROGRAM: OnceLock<Vec<OsString>> = OnceLock::new();

/// Carries out a command line, of which the first word is the program's name; returns the exit code. `program` is how
/// the program is started: its file, or an interpreter and what it is to run.
pub fn main(program: Vec<OsString>, arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let _ = PROGRAM.set(program);
    match run(Args::parse_from(arguments)) {
        Ok(code) => code,
        Err(error) => {
            tell(&format!("error: {}", sentence(&error)));
            2
        }
    }
}

/// The error and its causes, each told once.
fn sentence(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        told if told.contains(&cause) => text,
        told => format!("{told}: {cause}"),
    })
}

fn run(args: Args) -> anyhow::Result<ExitCode> {
    check_kernels()?;
    // The watching of a run has a screen to leave in order.
    if !matches!(args.command, Command::Watch(_)) {
        live::end_on_interrupt()?;
    }
    match args.command {
        Command::Infer(args) if args.seeds > 1 => seeds::infer(&args),
        Command::Resume(args) if Group::is_at(&args.dir) => seeds::resume(&args),
        Command::Show(args) if Group::is_at(&args.dir) => seeds::show(&args),
        Command::Infer(args) => show_run(&infer::infer(&args)?, args.json),
        Command::Resume(args) => show_run(&infer::resume(&args)?, args.json),
        Command::Train(args) => {
            let (shown, code) = cluster::train(&args)?;
            show(&shown, args.json).map(|()| code)
        }
        Command::Check(args) => {
            let Some(checked) = check::check(&args)? else { return Ok(STOPPED) };
            show(&checked, args.json)?;
            checked.tell_failures();
            Ok(ExitCode::from(u8::from(!checked.passed())))
        }
        Command::Simulate(args) if args.shard.is_some() => cluster::simulate_shard(&args),
        Command::Watch(args) => watch::watch(&args),
        Command::Reproduce(args) => reproduce::reproduce(&args),
        other => answer(other).map(|()| DONE),
    }
}

/// Shows a run; one that was stopped is no success, so that scripts do not go on.
fn show_run(run: &results::Shown, json: bool) -> anyhow::Result<ExitCode> {
    show(run, json)?;
    Ok(if run.is_finished() { DONE } else { STOPPED })
}

/// What shells say of a program that Ctrl-C ended.
const STOPPED: u8 = 130;

/// The commands that need no saving.
fn answer(command: Command) -> anyhow::Result<()> {
    match command {
        Command::Infer(_)
        | Command::Check(_)
        | Command::Resume(_)
        | Command::Train(_)
        | Command::Watch(_)
        | Command::Reproduce(_) => unreachable!("handled before"),
        Command::Init(args) => init::init(&args),
        Command::Propose(args) => cluster::propose(&args),
        Command::Merge(args) => cluster::merge(&args),
        Command::Show(args) => show(&results::show(&args)?, args.json),
        Command::Sample(args) => results::sample(&args),
        Command::Evaluate(args) => show(&results::evaluate(&args)?, args.json),
        Command::LogDensity(args) => results::log_density(&args),
        Command::Report(args) => report::report(&args),
        Command::Plot(args) => report::plot(&args),
        Command::Settings(args) => show(&settings::settings(&args)?, args.json),
        Command::Tasks(args) => show(&problems::tasks(), args.json),
        Command::Devices(args) => show(&devices(), args.json),
        Command::Simulate(args) => match problems::simulate(&args)? {
            Some(report) => show(&report, args.json),
            None => Ok(()),
        },
        Command::Reference(args) => problems::reference(&args),
        Command::Abc(args) => match abc::abc(&args)? {
            Some(report) => show(&report, args.json),
            None => Ok(()),
        },
        Command::Metrics(args) => show(&metrics::metrics(&args)?, args.json),
        Command::Alpha(args) => show(&alpha::alpha(&args)?, args.json),
        Command::Levels(args) => {
            let report = levels::levels(&args)?;
            show(&report, args.json)?;
            report.plot(&args)
        }
        Command::Bench { command: BenchCommand::Step(args) } => {
            show(&bench::step(&args)?, args.json)
        }
        Command::Bench { command: BenchCommand::Simulate(args) } => {
            show(&bench::simulate(&args)?, args.json)
        }
    }
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

/// Prints a result as text or as one JSON object.
fn show(report: &(impl std::fmt::Display + serde::Serialize), json: bool) -> anyhow::Result<()> {
    print(&if json { serde_json::to_string(report)? } else { report.to_string() })
}

/// A path as a shell reads it, for commands that a user may paste.
fn pasted(path: &std::path::Path) -> String {
    shell_words::quote(&path.to_string_lossy()).into_owned()
}

/// Prints a line on stderr; whether anybody reads it is no reason to stop.
fn tell(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Prints a line; a reader that has gone away (`| head`) is no error.
fn print(text: &str) -> anyhow::Result<()> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other.context("the result could not be printed"),
    }
}
