//! A run from where it stands to its end, saved as it goes.

use super::{Findings, Recorder, RunDir, Summary};
use crate::error::Result;
use crate::evaluation::TaskJudge;
use crate::inference::events::Observer;
use crate::inference::{Judge, State, infer_from};
use crate::problem::Problem;
use crate::problem::tasks::Task;
use crate::rng::Streams;
use crate::training::Machine;

/// Works on a run from `state` on, which is its [`RunDir::progress`], until it is finished or `observer` breaks; saves
/// everything, and returns what was found.
///
/// The command line, runs of several seeds, Python and [`infer`](crate::infer()) all execute their runs here.
pub fn execute(
    run: RunDir,
    mut state: State,
    problem: &Problem,
    judge: Option<&dyn Judge>,
    machine: impl Into<Machine>,
    observer: &mut dyn Observer,
) -> Result<Findings> {
    let machine = machine.into();
    run.mend_model(&state, problem)?;
    state.posteriors = run.posteriors(state.reports.len() as u32)?;
    let (config, path) = (run.manifest().config.clone(), run.path().to_owned());
    let mut both = (Recorder::new(run, state.reports.clone()), observer);
    let found = infer_from(problem, judge, &config, machine.clone(), state, &mut both)?;
    let (run, reports) = both.0.finish();
    let posterior = match found.posterior {
        None if !reports.is_empty() => Some(run.posterior()?.on(machine.device)),
        posterior => posterior,
    };
    let summary = Summary::new(run.manifest(), reports);
    Findings::new(run, summary, posterior, machine.threads).exported(&path)
}

/// The same for a task, whose truth scores the rounds.
pub fn execute_task(
    run: RunDir,
    state: State,
    task: &Task,
    machine: impl Into<Machine>,
    observer: &mut dyn Observer,
) -> Result<Findings> {
    let machine = machine.into();
    let streams = Streams::new(run.manifest().config.seed);
    let judge = TaskJudge::new(task, streams, machine.threads)?;
    execute(run, state, &task.problem, Some(&judge), machine, observer)
}
