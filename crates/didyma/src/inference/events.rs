//! What happens during a run, as events: one enum is the stored record, the progress bar and the callback.

use crate::error::Result;
use crate::inference::posterior::Posterior;
use crate::inference::{RoundReport, SimulatedRow, Training};
use crate::training::EpochReport;
use std::ops::ControlFlow;

/// Something that happened.
#[derive(Debug)]
pub enum Event<'a> {
    /// A round begins.
    RoundStarted {
        /// The round, from 1.
        round: u32,
        /// Rounds in all.
        rounds: u32,
        /// Simulations that this round still has to make.
        missing: usize,
    },
    /// Simulations were made, or none for 100 ms, so that an observer can stop a run whose simulations take long.
    Simulated {
        /// The round.
        round: u32,
        /// The new rows, if any.
        rows: &'a [SimulatedRow],
        /// How many of the round are done.
        done: usize,
        /// How many it has.
        total: usize,
        /// How many of those done failed.
        failed: usize,
        /// Simulations per second.
        rate: f64,
    },
    /// An epoch of a member's training ended; all members' training, if [`Training::is_done`].
    Epoch {
        /// How it went.
        report: &'a EpochReport,
        /// All that training depends on from here, of every member.
        training: &'a Training,
    },
    /// A round is complete.
    RoundFinished {
        /// What it gave.
        report: &'a RoundReport,
        /// The posterior so far.
        posterior: &'a Posterior,
    },
}

/// Is told of every event, in order. `Break` stops the run as soon as all that was done is told; an error ends it.
pub trait Observer {
    /// Takes note of an event.
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>>;
}

/// Nobody looks.
impl Observer for () {
    fn notice(&mut self, _event: &Event) -> Result<ControlFlow<()>> {
        Ok(ControlFlow::Continue(()))
    }
}

/// The first is told first; the run stops if either asks for it.
impl<A: Observer, B: Observer> Observer for (A, B) {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        let (first, second) = (self.0.notice(event)?, self.1.notice(event)?);
        Ok(if first.is_break() { first } else { second })
    }
}

impl<T: Observer + ?Sized> Observer for &mut T {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        (**self).notice(event)
    }
}
