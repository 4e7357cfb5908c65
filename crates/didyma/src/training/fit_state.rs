//! The rows that a round is trained on, its state after an epoch, and the reason why it stopped.

use super::engine::EngineState;
use crate::named::{Named, serde_by_name};

/// Why the training of a round stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopReason {
    /// No better validation loss for as many epochs as the patience allows, or for a whole cycle of the rate; or a
    /// further cycle diverged.
    Patience,
    /// All steps or epochs that were allowed were made.
    Budget,
    /// The loss or its gradient was no longer finite; the weights are those before.
    Diverged,
}

impl Named for StopReason {
    const ALL: &'static [(&'static str, Self)] =
        &[("patience", Self::Patience), ("budget", Self::Budget), ("diverged", Self::Diverged)];
}
serde_by_name!(StopReason);

/// What an epoch gave.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct EpochReport {
    /// The round.
    pub round: u32,
    /// The member of an ensemble, from 0.
    pub member: u32,
    /// The epoch, from 1.
    pub epoch: u32,
    /// Epochs that the round may take.
    pub epochs: u32,
    /// Mean loss of its steps.
    pub train_loss: f64,
    /// Validation loss after it.
    pub validation_loss: f64,
    /// Pairs (θ, x) per second of training, validation left out.
    pub pairs_per_second: f64,
}

/// The weights of the best epoch.
#[derive(Clone, Debug, PartialEq)]
pub struct Best {
    /// The epoch.
    pub epoch: u32,
    /// Its validation loss.
    pub loss: f64,
    /// Its mean training loss.
    pub train_loss: f64,
    /// The parameters after it.
    pub params: Vec<f32>,
}

/// All that training is carried by from one epoch to the next. Random numbers are addressed by round and epoch, and
/// the split by row numbers, so that a fit which is given this state goes on with the same bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FitState {
    /// Epochs done in this round.
    pub epoch: u32,
    /// Steps done in this round.
    pub steps: u64,
    /// Parameters and optimiser.
    pub engine: EngineState,
    /// The best epoch so far.
    pub best: Option<Best>,
    /// Mean training loss of the last epoch.
    pub train_loss: Option<f64>,
    /// Validation loss of the last epoch.
    pub validation_loss: Option<f64>,
    /// Pairs (θ, x) that went through the steps.
    pub pairs: u64,
    /// Wall-clock time.
    pub seconds: f64,
    /// Why it stopped, if it did.
    pub stop: Option<StopReason>,
}

impl FitState {
    /// The beginning of a round.
    pub fn new(engine: EngineState) -> Self {
        Self { engine, ..Self::default() }
    }
}

/// What a round is trained on.
#[derive(Clone, Debug, PartialEq)]
pub struct TrainRows {
    /// Rows to train on.
    pub training: Vec<u32>,
    /// Rows to validate on.
    pub held_out: Vec<u32>,
    /// Rows that are inner samples only: failed simulations, whose parameters follow the proposal like any other's.
    pub inner_only: Vec<u32>,
    /// What rows count for in maximum likelihood, by their numbers; empty if all count alike. They are brought to a mean
    /// of 1 over the rows of either side; other losses have no use for them.
    pub weights: Vec<f64>,
}

impl TrainRows {
    /// Weights whose mean over the training rows is 1, and so over those held out.
    pub(super) fn normalise_weights(&mut self) {
        if self.weights.is_empty() {
            return;
        }
        for side in [&self.training, &self.held_out] {
            let sum: f64 = side.iter().map(|&row| self.weights[row as usize]).sum();
            let mean = sum / side.len() as f64;
            side.iter().for_each(|&row| self.weights[row as usize] /= mean);
        }
    }
}
