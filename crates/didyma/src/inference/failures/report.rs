//! What a round tells of its failures.

use crate::named::{Named, serde_by_name};
use serde::{Deserialize, Serialize};

/// How a round made up for simulations that are missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Correction {
    /// Not at all: failures are outcomes, or do not depend on θ.
    None,
    /// By weights 1 / s(θ) of the rows.
    Weights,
    /// By inner samples that are selected by success as the outer ones are.
    InnerSamples,
}

impl Named for Correction {
    const ALL: &'static [(&'static str, Self)] =
        &[("none", Self::None), ("weights", Self::Weights), ("inner samples", Self::InnerSamples)];
}
serde_by_name!(Correction);

/// What is known of failures after a round.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidityReport {
    /// Share of the simulations of all rounds so far that failed.
    pub failed: f64,
    /// Nats by which parameters foretell success better than the rate of all does; none where there were too few of
    /// either kind to learn from.
    pub gain: Option<f64>,
    /// The gain in its standard errors.
    pub z: Option<f64>,
    /// Whether failures depend on θ.
    pub depends: bool,
    /// What was done about it.
    pub corrected: Correction,
    /// What the weights are worth, as a share of as many equal ones.
    pub effective: Option<f64>,
    /// Share of the posterior, a little widened, where simulations nearly never succeed and nothing can be corrected;
    /// none where failures do not depend on θ.
    pub beyond: Option<f64>,
}
