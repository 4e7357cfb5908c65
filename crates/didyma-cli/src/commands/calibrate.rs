//! `didyma calibrate`: are the probabilities that a finished run states right?

use super::infer::with_page;
use super::merge::warn_of_others;
use super::resume::problem_of;
use crate::arguments::{ProgramArgs, ThreadsArgs, between};
use crate::output::{pasted, show, tell};
use crate::terminal::{ShardBar, failed_in_a_row};
use crate::{ExitCode, FAILED, STOPPED};
use anyhow::bail;
use clap::Parser;
use didyma::Source;
use didyma::report::CalibrationReport;
use didyma::run::{CalibrationRequest, Calibrator, Findings, Manifest, Merged, Word};
use didyma::tasks::Task;
use std::path::PathBuf;

/// Calibrate a finished run: do the probabilities that its posterior states come true?
///
/// By default its own held-out simulations answer, which training never saw; nothing is simulated. --simulations makes new ones,
/// near the observation: a sharper and a fairer test, since they ask the whole posterior, and not its members one by one. Places of
/// the true parameters among draws of the posterior have exact p-values, wherever the parameters were proposed; a classifier (the local test) looks for
/// errors at the observation itself. All is stored beside the run (calibration.json), and the run's verdict and page follow it.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma calibrate run                                 what held-out simulations say
  didyma calibrate run --simulations 1000              a sharper test by new ones; interrupted, the same command goes on
  didyma calibrate run --simulations 500 --conformal   levels whose regions cover as often as they state
  didyma calibrate run --simulations 1000 --propose    on a cluster: parameters to simulate in shards, and then
  didyma calibrate run --merge shard-*.db

Reading the table:
  p          how often an exact posterior has places as uneven as these, by one line of the table: below 0.01, times the
             number of lines, something is wrong
  deviation  how far their law is from the one it should be: 0.08 is small, 0.2 is bad
  shift      by how many sd the truth lies above the posterior (below it, if negative)
  width      sd of the truths' normal scores: above 1 the posterior is too narrow, below 1 too wide

