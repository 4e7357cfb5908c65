//! The outcome of training, kept in memory.

use crate::error::Result;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::Posterior;
use crate::inference::{EpochRecord, RoundReport, Training};
use std::ops::ControlFlow;

/// Keeps the outcome of training.
pub(super) struct Keeper<'a> {
    pub training: Option<Training>,
    pub finished: Option<(RoundReport, Posterior)>,
    pub epochs: Vec<EpochRecord>,
    pub stopping: bool,
    pub observer: &'a mut dyn Observer,
}

impl Observer for Keeper<'_> {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        let go_on = self.observer.notice(event)?;
        match event {
            Event::Epoch { report, training } => {
                self.epochs.push(EpochRecord::new(report, None));
                // After a break other members may end an epoch: the last of these events is the newest state.
                self.stopping |= go_on.is_break();
                if self.stopping || training.is_done() {
                    self.training = Some((*training).clone());
                }
            }
            Event::RoundFinished { report, posterior } => {
                self.finished = Some(((*report).clone(), (*posterior).clone()));
            }
            _ => {}
        }
        Ok(go_on)
    }
}
