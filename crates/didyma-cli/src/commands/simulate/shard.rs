//! `didyma simulate --shard`: one part of a round, into a file of its own.

use super::SimulateArgs;
use crate::arguments::{ConfigArgs, LoadedProblem};
use crate::output::{print, tell};
use crate::terminal::{ShardBar, failed_in_a_row};
use crate::{ExitCode, STOPPED};
use anyhow::{Context, bail};
use didyma::run::{Origin, ProposalFile, Shard};
use didyma::tasks::Task;
use didyma::{Assignment, Rows};

/// One of so many parts, from 1.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub part: usize,
    pub of: usize,
}

impl Part {
    /// The simulations of the part, out of so many.
    pub fn range(self, total: usize) -> std::ops::Range<usize> {
        let Self { part, of } = self;
        total * (part - 1) / of..total * part / of
    }
}

pub fn part(text: &str) -> Result<Part, String> {
    let numbers = text.split_once('/').and_then(|(i, n)| Some((i.parse().ok()?, n.parse().ok()?)));
    match numbers {
        Some((part, of)) if (1..=of).contains(&part) && of <= 1_000_000 => Ok(Part { part, of }),
        _ => {
            Err("give the number of the shard and how many there are, as 3/20: from 1/20 to 20/20"
                .to_owned())
        }
    }
}

/// Simulates one part of a round into a file of its own; goes on with it if it was interrupted.
pub fn simulate(args: &SimulateArgs, part: Part) -> anyhow::Result<ExitCode> {
    let loaded = args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(loaded.file.as_ref().map(|(problem, _)| problem))?;
    let out = args
        .out
        .as_ref()
        .context("--out is needed with --shard: a file for this part, as shard-1.db")?;
    let proposal = proposal(args, &loaded)?;
    check_problem(&proposal, &loaded.task)?;
    let mut shard = Shard::open(out, &proposal.origin)?;
    if args.retry_failed {
        tell(&format!("{} failed simulations are made again", shard.forget_failures()?));
    }
    let range = part.range(proposal.origin.simulations);
    let (missing, done) = shard.missing(range.clone())?;
    let Origin { seed, round, in_a_row, .. } = proposal.origin;
    let theta = Rows::new("theta", &proposal.theta, proposal.names.len())?;
    let simulator = loaded.task.problem.simulator();
    let assignment = Assignment { simulator, seed, round, theta, missing, done, in_a_row };
    let mut observer = (shard, ShardBar::new(range.len(), done));
    let made = assignment.run(args.threads.count(), &mut observer);
    let (shard, bar) = observer;
    bar.finish();
    shard.close()?;
    // Whether it was stopped is told by what is done.
    let _ = made.map_err(failed_in_a_row)?;
    let text =
        format!("shard {}/{} of round {round}: {bar} in {}", part.part, part.of, out.display());
    if bar.is_done() {
        return print(&text);
    }
    tell(&format!("{text}: stopped; the same command goes on"));
    Ok(STOPPED)
}

/// The parameters of the whole round.
fn proposal(args: &SimulateArgs, loaded: &LoadedProblem) -> anyhow::Result<ProposalFile> {
    if let Some(path) = &args.proposal {
        return Ok(ProposalFile::read(path)?);
    }
    // Without a run these are the parameters of its first round, for its seed.
    let settings = loaded.file.as_ref().map(|(_, settings)| settings);
    let mut config = ConfigArgs::default().config(args.seed, settings)?;
    config.simulations = args.count.unwrap_or(config.simulations);
    config.check()?;
    Ok(ProposalFile::first(&loaded.task, &config, args.threads.count()))
}

fn check_problem(proposal: &ProposalFile, task: &Task) -> anyhow::Result<()> {
    let names: Vec<&str> = task.problem.prior().names().collect();
    let (found, expected) = (task.problem.observation().len(), proposal.origin.summaries);
    let what = match () {
        () if proposal.names != names => {
            format!(
                "has the parameters {}, but the problem has {}",
                proposal.names.join(", "),
                names.join(", ")
            )
        }
        () if found != expected => {
            format!("is for {expected} summaries, but the problem has {found}")
        }
        () => return Ok(()),
    };
    bail!("--proposal {what}: give the problem that the run was begun with")
}
