//! Ctrl-C, SIGTERM and a terminal that goes away.

use crate::STOPPED;
use crate::output::tell;
use didyma::simulator::program::end_all;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, OnceLock};

/// Set when the user wants the work to stop.
pub type Stop = Arc<AtomicBool>;

/// Reaction of a command to an interrupt; a break ends the process.
type Reaction = Box<dyn Fn() -> ControlFlow<()> + Send + Sync>;

/// The reaction of the command that listens, if one does.
static REACTION: OnceLock<Reaction> = OnceLock::new();

/// Interrupts end the process, and all programs that it has started, unless a command reacts in its own way.
pub fn end_on_interrupt() -> anyhow::Result<()> {
    Ok(ctrlc::set_handler(|| {
        if REACTION.get().is_none_or(|react| react().is_break()) {
            end_all();
            std::process::exit(STOPPED.into());
        }
    })?)
}

/// Is set by the first interrupt; a second one ends the process at once, which loses nothing that was saved.
pub fn stop_on_interrupt() -> Stop {
    let stop = Stop::default();
    let heard = Arc::clone(&stop);
    react(move || {
        let again = heard.swap(true, Ordering::Relaxed);
        if again {
            return ControlFlow::Break(());
        }
        tell("\nstopping at the next safe point (again to stop at once)");
        ControlFlow::Continue(())
    });
    stop
}

/// Hears of interrupts, so that a screen can be left in order.
pub fn interrupts() -> Receiver<()> {
    let (heard, interrupts) = channel();
    react(move || {
        // Nobody listens once the watching has ended.
        let _ = heard.send(());
        ControlFlow::Continue(())
    });
    interrupts
}

/// A process carries out one command, which listens once.
fn react(reaction: impl Fn() -> ControlFlow<()> + Send + Sync + 'static) {
    let set = REACTION.set(Box::new(reaction));
    debug_assert!(set.is_ok(), "a command listens once");
}

/// Breaks when the user wants the work to stop.
pub fn unless(stop: &Stop) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}
