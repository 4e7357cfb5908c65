//! Rows on their way through an executor: how many at a time, and what becomes of those whose worker is lost.

use crate::errors::impossible;
use crate::executor::{Between, Pool, is_broken};
use crate::function::{Answer, Function, Rows};
use didyma::simulator::{Piece, SimulationFailed};
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Seconds that a batch should take: long beside what handing it over costs, short beside a round.
const TARGET: f64 = 0.25;
/// Seconds of the driver that may go into handing a batch over: with many workers, batches are so long that it keeps up.
const HANDING_OVER: f64 = 0.005;
/// Tasks under way for each worker: one runs, one waits.
const AHEAD: usize = 2;
/// How often an executor is asked how many workers it has: clusters grow and shrink.
const BETWEEN_COUNTS: Duration = Duration::from_secs(1);
/// Times that a row may take its worker with it, alone.
const LOSSES: usize = 2;

/// Rows that a pool has.
struct Given {
    part: Range<usize>,
    future: Py<PyAny>,
    /// Of the pool that has them.
    generation: u64,
}

/// Makes all rows by a pool, and sends them as they come.
pub fn make(
    py: Python<'_>,
    pool: &mut Pool,
    function: &Function,
    rows: &Rows,
    done: &Sender<Piece>,
    between: Between<'_>,
) -> PyResult<()> {
    let workers = (pool.workers(py)?, Instant::now());
    let mut work = Work {
        pool,
        function,
        rows,
        done,
        workers,
        waiting: 0..rows.seeds.len(),
        suspects: Vec::new(),
        under_way: HashMap::new(),
        losses: BTreeMap::new(),
        measured: (0.0, 0),
        largest: function.unit(),
    };
    let finished = work.run(py, between);
    work.cancel(py);
    finished
}

/// Rows on their way through a pool.
struct Work<'a> {
    pool: &'a mut Pool,
    function: &'a Function,
    rows: &'a Rows,
    done: &'a Sender<Piece>,
    /// How many there were, and when.
    workers: (usize, Instant),
    /// Those that were not given out yet.
    waiting: Range<usize>,
    /// Those that may have taken a worker with them: tried one after another, nothing beside them.
    suspects: Vec<Range<usize>>,
    under_way: HashMap<u64, Given>,
    /// How often a row, or a unit that begins with it, was lost alone.
    losses: BTreeMap<(usize, bool), usize>,
    /// Seconds of simulation, and rows that took them.
    measured: (f64, usize),
    /// Rows of the largest batch so far.
    largest: usize,
}

impl Work<'_> {
    fn run(&mut self, py: Python<'_>, between: Between<'_>) -> PyResult<()> {
        loop {
            if between(py)?.is_break() {
                return Ok(());
            }
            if self.workers.1.elapsed() >= BETWEEN_COUNTS {
                self.workers = (self.pool.workers(py)?, Instant::now());
            }
            self.give_out(py)?;
            if self.under_way.is_empty() {
                return Ok(());
            }
            let Some((token, answer)) = self.pool.take(py)? else { continue };
            // One of a batch that was given up.
            let Some(given) = self.under_way.remove(&token) else { continue };
            match answer {
                Ok(answer) => self.answered(given.part, &answer)?,
                Err(error) => self.lost(py, given, error)?,
            }
        }
    }

    fn cancel(&mut self, py: Python<'_>) {
        for (_, given) in self.under_way.drain() {
            // It may run already, or its executor be gone.
            let _ = given.future.call_method0(py, "cancel");
        }
    }

    /// Keeps all workers busy; with suspects, one of them.
    fn give_out(&mut self, py: Python<'_>) -> PyResult<()> {
        if self.under_way.is_empty()
            && let Some(part) = self.suspects.pop()
        {
            return self.submit(py, part);
        }
        while self.suspects.is_empty()
            && self.under_way.len() < AHEAD * self.workers.0
            && !self.waiting.is_empty()
        {
            let size = self.size();
            let part = self.waiting.start..self.waiting.end.min(self.waiting.start + size);
            self.waiting.start = part.end;
            self.submit(py, part)?;
        }
        Ok(())
    }

    /// Rows of the next batch: what takes the target time, at most four times the largest so far, and few enough for all
    /// workers to end together.
    fn size(&mut self) -> usize {
        let unit = self.function.unit();
        let (seconds, rows) = self.measured;
        let target = TARGET.max(HANDING_OVER * self.workers.0 as f64);
        let by_time = match rows {
            0 => unit,
            _ => (target * rows as f64 / seconds.max(1e-9)) as usize,
        };
        let share = self.waiting.len().div_ceil(AHEAD * self.workers.0);
        let size = by_time.min(4 * self.largest).min(share).max(1).next_multiple_of(unit);
        self.largest = self.largest.max(size);
        size
    }

    fn submit(&mut self, py: Python<'_>, part: Range<usize>) -> PyResult<()> {
        let alone = part.len() < self.function.unit() && part.end != self.rows.seeds.len();
        let (token, future) =
            self.pool.submit(py, self.function, self.rows, part.clone(), alone)?;
        let generation = self.pool.generation;
        self.under_way.insert(token, Given { part, future, generation });
        Ok(())
    }

    fn answered(&mut self, part: Range<usize>, answer: &Answer) -> PyResult<()> {
        let x_dim = self.function.dims().1;
        if answer.x.len() != part.len() * x_dim {
            return Err(impossible("an executor gave the answer of another batch"));
        }
        self.measured.0 += answer.seconds;
        self.measured.1 += part.len();
        // The receiver lives as long as the work.
        let _ = self.done.send(answer.piece(part.start, x_dim));
        Ok(())
    }

    /// Rows whose worker was lost: whose fault it was shows when each is tried alone.
    fn lost(&mut self, py: Python<'_>, given: Given, error: PyErr) -> PyResult<()> {
        let Given { part, generation, .. } = given;
        let alone = self.under_way.is_empty();
        let reason = error.to_string();
        // A pool that was replaced meanwhile has told of it before.
        if is_broken(py, &error)? && generation == self.pool.generation {
            // The others were in it, too.
            let others = self.under_way.extract_if(|_, given| given.generation == generation);
            self.suspects.extend(others.map(|(_, given)| given.part));
            self.pool.replace(py, error)?;
        }
        let unit = self.function.unit();
        let losses = self.losses.entry((part.start, part.len() > 1)).or_default();
        *losses += usize::from(alone);
        match part.len() {
            1 if *losses >= LOSSES => {
                let x = vec![f64::NAN; self.function.dims().1];
                let mut piece = Piece::new(part.start);
                let why = format!("its worker was lost {LOSSES} times: {reason}");
                piece.push(&x, Err(SimulationFailed(why)));
                let _ = self.done.send(piece);
            }
            // A unit has random numbers of its own: it is taken apart only if it is at fault.
            length if alone && length > 1 && (length > unit || *losses >= LOSSES) => {
                let half = (length / 2).max(1);
                let half = if length > unit { half.next_multiple_of(unit) } else { half };
                let half = if half < length { half } else { length / 2 };
                self.suspects.extend([part.start + half..part.end, part.start..part.start + half]);
            }
            _ => self.suspects.push(part),
        }
        Ok(())
    }
}
