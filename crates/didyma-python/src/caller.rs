//! The engine works on a thread of its own, and the thread that called it answers: it runs the user's function, shows
//! progress and hears Ctrl-C, as Python code would.

use crate::batches::make;
use crate::errors::{Kind, panicked, python};
use crate::executor::Pool;
use crate::function::{Function, Rows};
use crate::wait::receive;
use didyma::report::{Line, Narrator};
use didyma::rng::SimulationStream;
use didyma::simulator::{Crew, Piece, SimulationFailed, Simulator, Work};
use didyma::{Event, Observer};
use pyo3::exceptions::{PyException, PyKeyboardInterrupt};
use pyo3::prelude::*;
use std::any::Any;
use std::ops::ControlFlow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Seconds that calls of a function should take before the run hears of them.
const TARGET: f64 = 0.02;

/// What the engine tells or asks of its caller.
enum Message<T> {
    Line(Line),
    Simulate(Request),
    Done(Result<didyma::Result<T>, Box<dyn Any + Send>>),
}

/// Simulations that the engine wants.
struct Request {
    rows: Rows,
    done: Sender<Piece>,
    /// Dropped when no more will come.
    _finished: Sender<()>,
}

/// What the engine has of its caller.
pub struct Link<T> {
    messages: Sender<Message<T>>,
    stop: Arc<AtomicBool>,
}

impl<T> Clone for Link<T> {
    fn clone(&self) -> Self {
        Self { messages: self.messages.clone(), stop: Arc::clone(&self.stop) }
    }
}

impl<T: Send + 'static> Link<T> {
    /// Whether the caller wants the work to stop.
    pub fn is_stopped(&self) -> bool {
        self.stop.load(Ordering::SeqCst)
    }

    /// Tells the caller something to stay.
    pub fn say(&self, text: String) {
        // A caller that has gone away hears nothing.
        let _ = self.messages.send(Message::Line(Line::Lasting(text)));
    }

    /// An observer that tells the caller.
    pub fn observer(&self, rounds: u32) -> impl Observer + use<T> {
        Telling { link: self.clone(), narrator: Narrator::new(rounds) }
    }

    /// A simulator that asks the caller.
    pub fn simulator(&self, dims: (usize, usize)) -> impl Simulator + use<T> {
        Inquiry { link: Mutex::new(self.clone()), stop: Arc::clone(&self.stop), dims }
    }
}

struct Telling<T> {
    link: Link<T>,
    narrator: Narrator,
}

impl<T> Observer for Telling<T> {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if let Some(line) = self.narrator.line(event) {
            // A caller that has gone away hears nothing.
            let _ = self.link.messages.send(Message::Line(line));
        }
        match self.link.stop.load(Ordering::SeqCst) {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}

struct Inquiry<T> {
    link: Mutex<Link<T>>,
    stop: Arc<AtomicBool>,
    dims: (usize, usize),
}

impl<T: Send> Simulator for Inquiry<T> {
    fn theta_dim(&self) -> usize {
        self.dims.0
    }

    fn x_dim(&self) -> usize {
        self.dims.1
    }

    fn simulate(
        &self,
        _theta: &[f64],
        _rng: &mut SimulationStream,
        _x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        Err(SimulationFailed("a Python function is called by its crew".to_owned()))
    }

    fn crew(&self) -> Option<&dyn Crew> {
        Some(self)
    }

    fn interrupt(&self, now: bool) {
        if now {
            self.stop.store(true, Ordering::SeqCst);
        }
    }
}

impl<T: Send> Crew for Inquiry<T> {
    fn make(&self, work: &Work, done: &Sender<Piece>) {
        let theta = work.theta.data().to_vec();
        let seeds = (0..work.theta.len()).map(|row| work.stream(row).seed()).collect();
        let (finished, until) = channel();
        let (rows, done) = (Rows { theta, seeds }, done.clone());
        let request = Request { rows, done, _finished: finished };
        let sent = self.link.lock().map(|link| link.messages.send(Message::Simulate(request)));
        if matches!(sent, Ok(Ok(()))) {
            // Nothing is ever sent: it ends when the caller drops the request.
            let _: Result<(), _> = until.recv();
        }
    }
}

/// Who called.
pub struct Caller {
    pub function: Option<(Function, Option<Pool>)>,
    pub progress: Py<PyAny>,
}

impl Caller {
    /// Carries out the engine's work and answers it meanwhile. `stopped` is the sentence of a KeyboardInterrupt.
    pub fn answer<T: Send + 'static>(
        &mut self,
        py: Python<'_>,
        stopped: &str,
        engine: impl FnOnce(&Link<T>) -> didyma::Result<T> + Send + 'static,
    ) -> PyResult<T> {
        let (messages, receiver) = channel();
        let stop = Arc::new(AtomicBool::new(false));
        let link = Link { messages, stop: Arc::clone(&stop) };
        std::thread::spawn(move || {
            let found = catch_unwind(AssertUnwindSafe(|| engine(&link)));
            let _ = link.messages.send(Message::Done(found));
        });
        let mut answering = Answering { caller: self, receiver, stop, error: None, done: None };
        let found = answering.until_done(py);
        let error = answering.error.take();
        // What it shows last is no reason to lose a run, but a Ctrl-C meanwhile is one to say so.
        let finished = self.progress.call_method0(py, "finish").err();
        let finished = finished.filter(|error| !error.is_instance_of::<PyException>(py));
        let error = error.or(finished);
        let error = error.map(|error| match error.is_instance_of::<PyKeyboardInterrupt>(py) {
            true => PyKeyboardInterrupt::new_err(stopped.to_owned()),
            false => error,
        });
        error.map_or(found, Err)
    }
}

