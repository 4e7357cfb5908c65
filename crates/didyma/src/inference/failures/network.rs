//! Training of one of the networks that tell which simulations succeed.

use crate::network::classifier::{Classifier, Labelled};
use crate::rng::Stream;

/// Hidden units of a layer.
pub(super) const UNITS: usize = 32;
/// Adam's learning rate.
const RATE: f64 = 2e-3;
/// Steps between two looks at the watched rows, at least; they are whole epochs.
const LOOK: u64 = 10;
/// Looks without a lower loss after which training ends.
const PATIENCE: usize = 20;
/// Steps, at most.
const MOST_STEPS: u64 = 4000;

/// Rows by what they are for.
pub(super) struct Parts {
    /// Rows to train on.
    pub training: Vec<usize>,
    /// Rows whose loss says when to stop.
    pub watched: Vec<usize>,
    /// Rows that judge the result.
    pub judging: Vec<usize>,
}

/// What training gave.
pub(super) struct Trained {
    pub params: Vec<f32>,
    /// Of every judging row, by how much its −log probability is lower than that of the constant rate.
    pub gains: Vec<f64>,
}

/// Trains a network that starts as the constant rate of success, and stays that unless it does better on the watched
/// rows: where there is nothing to learn, the gains are 0.
pub(super) fn train(data: Labelled, mut parts: Parts, rng: &mut Stream) -> Trained {
    let rate = rate(data, parts.training.iter().chain(&parts.watched).copied());
    let mut network = Classifier::<f32>::shaped(data, parts.training.len(), UNITS, RATE);
    start(&mut network, rate, rng);
    let constant = network.log_losses(&parts.judging);
    let mut best = (mean(&network.log_losses(&parts.watched)), network.mlp.params.to_vec());
    let mut idle = 0;
    while network.t < MOST_STEPS && idle < PATIENCE {
        let next_look = network.t + LOOK;
        while network.t < next_look {
            network.epoch(&mut parts.training, rng);
        }
        let loss = mean(&network.log_losses(&parts.watched));
        idle += 1;
        if loss < best.0 {
            idle = 0;
            best.0 = loss;
            best.1.copy_from_slice(&network.mlp.params);
        }
    }
    network.mlp.params.copy_from_slice(&best.1);
    let losses = network.log_losses(&parts.judging);
    let gains = constant.iter().zip(losses).map(|(constant, loss)| constant - loss).collect();
    Trained { params: best.1, gains }
}

/// Random weights, but for the last layer: it ignores the units before it and gives the constant rate.
fn start(network: &mut Classifier<f32>, rate: f64, rng: &mut Stream) {
    network.draw_weights(rng);
    let last = network.mlp.layers[2];
    network.mlp.params[last.weights()].fill(0.0);
    network.mlp.params[last.bias()].fill((rate / (1.0 - rate)).ln() as f32);
}

/// Share of successes; half a row of each kind keeps it off 0 and 1.
fn rate(data: Labelled, rows: impl Iterator<Item = usize>) -> f64 {
    let (mut successes, mut all) = (0.5, 1.0);
    for row in rows {
        successes += f64::from(u8::from(data.label(row)));
        all += 1.0;
    }
    successes / all
}

fn mean(numbers: &[f64]) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}
