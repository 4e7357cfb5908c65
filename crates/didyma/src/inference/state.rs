//! The state of an inference, its rounds, and what it comes to.

use crate::density::coordinates::Coordinates;
use crate::error::Result;
use crate::inference::failures::ValidityReport;
use crate::inference::posterior::Posterior;
use crate::math::Estimate;
use crate::problem::Oddity;
use crate::training::levels::LevelChoice;
use crate::training::{EngineState, EpochReport, FitState, Inner, StopReason};
use serde::{Deserialize, Serialize};

/// Knows something of the truth.
pub trait Judge {
    /// How good the posterior of a round is; more exactly of the last one, which is what a run comes to.
    fn score(&self, posterior: &Posterior, round: u32, last: bool) -> Result<Scores>;
}

/// What was measured of a posterior, where it could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Accuracy of a classifier that tells the samples from the reference, mean over classifier seeds: ½ is best.
    pub c2st: Option<f64>,
    /// Its standard error over classifier seeds; none in older runs, which had a single seed.
    #[serde(default)]
    pub c2st_error: Option<f64>,
    /// Squared maximum mean discrepancy from the reference.
    pub mmd2: Option<f64>,
    /// Logarithm of the median distance of simulations from the observation.
    pub lmd: Option<f64>,
    /// −log of the posterior's density at the true parameters.
    pub nlog: Option<f64>,
}

impl Scores {
    /// The C2ST in words, as `0.521 ± 0.004`; without its error if that is not known.
    pub fn c2st_words(&self, digits: usize) -> Option<String> {
        let mean = self.c2st?;
        Some(match self.c2st_error {
            Some(error) => format!("{:.digits$}", Estimate { mean, error }),
            None => format!("{mean:.digits$}"),
        })
    }
}

/// One simulation of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRow {
    /// The round, from 1.
    pub round: u32,
    /// Its number in the round.
    pub index: u32,
    /// θ.
    pub theta: Vec<f64>,
    /// x, or why there is none.
    pub x: std::result::Result<Vec<f64>, String>,
}

/// What a round gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 1.
    pub round: u32,
    /// Simulations made.
    pub simulations: usize,
    /// Those that failed.
    pub failures: usize,
    /// Epochs of training, of the member that took most.
    pub epochs: u32,
    /// Steps of training of all members.
    pub steps: u64,
    /// Why training stopped; diverged if it did of all members.
    pub stop_reason: StopReason,
    /// Wall-clock time of the simulations.
    pub seconds_simulate: f64,
    /// Wall-clock time of training.
    pub seconds_train: f64,
    /// Wall-clock time of comparing with the truth, and members with each other.
    pub seconds_score: f64,
    /// Training loss of the epoch whose weights were kept, the mean over members; none if training diverged at once.
    pub train_loss: Option<f64>,
    /// Its validation loss.
    pub validation_loss: Option<f64>,
    /// What is known of the posterior's quality.
    #[serde(flatten)]
    pub scores: Scores,
    /// Share of q(· | x_o) outside the prior's support.
    pub outside_prior: f64,
    /// Pairs (θ, x) that went through training.
    pub pairs: u64,
    /// The members of an ensemble; none where one flow is all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub members: Vec<MemberReport>,
    /// How far they are apart at x_o, from 0 (they are one law) to 1 (no two of them overlap).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disagreement: Option<f64>,
    /// The law of the inner samples, where the settings ask for another one than the pool's or the batch's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inner: Option<Inner>,
    /// The levels that were chosen for the round, where the settings do not give them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub levels: Option<LevelChoice>,
    /// True if somebody else drew parameters of this round or of one between it and the first: their proposal has no density
    /// that is known.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub drawn_elsewhere: bool,
    /// Whether the coordinates were renewed.
    pub recentred: bool,
    /// Where its training ended, as `CPU (avx512 kernels)`; empty if it was not noted.
    #[serde(default)]
    pub device: String,
    /// What is known of failures; nothing if there were none in any round so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<ValidityReport>,
    /// Summaries whose simulations are of two kinds, as values and sentinels are.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub oddities: Vec<Oddity>,
}

/// One member's part of a round. A member that diverged is left out of the posterior unless all did.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MemberReport {
    /// Epochs of training.
    pub epochs: u32,
    /// Steps of training.
    pub steps: u64,
    /// Why training stopped.
    pub stop_reason: StopReason,
    /// Training loss of the epoch whose weights were kept.
    pub train_loss: Option<f64>,
    /// Its validation loss.
    pub validation_loss: Option<f64>,
}

impl MemberReport {
    /// Of a training that stopped, with its best weights kept or the last.
    pub(super) fn new(fit: &FitState, restore_best: bool) -> Option<Self> {
        let kept = fit.best.as_ref().filter(|_| restore_best);
        Some(Self {
            epochs: fit.epoch,
            steps: fit.steps,
            stop_reason: fit.stop?,
            train_loss: kept.map_or(fit.train_loss, |best| Some(best.train_loss)),
            validation_loss: kept.map_or(fit.validation_loss, |best| Some(best.loss)),
        })
    }

    /// That of all members together: the most epochs, all steps, and the mean losses of those that are part of the
    /// posterior.
    pub(super) fn together(reports: &[Self]) -> Option<Self> {
        let kept = sound(reports, |report| Some(report.stop_reason));
        let kept: Vec<&Self> = kept.into_iter().flatten().collect();
        let mean = |loss: fn(&Self) -> Option<f64>| {
            let losses = kept.iter().map(|report| loss(report)).collect::<Option<Vec<f64>>>()?;
            Some(losses.iter().sum::<f64>() / losses.len() as f64)
        };
        Some(Self {
            epochs: reports.iter().map(|report| report.epochs).max()?,
            steps: reports.iter().map(|report| report.steps).sum(),
            stop_reason: kept.iter().max_by_key(|report| report.epochs)?.stop_reason,
            train_loss: mean(|report| report.train_loss),
            validation_loss: mean(|report| report.validation_loss),
        })
    }
}

