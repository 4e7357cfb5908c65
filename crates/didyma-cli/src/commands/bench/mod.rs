//! `didyma bench`: how fast this machine is.

mod simulate;
mod step;

use crate::ExitCode;
use clap::{Parser, Subcommand};
use simulate::BenchSimulateArgs;
use step::StepArgs;

/// Measure how fast this machine is at the work of training.
#[derive(Debug, Parser)]
#[command(arg_required_else_help = true)]
pub struct BenchArgs {
    #[command(subcommand)]
    command: BenchCommand,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    Step(StepArgs),
    Simulate(BenchSimulateArgs),
}

pub fn run(args: &BenchArgs) -> anyhow::Result<ExitCode> {
    match &args.command {
        BenchCommand::Step(args) => step::run(args),
        BenchCommand::Simulate(args) => simulate::run(args),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 3600.0 => Ok(value),
        _ => Err("give a number of seconds above 0 and up to 3600".to_owned()),
    }
}
