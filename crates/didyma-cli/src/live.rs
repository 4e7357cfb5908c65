//! What is seen of a run while it goes on: a bar on a terminal, plain lines elsewhere.

use crate::{STOPPED, tell};
use didyma::estimator::Named;
use didyma::observe::{Event, Observer};
use didyma::rounds::RoundReport;
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

/// Shows events, and stops the run when the user wants it.
pub struct Live {
    bar: Option<ProgressBar>,
    stop: Stop,
    rounds: u32,
    start: Instant,
    /// When a plain line was last printed.
    told: Instant,
    /// Rounds that this process finished.
    done: u32,
}

/// Without a terminal, a line about training is printed at most this often.
const BETWEEN_LINES: Duration = Duration::from_secs(10);

impl Live {
    pub fn new(manifest: &Manifest, dir: &Path, stop: Stop) -> Self {
        let config = &manifest.config;
        let (rounds, simulations) = (config.rounds, config.simulations);
        tell(&format!(
            "{} by {}: {rounds} rounds of {simulations} simulations, seed {}, in {}",
            manifest.task,
            config.method_name(),
            config.seed,
            dir.display()
        ));
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::new_spinner();
            let style = ProgressStyle::with_template("{spinner} {msg}").expect("it is valid");
            bar.set_style(style);
            bar.enable_steady_tick(Duration::from_millis(100));
            bar
        });
        let now = Instant::now();
        Self { bar, stop, rounds, start: now, told: now, done: 0 }
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

    /// Seconds that the rest will take if every round takes as long as those before.
    fn left(&self, round: u32, share: f64) -> String {
        let rounds = f64::from(self.done) + share;
        if rounds < 1.0 {
            return String::new();
        }
        let each = self.start.elapsed().as_secs_f64() / rounds;
        let left = each * (f64::from(self.rounds - round) + 1.0 - share);
        format!(", about {left:.0} s left")
    }

    fn show(&mut self, event: &Event) {
        match event {
            Event::RoundStarted { .. } => {}
            Event::Simulated { round, done, total, failed, rate, .. } => {
                let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
                let text = format!(
                    "round {round}/{}: {done}/{total} simulations, {rate:.0} a second{failed}",
                    self.rounds
                );
                self.passing(text);
            }
            Event::Epoch { report: e, .. } => {
                let left = self.left(e.round, f64::from(e.epoch) / f64::from(e.epochs));
                let text = format!(
                    "round {}/{}: epoch {}, training loss {:.3}, validation loss {:.3}{left}",
                    e.round, self.rounds, e.epoch, e.train_loss, e.validation_loss
                );
                self.passing(text);
            }
            Event::RoundFinished { report, .. } => {
                self.done += 1;
                self.lasting(&round_line(report, self.rounds));
            }
        }
    }
}

/// A finished round in one line.
pub fn round_line(r: &RoundReport, rounds: u32) -> String {
    let score = |name: &str, value: Option<f64>| {
        value.map_or(String::new(), |value| format!("  {name} {value:.3}"))
    };
    let failed = if r.failures > 0 { format!(", {} failed", r.failures) } else { String::new() };
    let loss = r.validation_loss.map_or("none".to_owned(), |loss| format!("{loss:.3}"));
    format!(
        "round {:>2}/{rounds}: {} simulations{failed}, {} epochs ({}), loss {loss}, {:.1} s{}{}{}",
        r.round,
        r.simulations,
        r.epochs,
        r.stop_reason.name(),
        r.seconds_simulate + r.seconds_train,
        score("C2ST", r.scores.c2st),
        score("LMD", r.scores.lmd),
        score("NLOG", r.scores.nlog),
    )
}

impl Observer for Live {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        self.show(event);
        match self.stop.load(Ordering::Relaxed) {
            true => Ok(ControlFlow::Break(())),
            false => Ok(ControlFlow::Continue(())),
        }
    }
}
