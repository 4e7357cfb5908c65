//! What training comes to, kept in memory.

use crate::error::Result;
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::Posterior;
use crate::inference::{RoundReport, Training};
use serde_json::{Value, json};
use std::ops::ControlFlow;

/// Keeps what training comes to.
pub(super) struct Keeping<'a> {
    pub training: Option<Training>,
    pub finished: Option<(RoundReport, Posterior)>,
    pub epochs: Vec<Value>,
    pub observer: &'a mut dyn Observer,
}

impl Observer for Keeping<'_> {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        let go_on = self.observer.notice(event)?;
        match event {
            Event::Epoch { report, fit, coordinates, recentred } => {
                self.epochs.push(json!({
                    "round": report.round, "epoch": report.epoch,
                    "train_loss": report.train_loss, "validation_loss": report.validation_loss,
                }));
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
