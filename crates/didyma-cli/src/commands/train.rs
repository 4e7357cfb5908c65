//! `didyma train`: the training of a round whose simulations are all merged.

use super::infer::{Until, work};
use super::merge::state;
use crate::arguments::{DeviceArgs, ThreadsArgs};
use crate::output::{show, tell};
use crate::{DONE, ExitCode, STOPPED};
use anyhow::bail;
use clap::Parser;
use didyma::run::{ProposalFile, RunDir};
use std::path::PathBuf;

/// Train the round of a run whose simulations are all merged. A round that is trained already stays as it is.
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
    // Nothing of the next round has begun: the one before it was meant, and is trained.
    let proposed = ProposalFile::path(&args.dir, round).exists();
    let next = round > 1 && round <= rounds && missing == total && !proposed;
    if round <= rounds && missing > 0 && !next {
        bail!(
            "round {round} of {dir} lacks {missing} of {total} simulations: merge more shards (`didyma propose {dir}` writes its \
             parameters), or let `didyma resume {dir}` simulate them here"
        );
    }
    let task = manifest.task()?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    // Files that a kill left out are written again.
    let shown = work(run, &task, machine, if next { Until::Now } else { Until::Round })?;
    let trained = shown.rounds() >= round as usize;
    let before = round - 1;
    tell(&match () {
        () if round > rounds => format!("all rounds of {dir} are trained already"),
        () if next => format!("round {before} is trained already. next: didyma propose {dir}"),
        () if trained && round == rounds => format!("round {round} is trained, the last one"),
        () if trained => format!("round {round} is trained. next: didyma propose {dir}"),
        () => format!("stopped; everything so far is saved. To go on: didyma train {dir}"),
    });
    show(&shown, args.json)?;
    Ok(if trained || next || round > rounds { DONE } else { STOPPED })
}