Exit codes: 0 calibrated, whatever the verdict (with --strict 1 if it is \"do not trust\"); 2 it could not be calibrated;
130 stopped by Ctrl-C, all simulations so far are stored.")]
pub struct CalibrateArgs {
    /// Directory of a finished run.
    #[arg(value_name = "RUN")]
    pub dir: PathBuf,

    /// Make so many new simulations, from where the next round would propose; those of an earlier call count.
    #[arg(long, value_name = "N", value_parser = simulations, allow_negative_numbers = true)]
    pub simulations: Option<usize>,

    /// Also give levels of credible regions that have the coverage they state (split conformal). Guaranteed on average over
    /// parameters of the prior near the observation, not at the observation alone; new simulations are spread evenly for it.
    #[arg(long)]
    pub conformal: bool,

    /// Leave out the local test, which takes longest.
    #[arg(long)]
    pub no_local: bool,

    /// Ask the run's held-out simulations again, also where new ones are stored.
    #[arg(long, conflicts_with_all = ["simulations", "conformal", "merge"])]
    pub held_out: bool,

    /// Only write the parameters of the new simulations into the run, for `didyma simulate --proposal`, and end.
    #[arg(long, requires = "simulations", conflicts_with = "merge")]
    pub propose: bool,

    /// Take these files of `didyma simulate --shard` among the new simulations first.
    #[arg(long, value_name = "SHARD", num_args = 1..)]
    pub merge: Vec<PathBuf>,

    /// Make failed new simulations again, after the simulator was repaired.
    #[arg(long, requires = "simulations")]
    pub retry_failed: bool,

    /// Take the simulator from this problem file, which has moved or was repaired.
    #[arg(long, value_name = "FILE.toml", requires = "simulations")]
    pub problem: Option<PathBuf>,

    #[command(flatten)]
    pub program: ProgramArgs,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    /// Exit with 1 if the verdict is "do not trust".
    #[arg(long)]
    pub strict: bool,

    /// Print every statistic and the verdict as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// Fewer say nothing, and more than this do not fit.
fn simulations(text: &str) -> Result<usize, String> {
    between(text, "a whole number", 20..=10_000_000)
}

pub fn run(args: &CalibrateArgs) -> anyhow::Result<ExitCode> {
    let (local, conformal, held_out) = (!args.no_local, args.conformal, args.held_out);
    let request = CalibrationRequest { local, conformal, held_out };
    let mut calibrator = Calibrator::open(&args.dir, request, args.threads.count())?;
    let manifest = calibrator.run().manifest().clone();
    if let (true, Some(count)) = (args.propose, args.simulations) {
        return propose(args, &calibrator, &manifest, count);
    }
    if !args.merge.is_empty() {
        merge(args, &mut calibrator)?;
    }
    if let Some(count) = args.simulations {
        let task = task(args, &manifest)?;
        if simulate(args, &mut calibrator, &task, count)? == STOPPED {
            return Ok(STOPPED);
        }
    }
    let made = calibrator.stored()?;
    let findings = calibrator.finish()?;
    with_page(&findings, tell);
    report(args, &findings, made)
}

fn report(
    args: &CalibrateArgs,
    findings: &Findings,
    made: (usize, usize),
) -> anyhow::Result<ExitCode> {
    let report = CalibrationReport::new(findings, made)?;
    let distrusted = report.verdict.word == Word::DoNotTrust;
    let code = show(&report, args.json)?;
    Ok(if args.strict && distrusted { FAILED } else { code })
}

/// The problem with its simulator.
fn task(args: &CalibrateArgs, manifest: &Manifest) -> anyhow::Result<Task> {
    let problem = problem_of(manifest, args.problem.as_deref(), &args.program, &args.dir)?;
    let Some(problem) = problem else { return Ok(manifest.task()?) };
    if let Source::Function { .. } = problem.source {
        let dir = args.dir.display();
        bail!(
            "the simulator of {dir} is a function of a program, which is not known here: in Python, \
             didyma.Result.load(\"{dir}\").calibrate(simulator, simulations={})",
            args.simulations.unwrap_or_default()
        );
    }
    Ok(problem.task()?)
}

/// Makes new simulations, seen on the terminal.
fn simulate(
    args: &CalibrateArgs,
    calibrator: &mut Calibrator,
    task: &Task,
    count: usize,
) -> anyhow::Result<ExitCode> {
    if args.retry_failed {
        tell(&format!("{} failed simulations are made again", calibrator.forget_failures()?));
    }
    let (done, failed) = calibrator.stored()?;
    let mut bar = ShardBar::new(count, (done.min(count), failed));
    let made = calibrator.simulate(task.problem.simulator(), count, &mut bar);
    bar.finish();
    let go_on = made.map_err(failed_in_a_row)?;
    if go_on.is_break() {
        tell(&format!(
            "new simulations: {bar}: stopped; all so far are stored, and the same command goes on"
        ));
        return Ok(STOPPED);
    }
    // From here on nothing is lost: an interrupt ends the process.
    bar.interrupt_ends();
    Ok(crate::DONE)
}

/// Writes the parameters of new simulations for a cluster.
fn propose(
    args: &CalibrateArgs,
    calibrator: &Calibrator,
    manifest: &Manifest,
    count: usize,
) -> anyhow::Result<ExitCode> {
    let path = calibrator.propose(count)?;
    let (path, dir) = (pasted(&path), pasted(&args.dir));
    let problem = if manifest.problem.is_some() { "PROBLEM.toml" } else { &manifest.task };
    let conformal = if args.conformal { " --conformal" } else { "" };
    crate::output::print(&format!(
        "{count} parameters of new simulations in {path}\n\
         next: didyma simulate {problem} --proposal {path} --shard 1/N --out shard-1.db   (and so on to N/N, anywhere)\n\
         then: didyma calibrate {dir}{conformal} --merge shard-*.db"
    ))
}

/// Takes shards among the new simulations.
fn merge(args: &CalibrateArgs, calibrator: &mut Calibrator) -> anyhow::Result<()> {
    let Merged { new, known, repaired, different } = calibrator.merge(&args.merge)?;
    warn_of_others(different);
    let repaired = match repaired {
        0 => String::new(),
        repaired => format!(", {repaired} successes in place of failures"),
    };
    tell(&format!("{new} new simulations, {known} known ones{repaired}"));
    Ok(())
}