/// An epoch of training, as a run notes it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EpochRecord {
    /// The round.
    pub round: u32,
    /// The member of an ensemble, from 0.
    #[serde(default, skip_serializing_if = "is_first")]
    pub member: u32,
    /// The epoch, from 1.
    pub epoch: u32,
    /// Its mean training loss; none if it was not finite.
    pub train_loss: Option<f64>,
    /// The validation loss after it.
    pub validation_loss: Option<f64>,
    /// Seconds of training of the round so far, where they were noted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_first(member: &u32) -> bool {
    *member == 0
}

impl EpochRecord {
    /// The record of a report.
    pub fn new(report: &EpochReport, seconds: Option<f64>) -> Self {
        let finite = |loss: f64| loss.is_finite().then_some(loss);
        Self {
            round: report.round,
            member: report.member,
            epoch: report.epoch,
            train_loss: finite(report.train_loss),
            validation_loss: finite(report.validation_loss),
            seconds,
        }
    }
}

/// The state of an inference: nothing yet, or what an interrupted one left.
#[derive(Clone, Debug, Default)]
pub struct State {
    /// Simulations, in any order.
    pub rows: Vec<SimulatedRow>,
    /// Finished rounds, in order.
    pub reports: Vec<RoundReport>,
    /// The latest state of training.
    pub training: Option<Training>,
    /// The posteriors of the finished rounds, from the first on, where inner samples need the density of their proposals.
    pub posteriors: Vec<Posterior>,
    /// True if somebody else drew parameters of a round after the first, of the one under way too.
    pub drawn_elsewhere: bool,
}

/// Training of a round, and the coordinates it happens in.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The round.
    pub round: u32,
    /// The coordinates.
    pub coordinates: Coordinates,
    /// Whether they are new in this round.
    pub recentred: bool,
    /// The levels that were chosen for it, where the settings do not give them.
    pub levels: Option<LevelChoice>,
    /// The state of training of each member.
    pub members: Vec<FitState>,
    /// Wall-clock time of all of them together.
    pub seconds: f64,
}

impl Training {
    /// True if all members are trained.
    pub fn is_done(&self) -> bool {
        self.members.iter().all(|fit| fit.stop.is_some())
    }

    /// Parameters and optimiser that a member begins the next round with. Where it diverged and others did not, one of theirs,
    /// although they saw its held-out rows: new weights would need many rounds to be as good.
    pub(super) fn member(&self, member: usize) -> EngineState {
        if let Some(own) = sound(&self.members, |fit| fit.stop)[member] {
            return own.engine.clone();
        }
        let others = self.sound();
        EngineState::fresh(others[member % others.len()].clone())
    }

    /// The parameters of the members that are sound; of all, if none is.
    pub(super) fn sound(&self) -> Vec<&Vec<f32>> {
        let kept = sound(&self.members, |fit| fit.stop).into_iter().flatten();
        kept.map(|fit| &fit.engine.params).collect()
    }
}

/// The members of an ensemble that count, each at its place: those whose training did not diverge; all, if all did.
pub(crate) fn sound<T>(members: &[T], stop: impl Fn(&T) -> Option<StopReason>) -> Vec<Option<&T>> {
    let diverged = |member: &T| stop(member) == Some(StopReason::Diverged);
    let all = members.iter().all(diverged);
    members.iter().map(|member| (all || !diverged(member)).then_some(member)).collect()
}

/// The outcome of an inference.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The posterior of the last finished round; none if that was finished before the `State` was saved, and
    /// the run stopped while the next one was trained.
    pub posterior: Option<Posterior>,
    /// The finished rounds.
    pub reports: Vec<RoundReport>,
    /// True if all rounds are finished; false if an observer stopped the run.
    pub finished: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The reason is that of the member with the most epochs among those that count.
    #[test]
    fn a_round_stops_where_its_longest_member_does() {
        let member = |epochs, stop_reason| MemberReport {
            epochs,
            steps: 1,
            stop_reason,
            train_loss: Some(1.0),
            validation_loss: None,
        };
        let of = [(9, StopReason::Patience), (20, StopReason::Budget), (5, StopReason::Diverged)];
        let together = MemberReport::together(&of.map(|(epochs, stop)| member(epochs, stop)));
        let together = together.expect("three members");
        assert_eq!((together.epochs, together.stop_reason), (20, StopReason::Budget));
    }

    /// Rounds of runs that were scored by a single classifier seed are still read, and say no error.
    #[test]
    fn older_scores_have_no_error() {
        let stored = r#"{"c2st":0.5212,"mmd2":0.001,"lmd":null,"nlog":-4.0}"#;
        let older: Scores = serde_json::from_str(stored).unwrap();
        assert_eq!((older.c2st, older.c2st_error, older.lmd), (Some(0.5212), None, None));
        assert_eq!(older.c2st_words(3).as_deref(), Some("0.521"));
        let newer = Scores { c2st_error: Some(0.0042), ..older };
        assert_eq!(newer.c2st_words(3).as_deref(), Some("0.521 ± 0.004"));
        assert_eq!(Scores::default().c2st_words(3), None);
        let again = serde_json::from_str(&serde_json::to_string(&newer).unwrap());
        assert_eq!(again.ok(), Some(newer));
    }
}
