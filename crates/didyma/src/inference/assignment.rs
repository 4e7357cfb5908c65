//! An assignment of simulations: a round, or a part of one.

use super::SimulatedRow;
use super::batch::Batch;
use crate::error::Result;
use crate::inference::events::Observer;
use crate::problem::simulator::{self, Simulator};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use std::ops::{ControlFlow, Range};

/// Simulations to make. Each has the random stream of its number in the round, whoever makes it.
pub struct Assignment<'a> {
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

impl Assignment<'_> {
    /// Makes them, and reports them to `observer` in time to save them. Returns their rows, and whether to go on.
    pub fn run(
        &self,
        threads: usize,
        observer: &mut dyn Observer,
    ) -> Result<(Vec<SimulatedRow>, ControlFlow<()>)> {
        let streams = Streams::new(self.seed).simulations(Purpose::Simulation, self.round.into());
        let numbers: Vec<u64> = self.missing.iter().cloned().flatten().map(|n| n as u64).collect();
        let theta: Vec<f64> =
            numbers.iter().flat_map(|&n| self.theta.row(n as usize)).copied().collect();
        let rows = Rows::new("theta", &theta, self.theta.columns())?;
        let total = self.done.0 + numbers.len();
        let mut batch = Batch::new(self.round, self.done, total, self.in_a_row, observer);
        let observe = &mut |piece: simulator::Progress| batch.take(&numbers, rows, &piece);
        let found = simulator::simulate_numbered(
            self.simulator,
            rows,
            &streams,
            &numbers,
            threads,
            observe,
        );
        // Before anything else: what was made is saved, whatever has ended it.
        let flushed = batch.flush();
        let found = found?;
        let (made, said) = flushed?;
        // A crew may have stopped by itself.
        let stopped = said.is_break() || found.done < rows.len();
        Ok((made, if stopped { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }))
    }
}
