//! Work on a run: until it is finished or a round is done, seen on the terminal.

use crate::commands::show::Shown;
use crate::output::tell;
use crate::terminal::{Live, stop_on_interrupt};
use crate::wording::sentence;
use didyma::Error;
use didyma::State;
use didyma::report::{Overview, write_page};
use didyma::run::{self, Manifest, RunDir};
use didyma::tasks::Task;
use didyma::training::Machine;
use didyma::{Event, Observer};
use std::ops::ControlFlow;
use std::path::Path;

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
    progress: State,
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
        tell(&format!("note: no report was written: {}", sentence(&error)));
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
