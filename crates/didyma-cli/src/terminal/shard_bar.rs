//! The progress of simulations that are stored as they come: of a shard, or for a calibration.

use super::{Stop, bar, stop_on_interrupt, unless};
use anyhow::anyhow;
use didyma::{Error, Event, Observer};
use indicatif::ProgressBar;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;
use std::time::Instant;

/// Shows the progress of simulations that are stored as they come, and stops them when the user wants it.
pub struct ShardBar {
    bar: ProgressBar,
    stop: Stop,
    begun: Instant,
    total: usize,
    done: usize,
    failed: usize,
}

impl ShardBar {
    /// For so many simulations, of which these are done, and failed; listens to interrupts.
    pub fn new(total: usize, (done, failed): (usize, usize)) -> Self {
        let bar = bar(total as u64, "{bar:40} {pos}/{len} simulations, {per_sec}{msg}");
        Self { bar, stop: stop_on_interrupt(), begun: Instant::now(), total, done, failed }
    }

    /// Takes the bar off the terminal.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// Tells if all simulations are done.
    pub fn is_done(&self) -> bool {
        self.done == self.total
    }

    /// From here on the first interrupt ends the process.
    pub fn interrupt_ends(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

impl Observer for ShardBar {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if let Event::Simulated { done, failed, .. } = event {
            (self.done, self.failed) = (*done, *failed);
            self.bar.set_position(*done as u64);
            if *failed > 0 {
                self.bar.set_message(format!(", {failed} failed"));
            }
        }
        Ok(unless(&self.stop))
    }
}

impl fmt::Display for ShardBar {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { done, total, failed, begun, .. } = self;
        let failed = if *failed > 0 { format!(", {failed} of them failed") } else { String::new() };
        write!(f, "{done} of {total} simulations in {:.1} s{failed}", begun.elapsed().as_secs_f64())
    }
}

/// Failures one after another, with the remedy of a command that can make them again.
pub fn failed_in_a_row(error: Error) -> anyhow::Error {
    match error {
        Error::FailuresInARow { failures, reason, .. } => anyhow!(
            "{failures} simulations failed one after another, the last of them: {reason}\nrepair the simulator, then \
             run the same command with --retry-failed"
        ),
        other => other.into(),
    }
}
