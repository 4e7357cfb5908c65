//! `didyma infer` and `didyma resume`: a whole run, saved as it goes.

use crate::args::{InferArgs, ResumeArgs};
use crate::live::{Live, stop_on_interrupt};
use crate::results::Shown;
use crate::{report, tell};
use anyhow::Context;
use didyma::Error;
use didyma::judge::TaskJudge;
use didyma::rng::Streams;
use didyma::rounds::{Model, Progress, infer as infer_posterior};
use didyma::run::{Manifest, Recorder, RunDir, posterior, progress};
use didyma::tasks::Task;
use std::path::{Path, PathBuf};

/// Begins a run and carries it through.
pub fn infer(args: &InferArgs) -> anyhow::Result<Shown> {
    let task = args.task();
    let config = args.config.config(args.run.seed)?;
    let manifest = Manifest { task: task.name.to_owned(), config };
    let out = args.out.clone().unwrap_or_else(|| free_directory(&manifest));
    let run = RunDir::create(&out, &manifest.to_json().to_string())?;
    carry_on(run, &task, &manifest, Progress::default(), args.run.threads())
}

/// Carries a run on from where it stopped.
pub fn resume(args: &ResumeArgs) -> anyhow::Result<Shown> {
    let run = RunDir::open(&args.dir)?;
    let manifest = Manifest::of(&run)?;
    let task = Task::named(&manifest.task).with_context(|| {
        format!(
            "{} is a run of {}, a task that this version lacks",
            args.dir.display(),
            manifest.task
        )
    })?;
    let progress = progress(&run)?;
    carry_on(run, &task, &manifest, progress, args.threads())
}

fn carry_on(
    run: RunDir,
    task: &Task,
    manifest: &Manifest,
    progress: Progress,
    threads: usize,
) -> anyhow::Result<Shown> {
    let dir = run.path().to_owned();
    let config = &manifest.config;
    let stop = stop_on_interrupt()?;
    let live = Live::new(manifest, &dir, stop);
    let judge = TaskJudge::new(task, Streams::new(config.seed), threads)?;
    let model = Model { judge: Some(&judge), ..task.into() };
    let recorder = Recorder::new(run, progress.reports.clone())?;
    let mut observer = (recorder, live);
    let found = infer_posterior(&model, config, threads, progress, &mut observer);
    let (recorder, live) = observer;
    live.finish();
    let mut found = found.map_err(|error| with_remedy(error, &dir))?;
    if found.posterior.is_none() && !found.reports.is_empty() {
        found.posterior = Some(posterior(recorder.run())?);
    }
    let summary = recorder.export(found.posterior.as_ref(), threads);
    let summary = summary.map_err(|error| with_remedy(error, &dir))?;
    if !found.finished {
        let dir = dir.display();
        tell(&format!("stopped; everything so far is saved. To go on: didyma resume \"{dir}\""));
    }
    if found.finished {
        // A run is not lost because a page about it cannot be written.
        if let Err(error) = report::of_run(&dir, threads) {
            tell(&format!("note: no report was written: {error:#}"));
        }
    }
    let shown = Shown::new(&dir, summary, found.posterior.as_ref(), threads)?;
    Ok(shown.without_rounds())
}

/// A file that could not be written is no loss: everything before it is on the disk.
fn with_remedy(error: Error, dir: &Path) -> anyhow::Error {
    match error {
        Error::Io { .. } => anyhow::anyhow!(
            "{error}: nothing stored so far is lost; make room on the disk or permit writing, then run \
             `didyma resume {}`",
            dir.display()
        ),
        other => other.into(),
    }
}

/// The first of runs/TASK-METHOD-SEED, …-2, …-3 that does not exist.
fn free_directory(manifest: &Manifest) -> PathBuf {
    let Manifest { task, config } = manifest;
    let name = format!("{task}-{}-{}", config.method_name(), config.seed);
    let numbered = |number: u32| match number {
        1 => Path::new("runs").join(&name),
        _ => Path::new("runs").join(format!("{name}-{number}")),
    };
    (1..).map(numbered).find(|path| !path.exists()).expect("some number is free")
}
