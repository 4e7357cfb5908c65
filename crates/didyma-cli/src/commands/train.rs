//! `didyma train`: the training of a round whose simulations are all merged.

use super::infer::{Until, work};
use super::merge::state;
use crate::arguments::{DeviceArgs, ThreadsArgs};
use crate::output::{show, tell};
use crate::{DONE, ExitCode, STOPPED};
use anyhow::bail;
use clap::Parser;
use didyma::run::RunDir;
use std::path::PathBuf;

/// Train the round of a run whose simulations are all merged.
#[derive(Debug, Parser)]
pub struct TrainArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Trains a round whose simulations are all there.
pub fn run(args: &TrainArgs) -> anyhow::Result<ExitCode> {
    let run = RunDir::open(&args.dir)?;
    let manifest = run.manifest().clone();
    let (round, missing, total) = state(&run)?;
    let (dir, rounds) = (args.dir.display(), manifest.config.rounds);
    if round <= rounds && missing > 0 {
        bail!(
            "round {round} of {dir} lacks {missing} of {total} simulations: merge more shards (`didyma propose {dir}` writes its \
             parameters), or let `didyma resume {dir}` simulate them here"
        );
    }
    let task = manifest.task()?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let shown = work(run, &task, machine, Until::Round)?;
    match shown.rounds() >= round as usize {
        true if shown.is_finished() => {}
        true => tell(&format!("round {round} is trained. next: didyma propose {dir}")),
        false => {
            tell(&format!("stopped; everything so far is saved. To go on: didyma train {dir}"))
        }
    }
    show(&shown, args.json)?;
    Ok(if shown.rounds() >= round.min(rounds) as usize { DONE } else { STOPPED })
}
