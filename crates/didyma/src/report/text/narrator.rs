//! A run in words while it goes on.

use crate::inference::events::Event;
use crate::inference::{RoundReport, Training};
use crate::named::Named;
use crate::run::Manifest;
use crate::training::{Device, FitState};
use std::path::Path;
use std::time::Instant;

/// Something to show.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    /// Replaced by the next one.
    Passing(String),
    /// To stay.
    Lasting(String),
}

/// A run's first line: what it is of, its directory if it is to be kept, and where flows are computed.
pub fn opening(manifest: &Manifest, dir: Option<&Path>, device: &dyn Device) -> String {
    let config = &manifest.config;
    let dir = dir.map(|dir| format!(" in {},", dir.display())).unwrap_or_default();
    format!(
        "{} by {}: {} rounds of {} simulations, seed {},{dir} on {}",
        manifest.task,
        config.method_name(),
        config.rounds,
        config.simulations,
        config.seed,
        device.describe()
    )
}

/// Puts events into words.
#[derive(Clone, Debug)]
pub struct Narrator {
    rounds: u32,
    start: Instant,
    /// Rounds that this process finished.
    done: u32,
}

impl Narrator {
    /// Of a run of so many rounds.
    pub fn new(rounds: u32) -> Self {
        Self { rounds, start: Instant::now(), done: 0 }
    }

    /// What there is to say of an event.
    pub fn line(&mut self, event: &Event) -> Option<Line> {
        let rounds = self.rounds;
        match event {
            Event::RoundStarted { .. } => None,
            Event::Simulated { round, done, total, failed, rate, .. } => {
                let failed = if *failed > 0 { format!(", {failed} failed") } else { String::new() };
                Some(Line::Passing(format!(
                    "round {round}/{rounds}: {done}/{total} simulations, {rate:.0} a second{failed}"
                )))
            }
            Event::Epoch { report: e, training } => {
                let left = self.left(e.round, trained(training, e.epochs));
                let member = match training.members.len() {
                    1 => String::new(),
                    members => format!(" of member {}/{members}", e.member + 1),
                };
                Some(Line::Passing(format!(
                    "round {}/{rounds}: epoch {}{member}, training loss {:.3}, validation loss {:.3}{left}",
                    e.round, e.epoch, e.train_loss, e.validation_loss
                )))
            }
            Event::RoundFinished { report, .. } => {
                self.done += 1;
                Some(Line::Lasting(round_line(report, rounds)))
            }
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
}

/// The share of the round's epochs that all members have behind them.
fn trained(training: &Training, epochs: u32) -> f64 {
    let share = |fit: &FitState| match fit.stop {
        Some(_) => 1.0,
        None => f64::from(fit.epoch) / f64::from(epochs),
    };
    training.members.iter().map(share).sum::<f64>() / training.members.len() as f64
}

/// A finished round in one line.
pub fn round_line(r: &RoundReport, rounds: u32) -> String {
    let score = |name: &str, value: Option<String>| {
        value.map_or(String::new(), |value| format!("  {name} {value}"))
    };
    let number = |value: Option<f64>| value.map(|value| format!("{value:.3}"));
    let failed = if r.failures > 0 { format!(", {} failed", r.failures) } else { String::new() };
    let loss = r.validation_loss.map_or("none".to_owned(), |loss| format!("{loss:.3}"));
    let apart = r.disagreement.map_or(String::new(), |apart| format!(", members {apart:.3} apart"));
    format!(
        "round {:>2}/{rounds}: {} simulations{failed}, {} epochs ({}), loss {loss}{apart}, {:.1} s{}{}{}",
        r.round,
        r.simulations,
        r.epochs,
        r.stop_reason.name(),
        r.seconds_simulate + r.seconds_train,
        score("C2ST", r.scores.c2st_words(3)),
        score("LMD", number(r.scores.lmd)),
        score("NLOG", number(r.scores.nlog)),
    )
}
