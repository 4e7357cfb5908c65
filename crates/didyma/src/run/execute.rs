//! A run from where it stands to its end, saved as it goes.

use super::{Manifest, Recorder, RunDir, posterior};
use crate::error::Result;
use crate::evaluation::TaskJudge;
use crate::inference::events::Observer;
use crate::inference::{Inference, State, infer_from};
use crate::problem::tasks::Task;
use crate::rng::Streams;
use crate::training::Machine;

/// Works on a run until it is finished or `observer` breaks, and saves everything.
pub fn carry_on(
    run: RunDir,
    task: &Task,
    state: State,
    machine: impl Into<Machine>,
    observer: &mut dyn Observer,
) -> Result<Inference> {
    let machine = machine.into();
    let threads = machine.threads;
    let config = Manifest::of(&run)?.config;
    let judge = TaskJudge::new(task, Streams::new(config.seed), threads)?;
    let mut both = (Recorder::new(run, state.reports.clone())?, observer);
    let mut found =
        infer_from(&task.problem, Some(&judge), &config, machine.clone(), state, &mut both)?;
    let recorder = both.0;
    if found.posterior.is_none() && !found.reports.is_empty() {
        found.posterior = Some(posterior(recorder.run())?.on(machine.device));
    }
    recorder.export(found.posterior.as_ref(), threads)?;
    Ok(found)
}
