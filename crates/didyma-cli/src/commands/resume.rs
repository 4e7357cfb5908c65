//! `didyma resume`: a run, or the runs of several seeds, from where they stopped.

use super::infer::{Until, work};
use super::seeds;
use crate::ExitCode;
use crate::arguments::{DeviceArgs, ProgramArgs, ThreadsArgs};
use crate::output::tell;
use anyhow::bail;
use clap::Parser;
use didyma::ProblemRecord;
use didyma::problem_file::ProblemFile;
use didyma::run::{Manifest, RunDir, SeedSweep};
use didyma::tasks::Task;
use std::path::{Path, PathBuf};

/// Go on with a run that was stopped, killed, or ran out of disk space; or with all unfinished runs of `infer --seeds`.
#[derive(Debug, Parser)]
pub struct ResumeArgs {
    /// Directory of the run, or of the runs of several seeds.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Take the simulator from this problem file, which has moved or was repaired; parameters, priors and observation must
    /// be those of the run.
    #[arg(long, value_name = "FILE.toml")]
    pub problem: Option<PathBuf>,

    /// Simulate those again that failed in the unfinished round, after the simulator was repaired.
    #[arg(long)]
    pub retry_failed: bool,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,

    /// Fixed at the beginning of a run: refused with a sentence.
    #[arg(long, hide = true, value_name = "COUNT")]
    pub members: Option<String>,

    /// Fixed at the beginning of a run: refused with a sentence.
    #[arg(long, hide = true, value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

pub fn run(args: &ResumeArgs) -> anyhow::Result<ExitCode> {
    let fixed = [("--members", args.members.is_some()), ("--set", !args.set.is_empty())];
    if let Some((flag, _)) = fixed.iter().find(|(_, given)| *given) {
        bail!(
            "{flag}: a run keeps the settings that it began with: leave it out, or begin another run with `didyma infer`"
        );
    }
    if SeedSweep::is_at(&args.dir) {
        return seeds::resume(args);
    }
    let mut run = RunDir::open(&args.dir)?;
    let manifest = run.manifest().clone();
    let task = args.task(&manifest)?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let unfinished = run.rounds()? as u32 + 1;
    if args.retry_failed {
        let forgotten = run.forget_failures(unfinished)?;
        tell(&format!("{forgotten} failed simulations of round {unfinished} are made again"));
    }
    work(run, &task, machine, Until::Finished)?.show(args.json)
}

impl ResumeArgs {
    /// The problem of a run, with what the command line changes of its program.
    fn task(&self, manifest: &Manifest) -> anyhow::Result<Task> {
        Ok(match self.problem_of(manifest)? {
            Some(problem) => problem.task()?,
            None => manifest.task()?,
        })
    }

    /// The problem of a run where it is not built in.
    pub fn problem_of(&self, manifest: &Manifest) -> anyhow::Result<Option<ProblemRecord>> {
        problem_of(manifest, self.problem.as_deref(), &self.program, &self.dir)
    }
}

/// The problem of a run in `dir` where it is not built in: that of a file, if one is given, which must ask the same.
pub fn problem_of(
    manifest: &Manifest,
    file: Option<&Path>,
    program: &ProgramArgs,
    dir: &Path,
) -> anyhow::Result<Option<ProblemRecord>> {
    program.check(manifest.problem.as_ref())?;
    let mut problem = match (file, &manifest.problem) {
        (Some(path), Some(before)) => {
            let problem = ProblemFile::read(path)?.problem;
            same_question(&problem, before, path, dir)?;
            problem
        }
        (Some(path), None) => bail!(
            "--problem is {}, but {} is a run of the built-in task {}: leave it out",
            path.display(),
            dir.display(),
            manifest.task
        ),
        (None, Some(problem)) => problem.clone(),
        (None, None) => return Ok(None),
    };
    program.apply(&mut problem);
    Ok(Some(problem))
}

/// Simulations of another question would spoil a run.
fn same_question(
    found: &ProblemRecord,
    expected: &ProblemRecord,
    file: &Path,
    dir: &Path,
) -> anyhow::Result<()> {
    let (file, dir) = (file.display(), dir.display());
    let what = match () {
        () if found.prior != expected.prior => "parameters or priors",
        () if found.observation != expected.observation => "observation",
        () if found.summaries != expected.summaries => "names of summaries",
        () => return Ok(()),
    };
    bail!(
        "{file} has other {what} than the run in {dir}: give the file that it began with, or begin a run of its own"
    )
}
