//! Many simulations on all cores, each from the random stream of its index.

use super::{SimulationFailed, Simulator};
use crate::error::Result;
use crate::parallel;
use crate::rng::{SimulationStream, SimulationStreams};
use crate::rows::Rows;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};

/// What a piece of work should take: long enough to be worth handing over, short enough for progress.
const PIECE: Duration = Duration::from_millis(2);
/// Rows of a piece, at most.
const LARGEST_PIECE: usize = 1 << 16;

/// Summaries of many simulations.
#[derive(Clone, Debug)]
pub struct Simulations {
    /// x, row after row; NaN throughout a row that failed.
    pub x: Vec<f32>,
    /// Failed simulations in the order of their rows.
    pub failures: Vec<Failure>,
    /// Rows that were simulated: all, unless the observer stopped the run.
    pub done: usize,
    /// Wall-clock time.
    pub seconds: f64,
}

/// A simulation that gave no usable summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Its row.
    pub row: usize,
    /// Why.
    pub reason: String,
}

/// How far a run is, and what is new.
#[derive(Clone, Debug)]
pub struct Progress<'a> {
    /// Simulations done.
    pub done: usize,
    /// Simulations in all.
    pub total: usize,
    /// How many of those done failed.
    pub failed: usize,
    /// The rows that are new.
    pub rows: Range<usize>,
    /// Their summaries; NaN throughout a row that failed.
    pub x: &'a [f32],
    /// Those of them that failed.
    pub failures: &'a [Failure],
}

/// Simulates every row of `theta` on `threads` threads. Row i draws from the stream of index `first` + i, so
/// the result is the same for any number of threads, and for any way of cutting rows into calls.
///
/// `observe` is told of progress, in the calling thread; if it breaks, the run stops after the simulations
/// under way, and the rows not done are NaN.
pub fn simulate(
    simulator: &dyn Simulator,
    theta: Rows,
    streams: &SimulationStreams,
    first: u64,
    threads: usize,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> Result<Simulations> {
    theta.expect_columns(simulator.theta_dim(), "parameters of the simulator")?;
    theta.expect_finite()?;
    parallel::check_threads(threads)?;
    let (start, total, x_dim) = (Instant::now(), theta.len(), simulator.x_dim());
    let mut found = Simulations {
        x: vec![f32::NAN; total * x_dim],
        failures: Vec::new(),
        done: 0,
        seconds: 0.0,
    };
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = channel();
    std::thread::scope(|scope| {
        for _ in 0..threads.min(total.max(1)) {
            let worker = Worker { simulator, theta, streams, first, next: &next, stop: &stop };
            let sender = sender.clone();
            scope.spawn(move || worker.run(&sender));
        }
        drop(sender);
        for piece in receiver {
            let Piece { rows, x, failures } = piece;
            found.x[rows.start * x_dim..][..x.len()].copy_from_slice(&x);
            found.done += rows.len();
            let (done, failed) = (found.done, found.failures.len() + failures.len());
            let progress = Progress { done, total, failed, rows, x: &x, failures: &failures };
            if observe(progress).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
            found.failures.extend(failures);
        }
    });
    found.failures.sort_unstable_by_key(|failure| failure.row);
    found.seconds = start.elapsed().as_secs_f64();
    Ok(found)
}

struct Piece {
    rows: Range<usize>,
    x: Vec<f32>,
    failures: Vec<Failure>,
}

struct Worker<'a> {
    simulator: &'a dyn Simulator,
    theta: Rows<'a>,
    streams: &'a SimulationStreams,
    first: u64,
    next: &'a AtomicUsize,
    stop: &'a AtomicBool,
}

impl Worker<'_> {
    /// Takes pieces of work until none is left, larger ones the faster simulations are.
    fn run(&self, sender: &Sender<Piece>) {
        let mut size = 1;
        while !self.stop.load(Ordering::Relaxed) {
            let start = self.next.fetch_add(size, Ordering::Relaxed);
            if start >= self.theta.len() {
                break;
            }
            let clock = Instant::now();
            let piece = self.piece(start..self.theta.len().min(start + size));
            let each = clock.elapsed().as_secs_f64() / size as f64;
            size = ((PIECE.as_secs_f64() / each) as usize).clamp(1, (4 * size).min(LARGEST_PIECE));
            if sender.send(piece).is_err() {
                break;
            }
        }
    }

    fn piece(&self, rows: Range<usize>) -> Piece {
        let x_dim = self.simulator.x_dim();
        let mut piece = Piece {
            rows: rows.clone(),
            x: Vec::with_capacity(rows.len() * x_dim),
            failures: Vec::new(),
        };
        let (mut theta, mut x) = (vec![0.0; self.theta.columns()], vec![0.0; x_dim]);
        for row in rows {
            theta.iter_mut().zip(self.theta.row(row)).for_each(|(to, &from)| *to = f64::from(from));
            let mut rng = self.streams.stream(self.first + row as u64);
            match simulate_once(self.simulator, &theta, &mut rng, &mut x) {
                Ok(()) => piece.x.extend(x.iter().map(|&v| v as f32)),
                Err(SimulationFailed(reason)) => {
                    piece.x.resize(piece.x.len() + x_dim, f32::NAN);
                    piece.failures.push(Failure { row, reason });
                }
            }
        }
        piece
    }
}

/// One simulation; a panic in it, or a summary that is not finite, is a failure like any other.
pub(crate) fn simulate_once(
    simulator: &dyn Simulator,
    theta: &[f64],
    rng: &mut SimulationStream,
    x: &mut [f64],
) -> std::result::Result<(), SimulationFailed> {
    let simulate = || simulator.simulate(theta, rng, x);
    catch_unwind(AssertUnwindSafe(simulate)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Err(SimulationFailed(format!("the simulator panicked: {text}")))
    })?;
    // What is stored is f32: a number beyond its range is as useless as an infinite one.
    match x.iter().position(|&v| !(v as f32).is_finite()) {
        None => Ok(()),
        Some(i) => Err(SimulationFailed(format!("summary {} is {}", i + 1, x[i]))),
    }
}
