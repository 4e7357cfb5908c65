//! Simulations as they are made: gathered for some time, then told of together.

use super::SimulatedRow;
use crate::error::{Error, Result};
use crate::inference::events::{Event, Observer};
use crate::problem::simulator;
use crate::rows::Rows;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Simulations are reported together at this interval.
const INTERVAL: Duration = Duration::from_millis(100);

/// Simulations that are done but not yet told of.
pub(super) struct Batch<'a> {
    round: u32,
    total: usize,
    observer: &'a mut dyn Observer,
    rows: Vec<SimulatedRow>,
    since: Instant,
    start: Instant,
    /// Rows that were reported.
    made: Vec<SimulatedRow>,
    /// Simulations of the round that are done, and failed.
    counts: (usize, usize),
    result: Result<ControlFlow<()>>,
    row_of_failures: RowOfFailures,
}

/// Failures one after another, in the order of the simulations' numbers: the order in which they come back would depend on
/// the number of workers, and let quick failures overtake slow successes.
struct RowOfFailures {
    /// How many are too many; 0 for none.
    most: usize,
    now: usize,
    /// The number whose outcome is waited for.
    next: usize,
    /// Outcomes that came back before it: reasons of failures.
    early: BTreeMap<usize, Option<String>>,
    /// The reason of the one that was too many.
    last: Option<String>,
}

impl RowOfFailures {
    fn new(most: usize) -> Self {
        Self { most, now: 0, next: 0, early: BTreeMap::new(), last: None }
    }

    fn count(&mut self, number: usize, failure: Option<&str>) {
        if self.most == 0 {
            return;
        }
        self.early.insert(number, failure.map(str::to_owned));
        while let Some(failure) = self.early.remove(&self.next) {
            self.next += 1;
            self.now = if failure.is_some() { self.now + 1 } else { 0 };
            if self.now == self.most && self.last.is_none() {
                self.last = failure;
            }
        }
    }
}

impl<'a> Batch<'a> {
    /// With those of the round that are done and failed already, and how many there are to be.
    pub(super) fn new(
        round: u32,
        counts: (usize, usize),
        total: usize,
        most_in_a_row: usize,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let now = Instant::now();
        Self {
            round,
            total,
            observer,
            rows: Vec::new(),
            since: now,
            start: now,
            made: Vec::new(),
            counts,
            result: Ok(ControlFlow::Continue(())),
            row_of_failures: RowOfFailures::new(most_in_a_row),
        }
    }

    /// Takes a piece of work, maybe an empty one; tells of it with others after some time. Rows are in the order of their
    /// numbers.
    pub(super) fn take(
        &mut self,
        numbers: &[u64],
        theta: Rows,
        piece: &simulator::Progress,
    ) -> ControlFlow<()> {
        let x_dim = (piece.x.len() / piece.rows.len().max(1)).max(1);
        let mut failures = piece.failures.iter().peekable();
        for (row, x) in piece.rows.clone().zip(piece.x.chunks_exact(x_dim)) {
            let failure = failures.next_if(|failure| failure.row == row);
            self.row_of_failures.count(row, failure.map(|failure| &*failure.reason));
            self.rows.push(SimulatedRow {
                round: self.round,
                index: numbers[row] as u32,
                theta: theta.row(row).to_vec(),
                x: failure.map_or(Ok(x.to_vec()), |failure| Err(failure.reason.clone())),
            });
        }
        if self.since.elapsed() >= INTERVAL {
            self.tell();
        }
        match self.result {
            Ok(ControlFlow::Continue(())) if self.row_of_failures.last.is_none() => {
                ControlFlow::Continue(())
            }
            _ => ControlFlow::Break(()),
        }
    }

    fn tell(&mut self) {
        self.since = Instant::now();
        let rows = std::mem::take(&mut self.rows);
        self.counts.0 += rows.len();
        self.counts.1 += rows.iter().filter(|row| row.x.is_err()).count();
        let (done, failed) = self.counts;
        let rate = (self.made.len() + rows.len()) as f64 / self.start.elapsed().as_secs_f64();
        let (round, total) = (self.round, self.total);
        let event = Event::Simulated { round, rows: &rows, done, total, failed, rate };
        match self.observer.notice(&event) {
            Ok(ControlFlow::Continue(())) => {}
            other => self.result = other,
        }
        self.made.extend(rows);
    }

    /// Reports what is left. Returns all rows with the observer's answer, or the fault of too many failures in a row.
    pub(super) fn flush(mut self) -> Result<(Vec<SimulatedRow>, ControlFlow<()>)> {
        if !self.rows.is_empty() && self.result.is_ok() {
            self.tell();
        }
        match (self.result, self.row_of_failures.last) {
            (Ok(_), Some(reason)) => {
                let (failures, round) = (self.row_of_failures.most, self.round);
                Err(Error::FailuresInARow { failures, round, reason })
            }
            (said, _) => said.map(|said| (self.made, said)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Outcomes by their numbers, as they come back.
    fn last(most: usize, outcomes: &[(usize, bool)]) -> Option<String> {
        let mut row = RowOfFailures::new(most);
        for (number, failed) in outcomes {
            row.count(*number, failed.then(|| number.to_string()).as_deref());
        }
        row.last
    }

    #[test]
    fn a_success_ends_a_row_of_failures() {
        let in_order = |most, outcomes: &str| {
            let outcomes: Vec<_> = outcomes.chars().map(|c| c == 'x').enumerate().collect();
            last(most, &outcomes)
        };
        assert_eq!(in_order(3, "xx.xx.xx"), None);
        assert_eq!(in_order(3, "xx.xxxxxx.xxx").as_deref(), Some("5"));
        assert_eq!(in_order(0, "xxxxxx.x"), None);
    }

    /// Quick failures that overtake a slow success are not in a row.
    #[test]
    fn the_order_is_that_of_the_numbers() {
        let slow = [(1, true), (2, true), (4, true), (5, true), (3, false), (0, true), (6, false)];
        assert_eq!(last(3, &slow).as_deref(), Some("2"));
        assert_eq!(last(4, &slow), None);
    }
}
