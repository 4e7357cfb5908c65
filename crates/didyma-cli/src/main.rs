//! The command line of Didyma: arguments in, one job done, an exit code out.
//!
//! Exit codes: 0 done, 1 the job ran but a check failed, 2 it could not run.

mod args;
mod bench;

use args::{Args, BenchCommand, Command};
use clap::Parser;
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn run(args: Args) -> anyhow::Result<()> {
    match args.command {
        Command::Bench { command: BenchCommand::Step(step) } => {
            let json = step.json;
            let report = bench::step(&step)?;
            if json {
                bench::print(&serde_json::to_string(&report)?)
            } else {
                bench::print(&report.to_string())
            }
        }
    }
}
