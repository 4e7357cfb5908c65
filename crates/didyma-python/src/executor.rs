//! Simulations by a `concurrent.futures.Executor`: batches by measured time, and lost workers.

use crate::arrays::type_name;
use crate::errors::{Kind, impossible};
use crate::function::{Answer, Function, Rows};
use didyma::simulator::{Piece, SimulationFailed};
use pyo3::prelude::*;
use std::collections::{BTreeMap, HashMap};
use std::ops::{ControlFlow, Range};
use std::sync::mpsc::Sender;
use std::time::{Duration, Instant};

/// Seconds that a batch should take: long beside what handing it over costs, short beside a round.
const TARGET: f64 = 0.25;
/// Seconds of the driver that may go into handing a batch over: with many workers, batches are so long that it keeps up.
const HANDING_OVER: f64 = 0.005;
/// Seconds to wait for an answer before signals and progress are looked at.
const POLL: f64 = 0.1;
/// Tasks under way for each worker: one runs, one waits.
const AHEAD: usize = 2;
/// Workers of an executor that does not tell how many it has.
const UNKNOWN: usize = 32;
/// How often an executor is asked how many workers it has: clusters grow and shrink.
const BETWEEN_COUNTS: Duration = Duration::from_secs(1);
/// Times that a row may take its worker with it, alone.
const LOSSES: usize = 2;

/// An executor, and how to replace it.
pub struct Pool {
    executor: Py<PyAny>,
    /// Makes executors, if a function was given.
    maker: Option<Py<PyAny>>,
    queue: Py<PyAny>,
    next_token: u64,
    /// How often it was replaced.
    generation: u64,
}

/// Is asked between batches whether to go on.
pub type Between<'a> = &'a mut dyn FnMut(Python<'_>) -> PyResult<ControlFlow<()>>;

impl Pool {
    /// Of an executor, or of a function that makes one.
    pub fn new(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = given.py();
        let maker = given.is_callable() && !given.hasattr("submit")?;
        let executor = if maker { given.call0()? } else { given.clone() };
        if !executor.hasattr("submit")? {
            let found = type_name(&executor);
            return Err(Kind::Executor.error(format!(
                "executor is of type {found}, which has no submit: give a concurrent.futures.Executor, as \
                 client.get_executor() of Dask, or a function that makes one"
            )));
        }
        let queue = py.import("queue")?.call_method0("SimpleQueue")?;
        let (executor, queue) = (executor.unbind(), queue.unbind());
        Ok(Self {
            executor,
            maker: maker.then(|| given.clone().unbind()),
            queue,
            next_token: 0,
            generation: 0,
        })
    }

    /// One call, waited for.
    pub fn call(&mut self, py: Python<'_>, function: &Function, rows: &Rows) -> PyResult<Answer> {
        let count = rows.seeds.len();
        let (token, future) = self.submit(py, function, rows, 0..count, false)?;
        loop {
            match self.take(py) {
                Ok(Some((found, Ok(answer)))) if found == token => return Ok(answer),
                Ok(Some((found, Err(error)))) if found == token => {
                    return Err(Kind::Executor.from(
                        error,
                        "the executor could not run the simulator: it must be able to send it to its workers (define the \
                         function at the top level of a module that they can import, or take an executor that sends \
                         functions themselves, as Dask or loky do), and didyma must be installed there",
                    ));
                }
                Ok(_) => {}
                Err(error) => {
                    future.call_method0(py, "cancel")?;
                    return Err(error);
                }
            }
        }
    }

    /// Makes all rows, and sends them as they come.
    pub fn make(
        &mut self,
        py: Python<'_>,
        function: &Function,
        rows: &Rows,
        done: &Sender<Piece>,
        between: Between<'_>,
    ) -> PyResult<()> {
        let workers = self.workers(py)?;
        let (waiting, suspects) = (0..rows.seeds.len(), Vec::new());
        let mut work = Work {
            pool: self,
            function,
            rows,
            done,
            workers: (workers, Instant::now()),
            waiting,
            suspects,
            under_way: HashMap::new(),
            losses: BTreeMap::new(),
            measured: (0.0, 0),
            largest: function.unit(),
        };
        let finished = work.run(py, between);
        work.cancel(py);
        finished
    }

    fn workers(&self, py: Python<'_>) -> PyResult<usize> {
        let found = py.import("didyma._worker")?.call_method1("workers", (&self.executor,))?;
        Ok(found.extract::<Option<usize>>()?.unwrap_or(UNKNOWN).max(1))
    }

    fn submit(
        &mut self,
        py: Python<'_>,
        function: &Function,
        rows: &Rows,
        part: Range<usize>,
        alone: bool,
    ) -> PyResult<(u64, Py<PyAny>)> {
        self.next_token += 1;
        let token = self.next_token;
        let arguments = function.arguments(py, rows, part, alone)?;
        let worker = py.import("didyma._worker")?;
        let submit = |pool: &Self| {
            worker.call_method1("submit", (&pool.executor, &pool.queue, token, &arguments))
        };
        let future = match submit(self) {
            Err(error) if is_broken(py, &error)? => {
                self.replace(py, error)?;
                submit(self)
            }
            other => other,
        };
        let future = future.map_err(|cause| {
            let text =
                format!("the executor takes no work ({cause}): it may be closed; give an open one");
            Kind::Executor.from(cause, text)
        })?;
        Ok((token, future.unbind()))
    }

    /// A new executor for one that broke.
    fn replace(&mut self, py: Python<'_>, cause: PyErr) -> PyResult<()> {
        let Some(maker) = &self.maker else {
            return Err(Kind::Executor.from(
                cause,
                "the executor broke, as one of its workers was lost, and cannot be used again; everything so far is \
                 saved: go on with didyma.resume and a new one, or give executor a function that makes one (executor=lambda: \
                 ProcessPoolExecutor(4)), so that it can be replaced",
            ));
        };
        let options = pyo3::types::PyDict::new(py);
        options.set_item("wait", false)?;
        // One that is broken may not even close.
        let _ = self.executor.call_method(py, "shutdown", (), Some(&options));
        self.executor = maker.call0(py)?;
        self.generation += 1;
        Ok(())
    }

    /// The next call that is done, if one is soon.
    #[allow(clippy::type_complexity)]
    fn take(&self, py: Python<'_>) -> PyResult<Option<(u64, Result<Answer, PyErr>)>> {
        let found = py.import("didyma._worker")?.call_method1("take", (&self.queue, POLL))?;
        if found.is_none() {
            return Ok(None);
        }
        let (token, answer, error): (u64, Bound<'_, PyAny>, Bound<'_, PyAny>) = found.extract()?;
        match error.is_none() {
            true => Ok(Some((token, Ok(Answer::of(&answer)?)))),
            false => Ok(Some((token, Err(PyErr::from_value(error))))),
        }
    }
}

fn is_broken(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    py.import("didyma._worker")?.call_method1("is_broken", (error.value(py),))?.extract()
}

/// Rows that a pool has.
struct Given {
    part: Range<usize>,
    future: Py<PyAny>,
    /// Of the pool that has them.
    generation: u64,
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
