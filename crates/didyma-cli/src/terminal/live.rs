//! A run as seen while it goes on: a bar on a terminal, plain lines elsewhere.

use super::{Stop, unless};
use crate::output::tell;
use didyma::report::{Line, Narrator, opening};
use didyma::run::Manifest;
use didyma::training::Machine;
use didyma::{Event, Observer};
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, Instant};

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