/// A caller while the engine works.
struct Answering<'a, T> {
    caller: &'a mut Caller,
    receiver: Receiver<Message<T>>,
    stop: Arc<AtomicBool>,
    /// Why the engine was told to stop.
    error: Option<PyErr>,
    /// What the engine came to.
    done: Option<PyResult<T>>,
}

impl<T: Send + 'static> Answering<'_, T> {
    fn until_done(&mut self, py: Python<'_>) -> PyResult<T> {
        loop {
            let message = receive(py, &mut self.receiver);
            if let Err(error) = py.check_signals() {
                if self.error.is_some() {
                    // Asked twice: the engine ends by itself.
                    return Err(error);
                }
                self.give_up(error);
            }
            match message {
                Ok(message) => self.take(py, message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(panicked(&"the engine was lost"));
                }
            }
            if let Some(done) = self.done.take() {
                return done;
            }
        }
    }

    fn give_up(&mut self, error: PyErr) {
        self.error = Some(error);
        self.stop.store(true, Ordering::SeqCst);
    }

    fn take(&mut self, py: Python<'_>, message: Message<T>) {
        match message {
            Message::Line(line) => {
                // Whether anybody reads it is no reason to stop; a Ctrl-C meanwhile is.
                if let Err(error) = self.show(py, line)
                    && !error.is_instance_of::<PyException>(py)
                {
                    self.give_up(error);
                }
            }
            Message::Simulate(request) => {
                if let Err(error) = self.simulate(py, &request) {
                    self.give_up(error);
                }
            }
            Message::Done(Ok(found)) => self.done = Some(found.map_err(python)),
            Message::Done(Err(panic)) => self.done = Some(Err(panicked(&*panic))),
        }
    }

    fn show(&self, py: Python<'_>, line: Line) -> PyResult<()> {
        let (method, text) = match line {
            Line::Passing(text) => ("passing", text),
            Line::Lasting(text) => ("lasting", text),
        };
        self.caller.progress.call_method1(py, method, (text,)).map(|_| ())
    }

    fn simulate(&mut self, py: Python<'_>, request: &Request) -> PyResult<()> {
        let Some((function, pool)) = self.caller.function.take() else {
            return Err(Kind::Internal.error("there is no function to simulate with"));
        };
        let mut between = |py: Python<'_>| self.between(py);
        let (function, pool, made) = match pool {
            Some(mut pool) => {
                let Request { rows, done, .. } = request;
                let made = make(py, &mut pool, &function, rows, done, &mut between);
                (function, Some(pool), made)
            }
            None => {
                let made = here(py, &function, request, &mut between);
                (function, None, made)
            }
        };
        self.caller.function = Some((function, pool));
        made
    }

    /// Between two batches: shows what the engine told meanwhile.
    fn between(&mut self, py: Python<'_>) -> PyResult<ControlFlow<()>> {
        py.check_signals()?;
        while let Ok(message) = self.receiver.try_recv() {
            self.take(py, message);
        }
        match self.stop.load(Ordering::SeqCst) {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Calls the function in this thread, with more rows at a time the faster it is.
fn here(
    py: Python<'_>,
    function: &Function,
    request: &Request,
    between: &mut dyn FnMut(Python<'_>) -> PyResult<ControlFlow<()>>,
) -> PyResult<()> {
    let (unit, all) = (function.unit(), request.rows.seeds.len());
    let (mut start, mut size) = (0, unit);
    while start < all && between(py)?.is_continue() {
        let clock = Instant::now();
        let answer = function.call(py, &request.rows, start..all.min(start + size))?;
        let _ = request.done.send(answer.piece(start, function.dims().1));
        let made = answer.rows(function.dims().1);
        let each = clock.elapsed().as_secs_f64() / made as f64;
        size = ((TARGET / each) as usize).clamp(1, 4 * size).next_multiple_of(unit);
        start += made;
    }
    Ok(())
}
