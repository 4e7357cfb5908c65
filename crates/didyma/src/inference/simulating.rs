//! The simulations of a round, or of a part of it.

use super::SimulatedRow;
use super::batch::Group;
use crate::error::Result;
use crate::inference::events::{Event, Observer};
use crate::inference::simulations::Records;
use crate::problem::simulator::{self, Simulator};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
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
        let numbers: Vec<u64> = self.missing.iter().cloned().flatten().map(|n| n as u64).collect();
        let theta: Vec<f32> =
            numbers.iter().flat_map(|&n| self.theta.row(n as usize)).copied().collect();
        let rows = Rows::new("theta", &theta, self.theta.columns())?;
        let total = self.done.0 + numbers.len();
        let mut group = Group::new(self.round, self.done, total, self.in_a_row, observer);
        let observe = &mut |piece: simulator::Progress| group.take(&numbers, rows, &piece);
        let found = simulator::simulate_numbered(
            self.simulator,
            rows,
            &streams,
            &numbers,
            threads,
            observe,
        )?;
        match group.flush()? {
            // A crew may have stopped by itself.
            ControlFlow::Continue(()) if found.done < rows.len() => Ok(ControlFlow::Break(())),
            said => Ok(said),
        }
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
