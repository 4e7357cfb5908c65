//! Rows on their way through an executor: how many at a time, and what becomes of those whose worker is lost.

use crate::errors::Kind;
use crate::executor::{Between, Pool, is_broken};
use crate::function::{Answer, Function, Rows};
use didyma::simulator::{Piece, SimulationFailed};
use pyo3::exceptions::PyException;
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

/// Rows that go together.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    rows: Range<usize>,
    /// Whether it is less than a unit, whose rows are calls of their own then.
    divided: bool,
}

/// Rows that a pool has.
struct Given {
    part: Part,
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
        waiting: vec![Part { rows: 0..rows.seeds.len(), divided: false }],
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
    /// Those that were not given out yet, the next ones last.
    waiting: Vec<Part>,
    /// Those that may have broken a pool: tried one after another, nothing beside them.
    suspects: Vec<Part>,
    under_way: HashMap<u64, Given>,
    /// How often a part was lost by its own fault, as far as can be told.
    losses: BTreeMap<(usize, usize), usize>,
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
                // One that does not answer may answer later; if it is gone, it will take no work.
                let count = match self.pool.workers(py) {
                    Err(error) if error.is_instance_of::<PyException>(py) => self.workers.0,
                    found => found?,
                };
                self.workers = (count, Instant::now());
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
        while self.suspects.is_empty() && self.under_way.len() < AHEAD * self.workers.0 {
            let Some(part) = self.next() else { break };
            self.submit(py, part)?;
        }
        Ok(())
    }

    /// The next batch.
    fn next(&mut self) -> Option<Part> {
        let size = self.size();
        let Part { rows, divided } = self.waiting.pop()?;
        if rows.len() <= size {
            return Some(Part { rows, divided });
        }
        let middle = rows.start + size;
        self.waiting.push(Part { rows: middle..rows.end, divided });
        Some(Part { rows: rows.start..middle, divided })
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
        let waiting: usize = self.waiting.iter().map(|part| part.rows.len()).sum();
        let share = waiting.div_ceil(AHEAD * self.workers.0);
        let size = by_time.min(4 * self.largest).min(share).max(1).next_multiple_of(unit);
        self.largest = self.largest.max(size);
        size
    }

    fn submit(&mut self, py: Python<'_>, part: Part) -> PyResult<()> {
        let rows = part.rows.clone();
        let (token, future) = self.pool.submit(py, self.function, self.rows, rows, part.divided)?;
        let generation = self.pool.generation;
        self.under_way.insert(token, Given { part, future, generation });
        Ok(())
    }

    fn answered(&mut self, part: Part, answer: &Answer) -> PyResult<()> {
        let x_dim = self.function.dims().1;
        let (start, made) = (part.rows.start, answer.rows(x_dim));
        if made > part.rows.len() || made == 0 {
            return Err(Kind::Internal.error("an executor gave the answer of another batch"));
        }
        self.measured.0 += answer.seconds;
        self.measured.1 += made;
        // The receiver lives as long as the work.
        let _ = self.done.send(answer.piece(start, x_dim));
        // They took longer than they should have: the rest is another batch.
        if made < part.rows.len() {
            self.waiting.push(Part { rows: start + made..part.rows.end, ..part });
        }
        Ok(())
    }

    /// Rows whose worker was lost. If it took the whole pool with it, whose fault it was shows when each part is tried with
    /// nothing beside it; else it was theirs.
    fn lost(&mut self, py: Python<'_>, given: Given, error: PyErr) -> PyResult<()> {
        let Given { part, generation, .. } = given;
        let (alone, reason) = (self.under_way.is_empty(), error.to_string());
        let broken = is_broken(py, &error)?;
        // A pool that was replaced meanwhile has told of it before.
        if broken && generation == self.pool.generation {
            // The others were in it, too.
            let others = self.under_way.extract_if(|_, given| given.generation == generation);
            self.suspects.extend(others.map(|(_, given)| given.part));
            self.pool.replace(py, error)?;
        }
        let losses = self.losses.entry((part.rows.start, part.rows.end)).or_default();
        *losses += usize::from(alone || !broken);
        let guilty = *losses >= LOSSES;
        let parts = match (guilty, part.rows.len()) {
            (true, 1) => return self.failed(part.rows.start, &reason),
            // A unit has random numbers of its own: it is taken apart only if it is at fault.
            (guilty, length) if length > self.function.unit() || guilty => self.halves(part),
            _ => vec![part],
        };
        if broken { &mut self.suspects } else { &mut self.waiting }.extend(parts);
        Ok(())
    }

    /// Both halves of a part, the second first; of whole units, if there are several.
    fn halves(&self, part: Part) -> Vec<Part> {
        let (Range { start, end }, unit) = (part.rows, self.function.unit());
        let divided = part.divided || end - start <= unit;
        let half = (end - start).div_ceil(2);
        let middle = start + if divided { half } else { half.next_multiple_of(unit) };
        vec![Part { rows: middle..end, divided }, Part { rows: start..middle, divided }]
    }

    fn failed(&self, row: usize, reason: &str) -> PyResult<()> {
        let x = vec![f64::NAN; self.function.dims().1];
        let mut piece = Piece::new(row);
        let why = format!("its worker was lost {LOSSES} times: {reason}");
        piece.push(&x, Err(SimulationFailed(why)));
        let _ = self.done.send(piece);
        Ok(())
    }
}
