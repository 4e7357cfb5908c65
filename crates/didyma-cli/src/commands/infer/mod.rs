//! `didyma infer`: a whole run, or runs of several seeds, saved as they go.

mod execution;

pub use execution::{Until, with_page, with_remedy, work};

use super::seeds;
use crate::ExitCode;
use crate::arguments::{
    ConfigArgs, DeviceArgs, LoadedProblem, ProblemArgs, ProgramArgs, ThreadsArgs,
    seeds as seed_count, whole,
};
use clap::Parser;
use didyma::ProblemRecord;
use didyma::config::Config;
use didyma::problem_file::FileSettings;
use didyma::run::{Manifest, RunDir};
use didyma::tasks::Task;
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Infer a task's posterior: propose, simulate and train, round after round.
///
/// Everything is saved in a directory as it happens. Whatever ends the process (Ctrl-C, a kill, a full disk),
/// `didyma resume DIR` goes on and ends with the same bytes. The result depends on the seed, not on the threads.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma infer two-moons
  didyma infer lotka-volterra --rounds 10 --simulations 1000 --seed 7 --out lv
  didyma infer mg1 --method tgrr --set estimator.m0=8
  didyma infer two-moons --method tgrr --profile paper --set estimator.coupling=planted --set flow.bound=3
  didyma infer two-moons --seeds 4 --out moons     (then: didyma show moons)
  didyma infer two-moons --json | jq .rounds[-1].c2st")]
pub struct InferArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Make so many runs side by side, with the seeds SEED, SEED + 1, …; how much they differ tells how far one of them can
    /// be trusted. Each is a run of its own in DIR/seed-SEED, the same to the byte as if it were made alone, and
    /// `didyma show DIR` and `didyma resume DIR` take all of them. Threads, and --workers, are shared out.
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = seed_count, allow_negative_numbers = true)]
    pub seeds: u64,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Directory of the run, made new [default: runs/TASK-METHOD-SEED, or runs/TASK-METHOD-seeds for several, with a number
    /// if that is taken].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &InferArgs) -> anyhow::Result<ExitCode> {
    if args.seeds > 1 {
        return seeds::infer(args);
    }
    let (task, manifest) = asked(args)?;
    let out = args.out.clone().unwrap_or_else(|| free_directory(&manifest, manifest.config.seed));
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let run = RunDir::create(&out, &manifest)?;
    work(run, &task, machine, Until::Finished)?.show(args.json)
}

/// The task and the manifest of a run that is asked for, all checked.
pub fn asked(args: &InferArgs) -> anyhow::Result<(Task, Manifest)> {
    let LoadedProblem { task, file } =
        args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(file.as_ref().map(|(problem, _)| problem))?;
    let settings = file.as_ref().map(|(_, settings)| settings);
    let config = args.config.config(args.seed, settings)?;
    let manifest = manifest(&task, file, config);
    Ok((task, manifest))
}

/// The manifest of a run of a task or a problem file.
pub fn manifest(
    task: &Task,
    file: Option<(ProblemRecord, FileSettings)>,
    config: Config,
) -> Manifest {
    match file {
        Some((problem, _)) => Manifest::of_problem(problem, config),
        None => Manifest::of_task(&task.name, config),
    }
}

/// The first of runs/TASK-METHOD-END, …-2, …-3 that does not exist.
pub fn free_directory(manifest: &Manifest, end: impl Display) -> PathBuf {
    let Manifest { task, config, .. } = manifest;
    let name = format!("{task}-{}-{end}", config.method_name());
    let numbered = |number: u32| match number {
        1 => Path::new("runs").join(&name),
        _ => Path::new("runs").join(format!("{name}-{number}")),
    };
    (1..).map(numbered).find(|path| !path.exists()).expect("some number is free")
}
