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
    pub observer: &'a mut dyn Observer,
}

impl Observer for Keeper<'_> {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        let go_on = self.observer.notice(event)?;
        match event {
            Event::Epoch { report, fit, coordinates, recentred } => {
                self.epochs.push(EpochRecord::new(report, None));
                if go_on.is_break() || fit.stop.is_some() {
                    let (coordinates, fit) = ((*coordinates).clone(), (*fit).clone());
                    let (round, recentred) = (report.round, *recentred);
                    self.training = Some(Training { round, coordinates, recentred, fit });
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
