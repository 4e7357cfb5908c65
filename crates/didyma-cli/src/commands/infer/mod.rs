//! `didyma infer` and `didyma resume`: a whole run, saved as it goes.

use crate::args::{InferArgs, Loaded, ResumeArgs};
use crate::live::{Live, stop_on_interrupt};
use crate::results::Shown;
use crate::tell;
use anyhow::bail;
use didyma::Error;
use didyma::config::Config;
use didyma::device::Machine;
use didyma::observe::{Event, Observer};
use didyma::problem::{FileSettings, Problem, ProblemFile};
use didyma::report::{Overview, write_page};
use didyma::rounds::Progress;
use didyma::run::{self, Manifest, RunDir, progress};
use didyma::tasks::Task;
use std::fmt::Display;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Begins a run and carries it through.
pub fn infer(args: &InferArgs) -> anyhow::Result<Shown> {
    let (task, manifest) = asked(args)?;
    let out = args.out.clone().unwrap_or_else(|| free_directory(&manifest, manifest.config.seed));
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let run = RunDir::create(&out, &manifest.to_json().to_string())?;
    carry_on(run, &task, &manifest, Progress::default(), machine, Until::Finished)
}

/// What a run is to be of, all checked.
pub fn asked(args: &InferArgs) -> anyhow::Result<(Task, Manifest)> {
    let Loaded { task, file } = args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(file.as_ref().map(|(problem, _)| problem))?;
    let settings = file.as_ref().map(|(_, settings)| settings);
    let config = args.config.config(args.seed, settings)?;
    let manifest = manifest(&task, file, config);
    Ok((task, manifest))
}

/// What a run is of.
pub fn manifest(task: &Task, file: Option<(Problem, FileSettings)>, config: Config) -> Manifest {
    match file {
        Some((problem, _)) => Manifest::of_problem(problem, config),
        None => Manifest::of_task(&task.name, config),
    }
}

/// Carries a run on from where it stopped.
pub fn resume(args: &ResumeArgs) -> anyhow::Result<Shown> {
    let mut run = RunDir::open(&args.dir)?;
    let manifest = Manifest::of(&run)?;
    let task = args.task(&manifest)?;
    let machine = args.device.machine(&manifest.config, &task, args.threads.count())?;
    let unfinished = run.rounds()?.len() as u32 + 1;
    if args.retry_failed {
        let forgotten = run.forget_failures(unfinished)?;
        tell(&format!("{forgotten} failed simulations of round {unfinished} are made again"));
    }
    let progress = progress(&run)?;
    carry_on(run, &task, &manifest, progress, machine, Until::Finished)
}

impl ResumeArgs {
    /// The problem of a run, with what the command line changes of its program.
    fn task(&self, manifest: &Manifest) -> anyhow::Result<Task> {
        Ok(match self.problem_of(manifest)? {
            Some(problem) => problem.task()?,
            None => manifest.problem()?,
        })
    }

    /// The same where it is not built in.
    pub fn problem_of(&self, manifest: &Manifest) -> anyhow::Result<Option<Problem>> {
        self.program.check(manifest.problem.as_ref())?;
        let mut problem = match (&self.problem, &manifest.problem) {
            (Some(path), Some(before)) => {
                let problem = ProblemFile::read(path)?.problem;
                same_question(&problem, before, path, &self.dir)?;
                problem
            }
            (Some(path), None) => bail!(
                "--problem is {}, but {} is a run of the built-in task {}: leave it out",
                path.display(),
                self.dir.display(),
                manifest.task
            ),
            (None, Some(problem)) => problem.clone(),
            (None, None) => return Ok(None),
        };
        self.program.apply(&mut problem);
        Ok(Some(problem))
    }
}

/// Simulations of another question would spoil a run.
pub fn same_question(
    found: &Problem,
    expected: &Problem,
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

/// When to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When all rounds are done.
    Finished,
    /// When the next round is done.
    Round,
}

impl Observer for Until {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        match (self, event) {
            (Self::Round, Event::RoundFinished { .. }) => Ok(ControlFlow::Break(())),
            _ => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Works on a run, saves everything, and shows what was found.
pub fn carry_on(
    run: RunDir,
    task: &Task,
    manifest: &Manifest,
    progress: Progress,
    machine: Machine,
    until: Until,
) -> anyhow::Result<Shown> {
    let dir = run.path().to_owned();
    let threads = machine.threads;
    let mut observer = (Live::new(manifest, &dir, &machine, stop_on_interrupt()), until);
    let found = run::carry_on(run, task, progress, machine, &mut observer);
    observer.0.finish();
    let found = found.map_err(|error| with_remedy(error, &dir))?;
    if !found.finished && until == Until::Finished {
        let dir = dir.display();
        tell(&format!("stopped; everything so far is saved. To go on: didyma resume \"{dir}\""));
    }
    if found.finished {
        with_page(&dir, threads, tell);
    }
    let overview = Overview::read(&RunDir::read(&dir)?, threads)?;
    Ok(Shown::new(&dir, Overview { without_rounds: true, ..overview }))
}

/// Writes the page about a finished run, which is not lost because a page about it cannot be written.
pub fn with_page(dir: &Path, threads: usize, tell: impl Fn(&str)) {
    if let Err(error) = write_page(dir, threads) {
        tell(&format!("note: no report was written: {error}"));
    }
}

/// A file that could not be written is no loss: everything before it is on the disk.
pub fn with_remedy(error: Error, dir: &Path) -> anyhow::Error {
    match error {
        Error::Io { .. } => anyhow::anyhow!(
            "{error}: nothing stored so far is lost; make room on the disk or permit writing, then run \
             `didyma resume {}`",
            dir.display()
        ),
        other => other.into(),
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
