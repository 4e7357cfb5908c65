//! No more simulations under way than there may be, whoever asks for them.

use super::lack::Lack;
use super::parse::Answer;
use crate::error::Error;
use crate::problem::simulator::SimulationFailed;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How often waiting threads look up.
pub(super) const TICK: Duration = Duration::from_millis(20);

/// What is said of a simulation that was not allowed to end, to nobody.
pub(super) const INTERRUPTED: &str = "it was interrupted";

/// Lets in so many at a time, and nobody while interrupted.
#[derive(Debug)]
pub(super) struct Gate {
    free: Mutex<usize>,
    bell: Condvar,
    interrupted: AtomicBool,
    lack: Mutex<Option<Lack>>,
}

impl Gate {
    /// Any number of them, if none is given.
    pub(super) fn new(places: Option<usize>) -> Self {
        let free = Mutex::new(places.unwrap_or(usize::MAX));
        let (interrupted, lack) = (AtomicBool::new(false), Mutex::default());
        Self { free, bell: Condvar::new(), interrupted, lack }
    }

    pub(super) fn interrupt(&self, now: bool) {
        self.interrupted.store(now, Ordering::SeqCst);
        if !now {
            *self.noted() = None;
        }
    }

    fn noted(&self) -> MutexGuard<'_, Option<Lack>> {
        self.lack.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Remembers why something could not be done, if it is for a lack of this process's own.
    pub(super) fn note(&self, action: &'static str, error: &io::Error) {
        if let Some(lack) = Lack::of(action, error) {
            self.noted().get_or_insert(lack);
        }
    }

    /// Remembers that there is no use of the temporary directory, for whatever reason.
    pub(super) fn note_scratch(&self, action: &'static str, error: &io::Error) {
        self.noted().get_or_insert(Lack::of_scratch(action, error));
    }

    /// What this process lacks, for all that is known.
    pub(super) fn lack(&self) -> Option<Error> {
        self.noted().as_ref().map(Lack::error)
    }

    pub(super) fn interrupted(&self) -> bool {
        self.interrupted.load(Ordering::SeqCst)
    }

    /// Asks for an answer once there is a place for it, and puts it into x.
    pub(super) fn answer(
        &self,
        ask: impl FnOnce() -> Answer,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        let place = self.enter();
        let answer = match place {
            Some(_) => ask(),
            None => Err(INTERRUPTED.to_owned()),
        };
        x.copy_from_slice(&answer.map_err(SimulationFailed)?);
        Ok(())
    }

    /// A place, once there is one; none when interrupted.
    pub(super) fn enter(&self) -> Option<Place<'_>> {
        let mut free = self.free.lock().unwrap_or_else(PoisonError::into_inner);
        while !self.interrupted() {
            if *free > 0 {
                *free -= 1;
                return Some(Place(self));
            }
            let woken = self.bell.wait_timeout(free, TICK);
            free = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
        None
    }
}

/// Given back when it is dropped.
#[derive(Debug)]
pub(super) struct Place<'a>(&'a Gate);

impl Drop for Place<'_> {
    fn drop(&mut self) {
        *self.0.free.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        self.0.bell.notify_one();
    }
}
