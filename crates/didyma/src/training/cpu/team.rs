//! A team of threads that do the stages of a step together, without allocating.
//!
//! The caller is member 0. Between steps the others spin briefly, then sleep.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

/// Work of one member in one stage, on the shared state.
pub(super) type Work<S> = fn(&S, member: usize, stage: usize);

/// Threads around a shared state.
#[derive(Debug)]
pub(super) struct Team<S: Send + Sync + 'static> {
    inner: Arc<Inner<S>>,
    work: Work<S>,
    helpers: Vec<JoinHandle<()>>,
}

#[derive(Debug)]
struct Inner<S> {
    state: S,
    /// Counts stages begun; its change is the signal to start.
    begun: AtomicUsize,
    stage: AtomicUsize,
    /// Helpers that have not finished the present stage.
    busy: AtomicUsize,
    failed: AtomicBool,
    stopped: AtomicBool,
    asleep: Mutex<()>,
    wake: Condvar,
}

impl<S: Send + Sync + 'static> Team<S> {
    /// `members` threads, the caller among them.
    pub(super) fn new(members: usize, state: S, work: Work<S>) -> std::io::Result<Self> {
        let inner = Arc::new(Inner {
            state,
            begun: AtomicUsize::new(0),
            stage: AtomicUsize::new(0),
            busy: AtomicUsize::new(0),
            failed: AtomicBool::new(false),
            stopped: AtomicBool::new(false),
            asleep: Mutex::new(()),
            wake: Condvar::new(),
        });
        let mut team = Self { inner, work, helpers: Vec::new() };
        for member in 1..members {
            let inner = Arc::clone(&team.inner);
            let name = format!("didyma-{member}");
            let helper = std::thread::Builder::new().name(name);
            team.helpers.push(helper.spawn(move || inner.help(member, work))?);
        }
        Ok(team)
    }

    pub(super) fn state(&self) -> &S {
        &self.inner.state
    }

    /// Every member does `stage`; returns when all are done.
    pub(super) fn run(&self, stage: usize) {
        let inner = &self.inner;
        if !self.helpers.is_empty() {
            inner.stage.store(stage, Ordering::Relaxed);
            inner.busy.store(self.helpers.len(), Ordering::Relaxed);
            inner.begin();
        }
        let waiting = WaitForHelpers(&inner.busy);
        (self.work)(&inner.state, 0, stage);
        drop(waiting);
        assert!(!inner.failed.load(Ordering::Relaxed), "a thread of the team panicked");
    }
}

/// Waits until no helper is busy, also when the caller's own work panics.
struct WaitForHelpers<'a>(&'a AtomicUsize);

impl Drop for WaitForHelpers<'_> {
    fn drop(&mut self) {
        patiently(|| self.0.load(Ordering::Acquire) == 0, std::thread::yield_now);
    }
}

impl<S: Send + Sync + 'static> Drop for Team<S> {
    fn drop(&mut self) {
        self.inner.stopped.store(true, Ordering::Relaxed);
        self.inner.begin();
        for helper in self.helpers.drain(..) {
            // A helper catches its panics, so there is nothing to report here.
            let _ = helper.join();
        }
    }
}

impl<S> Inner<S> {
    fn begin(&self) {
        self.begun.fetch_add(1, Ordering::Release);
        // Taking the lock makes sure that no helper is between its last look and its sleep.
        drop(self.asleep.lock().unwrap_or_else(PoisonError::into_inner));
        self.wake.notify_all();
    }

    fn help(&self, member: usize, work: Work<S>) {
        let mut seen = 0;
        loop {
            let has_begun = || self.begun.load(Ordering::Acquire) != seen;
            patiently(has_begun, || {
                let guard = self.asleep.lock().unwrap_or_else(PoisonError::into_inner);
                if !has_begun() {
                    drop(self.wake.wait(guard));
                }
            });
            seen += 1;
            if self.stopped.load(Ordering::Relaxed) {
                return;
            }
            let stage = self.stage.load(Ordering::Relaxed);
            let done = std::panic::AssertUnwindSafe(|| work(&self.state, member, stage));
            if std::panic::catch_unwind(done).is_err() {
                self.failed.store(true, Ordering::Relaxed);
            }
            self.busy.fetch_sub(1, Ordering::Release);
        }
    }
}

/// Waits for `ready`: spins for some microseconds, then gives the core away, then calls `rest`.
fn patiently(ready: impl Fn() -> bool, rest: impl Fn()) {
    for _ in 0..2_000 {
        if ready() {
            return;
        }
        std::hint::spin_loop();
    }
    for _ in 0..100 {
        if ready() {
            return;
        }
        std::thread::yield_now();
    }
    while !ready() {
        rest();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_does_every_stage_once() {
        let counts: Vec<AtomicUsize> = (0..4).map(|_| AtomicUsize::new(0)).collect();
        let team = Team::new(4, counts, |counts, member, stage| {
            counts[member].fetch_add(stage, Ordering::Relaxed);
        })
        .unwrap();
        for stage in 1..=100 {
            team.run(stage);
            if stage % 25 == 0 {
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
        assert!(team.state().iter().all(|c| c.load(Ordering::Relaxed) == 5050));
    }

    #[test]
    fn a_panic_of_the_caller_leaves_the_team_usable() {
        let done = AtomicUsize::new(0);
        let team = Team::new(3, done, |done, member, stage| {
            std::thread::sleep(std::time::Duration::from_millis(member as u64));
            assert!(member > 0 || stage > 0, "the caller's own work fails in stage 0");
            done.fetch_add(1, Ordering::Relaxed);
        })
        .unwrap();
        let failing = std::panic::AssertUnwindSafe(|| team.run(0));
        assert!(std::panic::catch_unwind(failing).is_err());
        assert_eq!(team.state().load(Ordering::Relaxed), 2, "the helpers were waited for");
        team.run(1);
        assert_eq!(team.state().load(Ordering::Relaxed), 5);
    }

    #[test]
    #[should_panic(expected = "a thread of the team panicked")]
    fn a_panic_of_a_helper_reaches_the_caller() {
        let team = Team::new(2, (), |(), member, _| assert_eq!(member, 0)).unwrap();
        team.run(0);
    }
}
