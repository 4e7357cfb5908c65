//! The groups of settings.

use super::Meaning;
use crate::density::flow::FlowConfig;
use crate::density::score::{Output, ScoreConfig};
use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};

/// The shape of the flow, whatever the problem's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Architecture {
    /// Coupling layers, each followed by a linear layer.
    pub layers: usize,
    /// Residual blocks of a conditioner.
    pub blocks: usize,
    /// Units of a conditioner.
    pub units: usize,
    /// Bins of a spline.
    pub bins: usize,
    /// The splines act on \[−bound, bound\].
    pub bound: f64,
}

impl Architecture {
    /// The flow for θ and x of these dimensions.
    pub fn flow(&self, theta_dim: usize, x_dim: usize) -> FlowConfig {
        let Self { layers, blocks, units, bins, bound } = *self;
        FlowConfig { theta_dim, x_dim, layers, blocks, units, bins, bound }
    }
}

/// The shape of the score network, whatever the problem's dimensions.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreArchitecture {
    /// Units of a hidden layer.
    pub units: usize,
    /// Whether the network gives the score, or an energy whose gradient it is.
    pub output: Output,
    /// Whether it gives the score times the noise's standard deviation, which is of size 1 at any time.
    pub scaled: bool,
    /// Steps of the ODE that samples and densities take.
    pub ode_steps: usize,
    /// Noise draws of a row in validation.
    pub repeats: usize,
}

/// A mixture of models that are trained apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EnsembleConfig {
    /// Members: models on the same simulations, each with first weights, order and held-out rows of its own.
    pub members: usize,
}

impl EnsembleConfig {
    /// Members at most.
    pub const MOST: usize = 64;
}

impl Default for EnsembleConfig {
    fn default() -> Self {
        Self { members: 1 }
    }
}

/// How the region is found that truncated proposals keep to.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Truncation {
    /// Share of the posterior so far that lies outside: where its density is lowest.
    pub share: f64,
    /// Draws of it that tell.
    pub draws: usize,
}

/// What is made of simulations that fail.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FailureConfig {
    /// What a failure means.
    pub meaning: Meaning,
    /// Failures one after another at which a run stops; 0 for never.
    pub in_a_row: usize,
}

impl Default for FailureConfig {
    fn default() -> Self {
        Self { meaning: Meaning::Missing, in_a_row: 50 }
    }
}

impl FailureConfig {
    /// What a run did that began before there were these settings, and has to go on doing.
    pub(super) fn before() -> Self {
        Self { meaning: Meaning::Outcome, in_a_row: 0 }
    }
}

impl Truncation {
    pub(super) fn check(&self) -> Result<()> {
        let Self { share, draws } = *self;
        if !(share > 0.0 && share <= 0.1) {
            return Err(Error::setting("truncation.share", share, "above 0 and up to 0.1"));
        }
        // With fewer than 1 / share draws the lowest of them is the edge: fine by a factor of ten, then no longer.
        let enough = (0.1 / share).ceil() as usize;
        match (enough.max(100)..=100_000_000).contains(&draws) {
            true => Ok(()),
            false => {
                let why = format!(
                    "between {} and 100000000, to find a share of {share}",
                    enough.max(100)
                );
                Err(Error::setting("truncation.draws", draws, why))
            }
        }
    }
}

impl ScoreArchitecture {
    /// The score network for θ and x of these dimensions.
    pub fn score(&self, theta_dim: usize, x_dim: usize) -> ScoreConfig {
        let Self { units, output, scaled, ode_steps, .. } = *self;
        ScoreConfig { theta_dim, x_dim, units, output, scaled, ode_steps }
    }
}
