//! Simulations as they are made: gathered for some time, then told of together.

use super::SimulatedRow;
use crate::error::Result;
use crate::observe::{Event, Observer};
use crate::records::Records;
use crate::rows::Rows;
use crate::simulator;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Simulations are told of in groups of this duration.
const GROUP: Duration = Duration::from_millis(100);

/// Simulations that are done but not yet told of.
pub(super) struct Group<'a> {
    round: u32,
    total: usize,
    records: &'a mut Records,
    observer: &'a mut dyn Observer,
    rows: Vec<SimulatedRow>,
    since: Instant,
    start: Instant,
    made: usize,
    /// Simulations of the round that are done, and failed.
    counts: (usize, usize),
    result: Result<ControlFlow<()>>,
}

impl<'a> Group<'a> {
    pub fn new(
        round: u32,
        total: usize,
        records: &'a mut Records,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let (now, rows) = (Instant::now(), Vec::new());
        let (counts, result) = (records.counts(round), Ok(ControlFlow::Continue(())));
        let (since, start, made) = (now, now, 0);
        Self { round, total, records, observer, rows, since, start, made, counts, result }
    }

    /// Takes a piece of work; tells of it with others after some time.
    pub fn take(
        &mut self,
        start: usize,
        theta: Rows,
        piece: &simulator::Progress,
    ) -> ControlFlow<()> {
        let x_dim = piece.x.len() / piece.rows.len();
        let mut failures = piece.failures.iter().peekable();
        for (row, x) in piece.rows.clone().zip(piece.x.chunks_exact(x_dim)) {
            let failure = failures.next_if(|failure| failure.row == row);
            self.rows.push(SimulatedRow {
                round: self.round,
                index: (start + row) as u32,
                theta: theta.row(row).to_vec(),
                x: failure.map_or(Ok(x.to_vec()), |failure| Err(failure.reason.clone())),
            });
        }
        if self.since.elapsed() >= GROUP {
            self.tell();
        }
        match self.result {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn tell(&mut self) {
        self.since = Instant::now();
        let rows = std::mem::take(&mut self.rows);
        self.made += rows.len();
        rows.iter().for_each(|row| self.records.push(row));
        self.counts.0 += rows.len();
        self.counts.1 += rows.iter().filter(|row| row.x.is_err()).count();
        let (done, failed) = self.counts;
        let rate = self.made as f64 / self.start.elapsed().as_secs_f64();
        let (round, total) = (self.round, self.total);
        let event = Event::Simulated { round, rows: &rows, done, total, failed, rate };
        match self.observer.notice(&event) {
            Ok(ControlFlow::Continue(())) => {}
            other => self.result = other,
        }
    }

    /// Tells of what is left; what the observer said.
    pub fn flush(&mut self) -> Result<ControlFlow<()>> {
        if !self.rows.is_empty() && self.result.is_ok() {
            self.tell();
        }
        std::mem::replace(&mut self.result, Ok(ControlFlow::Continue(())))
    }
}
