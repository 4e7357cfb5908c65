//! `didyma propose`: the parameters of a run's next round, to be simulated elsewhere.

use super::infer::manifest;
use crate::ExitCode;
use crate::arguments::{
    ConfigArgs, LoadedProblem, ProblemArgs, ProblemChoice, ThreadsArgs, given, whole,
};
use crate::output::print;
use anyhow::bail;
use clap::Parser;
use didyma::Error;
use didyma::run::{Fault, Origin, ProposalFile, RunDir};
use std::path::PathBuf;

/// Write the parameters that a run's next round is to simulate, for a cluster; begin the run if there is none.
///
/// A round is then: propose, simulate its shards anywhere, merge them, train. The result is the same, to the byte, as
/// that of `didyma infer` on one machine. Repeated with the same arguments, it proposes the same.
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  didyma propose run problem.toml --rounds 5 -n 1000
  for i in 1 2 3 4; do
      didyma simulate problem.toml --proposal run/proposal-1.csv --shard $i/4 --out shard-$i.db
  done
  didyma merge run shard-*.db
  didyma train run
  didyma propose run     (and so on)")]
pub struct ProposeArgs {
    /// Directory of the run; one that does not exist is made, if a task or a problem file is given as well.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// A built-in task, or the TOML file of a problem, for the first round.
    #[arg(value_name = "TASK|FILE.toml", value_parser = given)]
    given: Option<ProblemChoice>,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Simulations of a round, as --simulations; all rounds have as many.
    #[arg(short = 'n', value_name = "COUNT", value_parser = whole::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub count: Option<usize>,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

impl ProposeArgs {
    pub fn problem(&self) -> Option<ProblemArgs> {
        self.given.clone().map(ProblemArgs::of)
    }
}

/// Writes the parameters of a run's next round; begins the run if there is none.
pub fn run(args: &ProposeArgs) -> anyhow::Result<ExitCode> {
    let run = open_or_begin(args)?;
    let manifest = run.manifest().clone();
    let config = &manifest.config;
    if let Some(count) = args.count.filter(|count| *count != config.simulations) {
        bail!(
            "-n is {count}, but the rounds of {} have {} simulations: leave it out",
            args.dir.display(),
            config.simulations
        );
    }
    let task = manifest.task()?;
    let found = didyma::propose(&task.problem, config, args.threads.count(), run.progress()?)?;
    let Some((round, theta)) = found else {
        bail!("{} is finished: all its rounds are trained", args.dir.display());
    };
    let origin = Origin::new(Some(run.identity()), round, &task, config);
    let path = ProposalFile::path(&args.dir, round);
    // A file that is there stays: another kind of CPU could round its numbers differently.
    let there = path.is_file().then(|| ProposalFile::read(&path)).and_then(Result::ok);
    if there.is_none_or(|there| there.origin != origin) {
        let names = task.problem.prior().names().map(str::to_owned).collect();
        ProposalFile { origin, names, theta }.write(&path)?;
    }
    let simulations = config.simulations;
    let (path, dir) = (path.display(), args.dir.display());
    print(&format!(
        "round {round} of {}: {simulations} parameters in {path}\n\
         next: didyma simulate {} --proposal {path} --shard 1/N --out shard-1.db   (and so on to N/N, anywhere)\n\
         then: didyma merge {dir} shard-*.db && didyma train {dir}",
        config.rounds,
        if manifest.problem.is_some() { "PROBLEM.toml" } else { &manifest.task },
    ))
}

/// The run, which may have been ended at any moment of its beginning.
fn open_or_begin(args: &ProposeArgs) -> anyhow::Result<RunDir> {
    let dir = args.dir.display();
    let opened = match args.problem() {
        None => RunDir::open(&args.dir),
        Some(problem) => {
            let LoadedProblem { task, file } = problem.load()?;
            let mut config = args.config.config(args.seed, file.as_ref().map(|(_, s)| s))?;
            config.simulations = args.count.unwrap_or(config.simulations);
            config.check()?;
            RunDir::open_or_create(&args.dir, &manifest(&task, file, config))
        }
    };
    match opened {
        Err(Error::Run { fault: Fault::Missing | Fault::NotBegun, .. }) => bail!(
            "{dir} holds no run yet: give the task or the problem file to begin one, as `didyma propose {dir} problem.toml`"
        ),
        Err(Error::Run { fault: Fault::Differs { what }, .. }) => bail!(
            "{dir} holds a run with other settings ({what}): leave the task or file and all settings out to go on with \
             it, or give another directory"
        ),
        opened => Ok(opened?),
    }
}
