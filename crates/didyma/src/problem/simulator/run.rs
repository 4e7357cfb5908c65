//! Many simulations on all cores, each from the random stream of its index.

use super::piece::{Failure, Piece, Work, finite};
use super::{Job, SimulationFailed, Simulator};
use crate::error::Error;
use crate::parallel;
use crate::rng::{SimulationStream, SimulationStreams};
use crate::rows::Rows;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// What a piece of work should take: long enough to be worth handing over, short enough for progress.
const PIECE: Duration = Duration::from_millis(2);
/// Rows of a piece, at most.
const LARGEST_PIECE: usize = 1 << 16;
/// The observer is called at least this often.
const SILENCE: Duration = Duration::from_millis(100);

/// Rows of a piece up to which the clock is read after each: of more, each takes less than two microseconds.
const WATCHED: usize = 1000;

/// Summaries of many simulations.
#[derive(Clone, Debug)]
pub struct Simulations {
    /// x, row after row; NaN throughout a row that failed.
    pub x: Vec<f64>,
    /// Failed simulations in the order of their rows.
    pub failures: Vec<Failure>,
    /// Rows that were simulated: all, unless the observer stopped the run.
    pub done: usize,
    /// Wall-clock time.
    pub seconds: f64,
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
    /// The rows that are new; none where nothing has come for a while.
    pub rows: Range<usize>,
    /// Their summaries; NaN throughout a row that failed.
    pub x: &'a [f64],
    /// Those of them that failed.
    pub failures: &'a [Failure],
}

/// Simulates every row of `theta` on `threads` threads, or on as many as the simulator has [`Simulator::workers`]. Row i
/// draws from the stream of index `first` + i, so the result is the same for any number of threads, and for any way of
/// cutting rows into calls.
///
/// `observe` is told of progress, in the calling thread: whenever rows are done, and at least every 100 ms. If it breaks,
/// the simulator is told to [`Simulator::interrupt`], the run stops after the simulations under way, and the rows not done
/// are NaN. A simulation that fails after that counts as not done. So does one that fails since this process lacks something
/// ([`Simulator::lack`]): the run stops, and that error is returned once `observe` was told of all that is done.
pub fn simulate(
    simulator: &dyn Simulator,
    theta: Rows,
    streams: &SimulationStreams,
    first: u64,
    threads: usize,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> crate::error::Result<Simulations> {
    let numbers: Vec<u64> = (first..).take(theta.len()).collect();
    simulate_numbered(simulator, theta, streams, &numbers, threads, observe)
}

/// The same with a number for each row, from whose stream it draws.
pub fn simulate_numbered(
    simulator: &dyn Simulator,
    theta: Rows,
    streams: &SimulationStreams,
    numbers: &[u64],
    threads: usize,
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
) -> crate::error::Result<Simulations> {
    theta.expect_columns(simulator.theta_dim(), "parameters of the simulator")?;
    theta.expect_finite()?;
    parallel::check_threads(threads)?;
    assert_eq!(numbers.len(), theta.len(), "a number for each row");
    let (start, total) = (Instant::now(), theta.len());
    let threads = simulator.workers().unwrap_or(threads).clamp(1, total.max(1));
    simulator.ready()?;
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    simulator.interrupt(false);
    let (sender, receiver) = channel();
    let work = Work { theta, streams, numbers, stop: &stop };
    let mut refused = None;
    let mut found = std::thread::scope(|scope| {
        match simulator.crew() {
            Some(crew) => {
                scope.spawn(move || crew.make(&work, &sender));
            }
            None => {
                for _ in 0..threads {
                    let worker = Worker { simulator, work, next: &next };
                    let sender = sender.clone();
                    let thread = std::thread::Builder::new();
                    if let Err(source) = thread.spawn_scoped(scope, move || worker.run(&sender)) {
                        stop.store(true, Ordering::SeqCst);
                        refused = Some(Error::Threads { threads, source });
                        break;
                    }
                }
                drop(sender);
            }
        }
        let mut interrupt = || {
            // In this order: who is interrupted finds that the run has stopped.
            stop.store(true, Ordering::SeqCst);
            simulator.interrupt(true);
        };
        gather(&receiver, (total, simulator.x_dim()), observe, &mut interrupt)
    });
    found.failures.sort_unstable_by_key(|failure| failure.row);
    found.seconds = start.elapsed().as_secs_f64();
    refused.or_else(|| simulator.lack()).map_or(Ok(found), Err)
}

/// Takes pieces as they come, and tells of each; interrupts the simulations when the observer breaks.
fn gather(
    receiver: &Receiver<Piece>,
    (total, x_dim): (usize, usize),
    observe: &mut dyn FnMut(Progress) -> ControlFlow<()>,
    interrupt: &mut dyn FnMut(),
) -> Simulations {
    let x = vec![f64::NAN; total * x_dim];
    let mut found = Simulations { x, failures: Vec::new(), done: 0, seconds: 0.0 };
    let mut stopped = false;
    loop {
        let piece = match receiver.recv_timeout(SILENCE) {
            Ok(piece) => piece,
            // Who has broken need not be asked again and again.
            Err(RecvTimeoutError::Timeout) if stopped => continue,
            Err(RecvTimeoutError::Timeout) => Piece::default(),
            Err(RecvTimeoutError::Disconnected) => return found,
        };
        let Piece { rows, x, failures } = piece;
        found.x[rows.start * x_dim..][..x.len()].copy_from_slice(&x);
        found.done += rows.len();
        let (done, failed) = (found.done, found.failures.len() + failures.len());
        let progress = Progress { done, total, failed, rows, x: &x, failures: &failures };
        if observe(progress).is_break() && !stopped {
            stopped = true;
            interrupt();
        }
        found.failures.extend(failures);
    }
}

struct Worker<'a> {
    simulator: &'a dyn Simulator,
    work: Work<'a>,
    next: &'a AtomicUsize,
}

