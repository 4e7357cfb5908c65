//! What is seen of a run while it goes on: a bar on a terminal, plain lines elsewhere.

use crate::{STOPPED, tell};
use didyma::device::Machine;
use didyma::observe::{Event, Observer};
use didyma::report::{Line, Narrator, opening};
use didyma::run::Manifest;
use didyma::simulator::program::end_all;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// Set when the user wants the work to stop.
pub type Stop = Arc<AtomicBool>;

/// The stop of the command that listens, if one does.
static LISTENER: OnceLock<Stop> = OnceLock::new();

/// Ctrl-C and SIGTERM end the process, and all programs that it has started. A command that asks for it by
/// [`stop_on_interrupt`] stops cleanly instead; a second one ends the process at once, which loses nothing that was saved.
pub fn end_on_interrupt() -> anyhow::Result<()> {
    Ok(ctrlc::set_handler(|| match LISTENER.get() {
        Some(stop) if !stop.swap(true, Ordering::Relaxed) => {
            tell("\nstopping at the next safe point (again to stop at once)");
        }
        _ => {
            end_all();
            std::process::exit(STOPPED.into());
        }
    })?)
}

/// Is told when the user wants the work to stop.
pub fn stop_on_interrupt() -> Stop {
    Arc::clone(LISTENER.get_or_init(Stop::default))
}

/// Something that turns, where there is a terminal.
pub fn spinner() -> Option<ProgressBar> {
    std::io::stderr().is_terminal().then(|| {
        let bar = ProgressBar::new_spinner();
        let style = ProgressStyle::with_template("{spinner} {msg}").expect("it is valid");
        bar.set_style(style);
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    })
}

/// Whether to go on.
pub fn unless(stop: &Stop) -> ControlFlow<()> {
    match stop.load(Ordering::Relaxed) {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// Shows events, and stops the run when the user wants it.
pub struct Live {
    bar: Option<ProgressBar>,
    stop: Stop,
    narrator: Narrator,
    /// When a plain line was last printed.
    told: Instant,
}

/// Without a terminal, a line about training is printed at most this often.
pub const BETWEEN_LINES: Duration = Duration::from_secs(10);

impl Live {
    pub fn new(manifest: &Manifest, dir: &Path, machine: &Machine, stop: Stop) -> Self {
        tell(&opening(manifest, Some(dir), &*machine.device));
        let narrator = Narrator::new(manifest.config.rounds);
        Self { bar: spinner(), stop, narrator, told: Instant::now() }
    }

    pub fn finish(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// Something that changes often.
    fn passing(&mut self, text: String) {
        match &self.bar {
            Some(bar) => bar.set_message(text),
            None if self.told.elapsed() >= BETWEEN_LINES => {
                self.told = Instant::now();
                tell(&text);
            }
            None => {}
        }
    }

    fn lasting(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.println(text),
            None => tell(text),
        }
    }

    fn show(&mut self, event: &Event) {
        match self.narrator.line(event) {
            Some(Line::Passing(text)) => self.passing(text),
            Some(Line::Lasting(text)) => self.lasting(&text),
            None => {}
        }
    }
}

impl Observer for Live {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        self.show(event);
        Ok(unless(&self.stop))
    }
}
