//! The simulations of a round, or of a part of it.

use super::SimulatedRow;
use super::group::Group;
use crate::error::Result;
use crate::observe::{Event, Observer};
use crate::records::Records;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::simulator::{self, Simulator};
use std::ops::{ControlFlow, Range};

/// Simulations that are to be made. Each has the random stream of its number in the round, whoever makes it.
pub struct Simulating<'a> {
    /// How x comes about.
    pub simulator: &'a dyn Simulator,
    /// Seed of the run.
    pub seed: u64,
    /// The round, from 1.
    pub round: u32,
    /// θ of the whole round.
    pub theta: Rows<'a>,
    /// Numbers of those that are missing, as ranges.
    pub missing: Vec<Range<usize>>,
    /// Those that are not: done, and failed.
    pub done: (usize, usize),
    /// Failures one after another that end it; 0 for never.
    pub in_a_row: usize,
}

impl Simulating<'_> {
    /// Makes them; `observer` is told of them in time to save them.
    pub fn run(&self, threads: usize, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let streams = Streams::new(self.seed).simulations(Purpose::Simulation, self.round.into());
        let (columns, left) =
            (self.theta.columns(), self.missing.iter().map(Range::len).sum::<usize>());
        let mut group =
            Group::new(self.round, self.done, self.done.0 + left, self.in_a_row, observer);
        for range in self.missing.iter().cloned() {
            let part = &self.theta.data()[range.start * columns..range.end * columns];
            let (rows, first) = (Rows::new("theta", part, columns)?, range.start as u64);
            group.begin(range.start);
            let observe = &mut |piece: simulator::Progress| group.take(range.start, rows, &piece);
            let found =
                simulator::simulate(self.simulator, rows, &streams, first, threads, observe)?;
            // A crew may have stopped by itself.
            if group.flush()?.is_break() || found.done < rows.len() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// Keeps the rows that it is told of.
impl Observer for Records {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        if let Event::Simulated { rows, .. } = event {
            rows.iter().for_each(|row: &SimulatedRow| self.push(row));
        }
        Ok(ControlFlow::Continue(()))
    }
}
