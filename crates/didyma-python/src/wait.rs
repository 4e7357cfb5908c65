//! The way into all of the library that takes long: on a thread of its own, without the interpreter, while Ctrl-C is listened to.

use crate::errors::{panicked, python};
use pyo3::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

/// How often signals are looked for.
const POLL: Duration = Duration::from_millis(50);

/// What `work` gives. Other Python threads run meanwhile; Ctrl-C ends the wait at once, and nobody hears of the work again.
pub fn wait<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce() -> didyma::Result<T> + Send + 'static,
) -> PyResult<T> {
    let (sender, mut receiver) = channel();
    std::thread::spawn(move || {
        // Nobody may be waiting any more.
        let _ = sender.send(catch_unwind(AssertUnwindSafe(work)));
    });
    loop {
        match receive(py, &mut receiver) {
            Ok(Ok(found)) => return found.map_err(python),
            Ok(Err(panic)) => return Err(panicked(&*panic)),
            Err(RecvTimeoutError::Timeout) => py.check_signals()?,
            Err(RecvTimeoutError::Disconnected) => return Err(panicked(&"a thread was lost")),
        }
    }
}

/// The next message, waited for without the interpreter; nothing if none comes until signals are to be looked for.
pub fn receive<T: Send>(py: Python<'_>, receiver: &mut Receiver<T>) -> Result<T, RecvTimeoutError> {
    py.detach(move || {
        // All of it moves in: a receiver can be lent to one thread only.
        let receiver = receiver;
        receiver.recv_timeout(POLL)
    })
}
