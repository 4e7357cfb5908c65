//! The score network: its shape, its loss and gradient, its samples and densities, and its engine.

#![allow(clippy::unwrap_used)]

mod density;
mod engine;
mod network;

use didyma::score::{Output, ScoreConfig, ScoreModel};

/// A small network.
pub fn model(theta_dim: usize, x_dim: usize, output: Output, scaled: bool) -> ScoreModel {
    let config = ScoreConfig { units: 8, output, scaled, ..ScoreConfig::new(theta_dim, x_dim) };
    ScoreModel::new(config).unwrap()
}
