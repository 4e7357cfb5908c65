//! An observer that keeps everything, for several tests.

use didyma::{Event, Observer, Posterior, State, Training};
use std::ops::ControlFlow;

/// Keeps what a run has come to after every event, as a directory would.
#[derive(Default)]
pub struct Keeper {
    pub now: State,
    pub all: Vec<State>,
    pub stop_after: Option<usize>,
}

impl Observer for Keeper {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        match event {
            Event::RoundStarted { .. } => {}
            Event::Simulated { rows, .. } => self.now.rows.extend_from_slice(rows),
            Event::Epoch { training, .. } => self.now.training = Some(Training::clone(training)),
            Event::RoundFinished { report, posterior } => {
                self.now.reports.push((*report).clone());
                self.now.posteriors.push(Posterior::clone(posterior));
            }
        }
        self.all.push(self.now.clone());
        match self.stop_after {
            Some(events) if self.all.len() >= events => Ok(ControlFlow::Break(())),
            _ => Ok(ControlFlow::Continue(())),
        }
    }
}
