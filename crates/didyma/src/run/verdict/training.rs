//! Checks of how training went: a loss that still falls, a gap to held-out rows, more summaries than simulations tell of.

use super::{Check, Outcome};
use crate::inference::config::Validation;
use crate::inference::{EpochRecord, RoundReport};
use crate::named::Named;
use crate::run::Findings;
use crate::training::StopReason;
use crate::training::estimator::Method;
use std::collections::BTreeMap;

/// Share of a member's epochs after which its validation loss should have fallen as far as it does.
const MOST_EPOCHS: f64 = 0.75;
/// Nats by which it still falls after them that are worth a word: one twentieth of a bit a parameter would be.
const FALLING: f64 = 0.1;
/// Nats between training and validation loss that are worth a word.
const GAP: f64 = 1.5;
/// Epochs of a member from which its course can be told.
const LEAST_EPOCHS: usize = 8;
/// The remedy of too short a training.
const LONGER: &str = "train longer (train.steps, train.epochs)";
/// Simulations for each summary, at least.
const EACH: usize = 5;

/// The checks of the last round's training, by its report alone: epochs are events, of which a loss of power may cost the last.
pub(super) fn checks(findings: &Findings) -> Vec<Check> {
    let Some(last) = findings.results().rounds.last() else { return Vec::new() };
    let mut checks: Vec<Check> =
        [diverged(last), short(last), gap(findings, last)].into_iter().flatten().collect();
    if checks.is_empty() {
        let words =
            format!("it ended after {} epochs, by its {}", last.epochs, last.stop_reason.name());
        checks.push(Check::good("training", words));
    }
    checks.extend(width(findings));
    checks
}

/// A loss that still fell at the end of the last round, where its epochs are known: for pages.
pub(crate) fn still_falling(epochs: &[EpochRecord], round: u32) -> Option<Check> {
    let epochs: Vec<&EpochRecord> = epochs.iter().filter(|epoch| epoch.round == round).collect();
    let fell = falling(&epochs).filter(|fell| *fell > FALLING)?;
    let words =
        format!("the validation loss still fell, by {fell:.2} in the last quarter of its epochs");
    Some(Check::new("loss", Outcome::Doubtful, words, LONGER))
}

fn diverged(last: &RoundReport) -> Option<Check> {
    let words = "training of the last round diverged, and weights from before that were kept";
    (last.stop_reason == StopReason::Diverged)
        .then(|| Check::new("training", Outcome::Bad, words, "lower train.rate"))
}

/// Training that its budget ended before it could tell anything of its course.
fn short(last: &RoundReport) -> Option<Check> {
    let budget = last.stop_reason == StopReason::Budget;
    let epochs = if last.epochs == 1 { "epoch" } else { "epochs" };
    let words = format!("it ended after {} {epochs}, by its budget", last.epochs);
    (budget && (last.epochs as usize) < LEAST_EPOCHS)
        .then(|| Check::new("training", Outcome::Doubtful, words, LONGER))
}

/// The gap between the losses, where both are the same estimator: else their difference has an offset without any overfit
/// (docs/choices.md).
fn gap(findings: &Findings, last: &RoundReport) -> Option<Check> {
    let config = &findings.results().config;
    let alike = config.estimator.method == Method::Likelihood
        || config.train.validation == Validation::Random
        || last.round == 1;
    let gap = last.validation_loss? - last.train_loss?;
    (alike && gap > GAP).then(|| {
        let words =
            format!("held-out simulations are fitted worse than the others, by {gap:.1} nats");
        let next = "simulate more, or give fewer summaries";
        Check::new("training", Outcome::Doubtful, words, next)
    })
}

/// By how much the validation loss fell in the last quarter of the epochs, the mean over members; none if nothing is known.
fn falling(epochs: &[&EpochRecord]) -> Option<f64> {
    let mut members: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for epoch in epochs {
        members.entry(epoch.member).or_default().extend(epoch.validation_loss);
    }
    let least = |losses: &[f64]| losses.iter().copied().fold(f64::INFINITY, f64::min);
    let fell = |losses: &Vec<f64>| {
        let most = ((losses.len() as f64 * MOST_EPOCHS) as usize).max(1);
        (losses.len() >= LEAST_EPOCHS).then(|| least(&losses[..most]) - least(losses))
    };
    let fell: Vec<f64> = members.values().filter_map(fell).collect();
    (!fell.is_empty()).then(|| fell.iter().sum::<f64>() / fell.len() as f64)
}

/// More summaries than the simulations can tell of.
fn width(findings: &Findings) -> Option<Check> {
    let summaries = findings.posterior()?.observation().len();
    let rounds = &findings.results().rounds;
    let simulations: usize = rounds.iter().map(|round| round.simulations - round.failures).sum();
    (summaries > 10 && summaries * EACH > simulations).then(|| {
        let words = format!("{summaries} summaries are many for {simulations} simulations");
        Check::new("summaries", Outcome::Doubtful, words, "give fewer summaries, or simulate more")
    })
}
