//! Simulations on their way: what is to be made, and what was.

use super::{LARGEST_SUMMARY, SimulationFailed};
use crate::rng::{SimulationStream, SimulationStreams};
use crate::rows::Rows;
use crate::storage::table::digits;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// Simulations that are to be made.
#[derive(Clone, Copy)]
pub struct Work<'a> {
    /// Their parameters, a row each.
    pub theta: Rows<'a>,
    pub(super) streams: &'a SimulationStreams,
    pub(super) numbers: &'a [u64],
    pub(super) stop: &'a AtomicBool,
}

impl Work<'_> {
    /// The random stream of a row.
    pub fn stream(&self, row: usize) -> SimulationStream {
        self.streams.stream(self.numbers[row])
    }

    /// Whether nobody waits for them any more.
    pub fn stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }
}

/// Simulations that follow one another, and what became of them.
#[derive(Clone, Debug, Default)]
pub struct Piece {
    pub(super) rows: Range<usize>,
    pub(super) x: Vec<f64>,
    pub(super) failures: Vec<Failure>,
}

/// A simulation that gave no usable summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its row.
    pub row: usize,
    /// Why.
    pub reason: String,
}

impl Piece {
    /// None yet; the first will be of this row.
    pub fn new(row: usize) -> Self {
        Self::with_room(row, 0)
    }

    pub(super) fn with_room(row: usize, numbers: usize) -> Self {
        Self { rows: row..row, x: Vec::with_capacity(numbers), failures: Vec::new() }
    }

    /// Adds the next row; summaries that are not finite are a failure.
    pub fn push(&mut self, x: &[f64], result: Result<(), SimulationFailed>) {
        self.push_checked(x, result.and_then(|()| finite(x)));
    }

    /// Adds the next row, whose summaries are known to be finite.
    #[inline]
    pub(super) fn push_checked(&mut self, x: &[f64], result: Result<(), SimulationFailed>) {
        match result {
            Ok(()) => self.x.extend(x),
            Err(SimulationFailed(reason)) => {
                self.x.resize(self.x.len() + x.len(), f64::NAN);
                self.failures.push(Failure { row: self.rows.end, reason });
            }
        }
        self.rows.end += 1;
    }
}

/// What a row of summaries counts as: those, or why they are a failure.
pub(crate) fn outcome(x: &[f64]) -> Result<Vec<f64>, String> {
    finite(x).map_err(|SimulationFailed(why)| why)?;
    Ok(x.to_vec())
}

/// Requires summaries to be numbers up to [`LARGEST_SUMMARY`]: a larger one is as useless as an infinite one.
#[inline]
pub(super) fn finite(x: &[f64]) -> Result<(), SimulationFailed> {
    match x.iter().position(|v| !(-LARGEST_SUMMARY..=LARGEST_SUMMARY).contains(v)) {
        None => Ok(()),
        Some(i) => {
            let beyond = if x[i].is_finite() { ", beyond 1e150" } else { "" };
            Err(SimulationFailed(format!("summary {} is {}{beyond}", i + 1, digits(x[i]))))
        }
    }
}
