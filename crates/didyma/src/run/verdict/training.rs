//! Checks of how training went: a loss that still falls, a gap to held-out rows, more summaries than simulations tell of.

use super::{Check, Outcome};
use crate::error::Result;
use crate::inference::EpochRecord;
use crate::run::Findings;
use crate::training::StopReason;
use std::collections::BTreeMap;

/// Share of a member's epochs after which its validation loss should have fallen as far as it does.
const MOST_EPOCHS: f64 = 0.75;
/// Nats by which it still falls after them that are worth a word: one twentieth of a bit a parameter would be.
const FALLING: f64 = 0.1;
/// Nats between training and validation loss that are worth a word, and those that are bad.
const GAP: f64 = 1.5;
const WIDE_GAP: f64 = 5.0;
/// Simulations for each summary, at least.
const EACH: usize = 5;

/// The checks of the last round's training.
pub(super) fn checks(findings: &Findings) -> Result<Vec<Check>> {
    let summary = findings.results();
    let Some(last) = summary.rounds.last() else { return Ok(Vec::new()) };
    let mut checks = Vec::new();
    if last.stop_reason == StopReason::Diverged {
        let words = "training of the last round diverged, and weights from before that were kept";
        checks.push(Check::new("training", Outcome::Bad, words, "lower train.rate"));
    }
    let epochs = findings.run().epochs()?;
    let last_epochs: Vec<&EpochRecord> =
        epochs.iter().filter(|epoch| epoch.round == last.round).collect();
    let falls = falling(&last_epochs);
    if let Some(fell) = falls.filter(|fell| *fell > FALLING) {
        let words = format!(
            "the validation loss still fell, by {fell:.2} in the last quarter of its epochs"
        );
        checks.push(Check::new(
            "training",
            Outcome::Doubtful,
            words,
            "train longer (train.steps, train.epochs)",
        ));
    }
    if let (Some(train), Some(validation)) = (last.train_loss, last.validation_loss) {
        let gap = validation - train;
        let outcome = match gap {
            gap if gap > WIDE_GAP => Outcome::Bad,
            gap if gap > GAP => Outcome::Doubtful,
            _ => Outcome::Good,
        };
        if outcome != Outcome::Good {
            let words =
                format!("held-out simulations are fitted worse than the others, by {gap:.1} nats");
            checks.push(Check::new(
                "training",
                outcome,
                words,
                "simulate more, or give fewer summaries",
            ));
        }
    }
    if checks.is_empty() {
        checks.push(match (falls, last.validation_loss) {
            (Some(_), Some(_)) => Check::good(
                "training",
                "the validation loss no longer falls, and is near the training loss",
            ),
            _ => Check::new(
                "training",
                Outcome::NotChecked,
                "no epochs of the last round are known",
                "",
            ),
        });
    }
    checks.extend(width(findings));
    Ok(checks)
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
        (losses.len() >= 8).then(|| least(&losses[..most]) - least(losses))
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