impl Worker<'_> {
    /// Takes pieces of work until none is left, larger ones the faster simulations are.
    fn run(&self, sender: &Sender<Piece>) {
        let batch = self.simulator.batch().max(1);
        let mut size = batch;
        while !self.work.stopped() {
            let start = self.next.fetch_add(size, Ordering::Relaxed);
            if start >= self.work.theta.len() {
                break;
            }
            let clock = Instant::now();
            self.piece(start..self.work.theta.len().min(start + size), batch, sender);
            let each = clock.elapsed().as_secs_f64() / size as f64;
            size = ((PIECE.as_secs_f64() / each) as usize).clamp(1, (4 * size).min(LARGEST_PIECE));
            size = size.next_multiple_of(batch);
        }
    }

    /// Simulates rows and sends them, in one piece unless the run has stopped meanwhile.
    fn piece(&self, rows: Range<usize>, batch: usize, sender: &Sender<Piece>) {
        let mut piece = Piece::with_room(rows.start, rows.len() * self.simulator.x_dim());
        let (mut since, watched) = (Instant::now(), rows.len() <= WATCHED);
        let mut take = |x: &[f64], result: Result<(), SimulationFailed>| {
            if result.is_err() && (self.work.stopped() || self.lacks()) {
                // Whether it would have failed is not known: it is left out, and what follows is another piece.
                let next = Piece::new(piece.rows.end + 1);
                send(std::mem::replace(&mut piece, next), sender);
                return;
            }
            piece.push_checked(x, result);
            // Simulations that have become slow are told of one by one.
            if watched && since.elapsed() >= SILENCE {
                let next = Piece::new(piece.rows.end);
                send(std::mem::replace(&mut piece, next), sender);
                since = Instant::now();
            }
        };
        match batch {
            1 => self.one_by_one(rows, &mut take),
            _ => self.batches(rows, batch, &mut take),
        }
        send(piece, sender);
    }

    /// Whether a failure is ours, of which the simulator knows nothing: then all stop.
    fn lacks(&self) -> bool {
        let lacks = self.simulator.lack().is_some();
        if lacks {
            self.work.stop.store(true, Ordering::SeqCst);
            self.simulator.interrupt(true);
        }
        lacks
    }

    fn one_by_one(&self, rows: Range<usize>, take: &mut impl Take) {
        let mut x = vec![0.0; self.simulator.x_dim()];
        for row in rows {
            let mut rng = self.work.stream(row);
            let result = simulate_once(self.simulator, self.work.theta.row(row), &mut rng, &mut x);
            take(&x, result);
        }
    }

    fn batches(&self, rows: Range<usize>, batch: usize, take: &mut impl Take) {
        for start in rows.clone().step_by(batch) {
            let mut jobs: Vec<Job> = (start..rows.end.min(start + batch))
                .map(|row| Job {
                    theta: self.work.theta.row(row).to_vec(),
                    rng: self.work.stream(row),
                    x: vec![f64::NAN; self.simulator.x_dim()],
                    result: Ok(()),
                })
                .collect();
            let all = caught(|| {
                self.simulator.simulate_batch(&mut jobs);
                Ok(())
            });
            for Job { x, result, .. } in jobs {
                let result = all.clone().and(result).and_then(|()| finite(&x));
                take(&x, result);
            }
        }
    }
}

/// Takes what became of the next row.
trait Take: FnMut(&[f64], Result<(), SimulationFailed>) {}

impl<F: FnMut(&[f64], Result<(), SimulationFailed>)> Take for F {}

fn send(piece: Piece, sender: &Sender<Piece>) {
    if !piece.rows.is_empty() {
        // The receiver lives until all senders are gone.
        let _ = sender.send(piece);
    }
}

/// One simulation; a panic in it, or a summary that is not finite, is a failure like any other.
#[inline]
pub(crate) fn simulate_once<S: Simulator + ?Sized>(
    simulator: &S,
    theta: &[f64],
    rng: &mut SimulationStream,
    x: &mut [f64],
) -> Result<(), SimulationFailed> {
    caught(|| simulator.simulate(theta, rng, x))?;
    finite(x)
}

fn caught(simulate: impl FnOnce() -> Result<(), SimulationFailed>) -> Result<(), SimulationFailed> {
    catch_unwind(AssertUnwindSafe(simulate)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        let text = text.unwrap_or_else(|| "no message".to_owned());
        Err(SimulationFailed(format!("the simulator panicked: {text}")))
    })
}
