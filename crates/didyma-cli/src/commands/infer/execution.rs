//! Work on a run: until it is finished or a round is done, seen on the terminal.

use crate::commands::show::Shown;
use crate::output::tell;
use crate::terminal::{Live, stop_on_interrupt};
use crate::wording::sentence;
use didyma::report::{Overview, write_page};
use didyma::run::{Findings, RunDir, execute_task};
use didyma::tasks::Task;
use didyma::training::Machine;
use didyma::{Error, Event, Observer};
use std::ops::ControlFlow;
use std::path::Path;

/// When to stop.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// When all rounds are done.
    Finished,
    /// When the next round is done.
    Round,
    /// Before the next round begins.
    Now,
}

impl Observer for Until {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        match (self, event) {
            (Self::Round, Event::RoundFinished { .. })
            | (Self::Now, Event::RoundStarted { .. }) => Ok(ControlFlow::Break(())),
            _ => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Works on a run, saves everything, and shows what was found.
pub fn work(run: RunDir, task: &Task, machine: Machine, until: Until) -> anyhow::Result<Shown> {
    // A run that cannot be continued says so before anything else.
    let (dir, state) = (run.path().to_owned(), run.progress()?);
    let mut observer = (Live::new(run.manifest(), &dir, &machine, stop_on_interrupt()), until);
    let findings = execute_task(run, state, task, machine, &mut observer);
    observer.0.finish();
    let findings = findings.map_err(|error| with_remedy(error, &dir))?;
    if !findings.is_finished() && until == Until::Finished {
        let dir = dir.display();
        tell(&format!("stopped; everything so far is saved. To go on: didyma resume \"{dir}\""));
    }
    with_page(&findings, tell);
    let overview = Overview::of(&findings)?;
    Ok(Shown::new(&dir, Overview { without_rounds: true, ..overview }))
}

/// Writes the page about a run that is finished, which is not lost because a page about it cannot be written.
pub fn with_page(findings: &Findings, tell: impl Fn(&str)) {
    if !findings.is_finished() {
        return;
    }
    if let Err(error) = write_page(findings) {
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
