//! `didyma reproduce`: the paper's tables and figures, and studies that it lacks.

use crate::arguments::{between, seeds, threads};
use crate::output::{print, sentence, tell};
use crate::terminal::{Stop, stop_on_interrupt};
use crate::{DONE, ExitCode, PROGRAM, STOPPED};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use didyma::Named;
use didyma_lab::{Console, Reproduction, Target};
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Reproduce the paper: each table and figure, and studies that it lacks, beside what it prints.
///
/// Runs what is missing in the folder, goes on with what was interrupted, then writes for each result a page in
/// Markdown, all numbers as CSV, and figures as SVG; reproduction.md has them all. Results share their runs.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma reproduce all --quick --out try
  didyma reproduce table-1 complexity --out paper
  didyma reproduce table-2 figure-3 --seeds 3 --jobs 16 --out paper")]
pub struct ReproduceArgs {
    /// Tables and figures of the paper by number; complexity, convergence and ablation, which it lacks; snse, score
    /// estimation with its published settings, which takes hours; or all of these.
    #[arg(value_name = "WHAT", required = true, num_args = 1.., value_parser = target())]
    targets: Vec<Option<Target>>,

    /// Runs of each kind, with the seeds 1 to K.
    #[arg(long, default_value = "3", value_name = "K", value_parser = seeds, allow_negative_numbers = true)]
    seeds: u64,

    /// Rounds of the runs, where the figure does not ask for its own number.
    #[arg(long, default_value = "10", value_name = "R", value_parser = rounds, allow_negative_numbers = true)]
    rounds: u32,

    /// A small version of everything, to see that it works: one task, two rounds at most. Its numbers mean nothing.
    #[arg(long)]
    quick: bool,

    /// Runs side by side, each on one thread; one run at a time takes all cores.
    #[arg(long, default_value = "1", value_name = "J", value_parser = threads, allow_negative_numbers = true)]
    jobs: usize,

    /// Folder for runs and results. What is finished there is not run again, and what was interrupted goes on.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
}

pub fn run(args: &ReproduceArgs) -> anyhow::Result<ExitCode> {
    let ReproduceArgs { seeds, rounds, quick, jobs, ref out, .. } = *args;
    let (targets, out) = (args.targets(), out.clone());
    carry_out(&Reproduction { targets, seeds, rounds, quick, jobs, out })
}

/// Runs what is missing, then writes what was asked for.
fn carry_out(asked: &Reproduction) -> anyhow::Result<ExitCode> {
    let work = asked.begin()?;
    let stop = stop_on_interrupt();
    let program = PROGRAM.get().map_or(&[][..], Vec::as_slice);
    let Some(failures) = work.carry_out(program, &stop, &Terminal)? else { return Ok(stopped()) };
    exit_when_stopped(stop);
    for &target in &asked.targets {
        let title = work.write(target, &Terminal)?;
        print(&format!("{}: {title}", target.name()))?;
    }
    print(&format!("page: {}", work.write_page(&failures)?.display()))?;
    if failures.is_empty() {
        return Ok(DONE);
    }
    let count = failures.len();
    tell(&format!("{count} runs did not finish: give the same command again to go on with them"));
    Ok(1)
}

/// Progress on stderr.
struct Terminal;

impl Console for Terminal {
    fn tell(&self, line: &str) {
        tell(line);
    }

    fn sentence(&self, error: &anyhow::Error) -> String {
        sentence(error)
    }
}

/// From here on nothing is lost by ending at once: runs are finished, and files appear whole or not at all.
fn exit_when_stopped(stop: Stop) {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stopped();
        std::process::exit(STOPPED.into());
    });
}

fn stopped() -> ExitCode {
    tell("stopped; everything so far is saved. To go on, give the same command again");
    STOPPED
}

impl ReproduceArgs {
    /// Each target once, in the order of the paper.
    fn targets(&self) -> Vec<Target> {
        let wanted = |target: Target| self.targets.iter().any(|t| t.is_none_or(|t| t == target));
        Target::ALL.iter().map(|(_, target)| *target).filter(|t| wanted(*t)).collect()
    }
}

/// A target by its name; none for all.
fn target() -> impl TypedValueParser<Value = Option<Target>> {
    let names = Target::ALL.iter().map(|(name, _)| *name).chain(["all"]);
    PossibleValuesParser::new(names)
        .map(|name| Target::ALL.iter().find(|(known, _)| *known == name).map(|(_, target)| *target))
}

fn rounds(text: &str) -> Result<u32, String> {
    between(text, "a whole number", 2..=1000)
}
