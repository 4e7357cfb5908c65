//! `didyma merge`: simulations that were made elsewhere become a run's.

use crate::ExitCode;
use crate::output::{print, tell};
use clap::Parser;
use didyma::run::{Merged, RunDir};
use std::path::PathBuf;

/// Take simulations that were made elsewhere into a run.
#[derive(Debug, Parser)]
pub struct MergeArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Files of `didyma simulate --shard`, in any order; one that was merged before changes nothing.
    #[arg(value_name = "SHARD", required = true)]
    pub shards: Vec<PathBuf>,
}

/// Takes simulations that were made elsewhere into a run.
pub fn run(args: &MergeArgs) -> anyhow::Result<ExitCode> {
    let mut run = RunDir::open(&args.dir)?;
    let Merged { new, known, repaired, different } = run.merge(&args.shards)?;
    let (round, missing, total) = state(&run)?;
    let mut text = format!("{new} new simulations, {known} known ones");
    if repaired > 0 {
        text += &format!(", {repaired} successes in place of failures");
    }
    warn_of_others(different);
    let dir = args.dir.display();
    let finished = round > run.manifest().config.rounds;
    text += &match missing {
        _ if finished => "; all rounds are trained".to_owned(),
        0 => format!("; round {round} is complete. next: didyma train {dir}"),
        missing => format!("; round {round} lacks {missing} of {total}"),
    };
    print(&text)
}

/// Tells of simulations that came with another outcome than before.
pub fn warn_of_others(different: usize) {
    if different > 0 {
        tell(&format!(
            "warning: {different} simulations were there already with another outcome, which was kept: the simulator does \
             not give the same for the same seed"
        ));
    }
}

/// The unfinished round, the simulations that it lacks, and those that it needs.
pub fn state(run: &RunDir) -> anyhow::Result<(u32, usize, usize)> {
    let config = &run.manifest().config;
    let round = run.rounds()? as u32 + 1;
    let done = run.count(round)?;
    Ok((round, config.simulations - done.min(config.simulations), config.simulations))
}
