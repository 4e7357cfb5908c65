//! The settings of training.

use super::adam::{AdamConfig, Decay};
use crate::named::{Named, serde_by_name};
use serde::{Deserialize, Serialize};

/// How a round is trained.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrainConfig {
    /// Outer samples of a step.
    pub batch: usize,
    /// Passes over the rows in an epoch, between two validations.
    pub sweeps: u32,
    /// Learning rate, at the start of a round.
    pub rate: f64,
    /// How it goes on.
    pub schedule: Schedule,
    /// Steps of a cycle of the last round, rounded up to whole epochs; none for no limit but `epochs`.
    pub steps: Option<u64>,
    /// Cycles of the last round, at most: the rate falls once over each. Another begins where the last one lowered the
    /// validation loss.
    #[serde(default = "once")]
    pub cycles: u32,
    /// Share of `steps` that rounds before the last take, in one cycle: they are there for the next round's proposals.
    #[serde(default = "one")]
    pub early: f64,
    /// Power by which the steps of a round grow with all training rows n so far: (n / 10,000)^growth, from 10,000 on.
    #[serde(default)]
    pub growth: f64,
    /// Epochs of a cycle, at most.
    pub epochs: u32,
    /// Training of a round stops after this many epochs without a better validation loss.
    pub patience: u32,
    /// Share of rows held out.
    pub validation_share: f64,
    /// Which rows are held out.
    pub split: Split,
    /// How the validation loss is estimated.
    pub validation: Validation,
    /// Whether a round ends with the weights of its best epoch, or with the last.
    pub restore_best: bool,
    /// What later rounds start from.
    pub start: Start,
    /// Where inner samples come from.
    pub inner: Inner,
    /// Inner samples that are made for each row at the start of a round, where they come from the mixture or its nets.
    #[serde(default = "stock")]
    pub stock: usize,
    /// Who chooses the levels of the estimator.
    #[serde(default)]
    pub levels: LevelSource,
    /// Share of an outer sample's weight below which pairs are trained on at random, without bias; 0 for all pairs.
    #[serde(default)]
    pub thinning: f64,
    /// Scale of the slab of the noise on training summaries, in units of their scales; 0 for no noise.
    #[serde(default)]
    pub noise: f64,
    /// Weight decay.
    pub decay: f64,
    /// Whether the decay is added to the gradient (Adam), or apart from it (AdamW).
    pub decay_coupled: bool,
    /// The gradient's norm is cut down to this; none for never.
    pub clip: Option<f64>,
}

fn one() -> f64 {
    1.0
}

fn stock() -> usize {
    TrainConfig::STOCK
}

fn once() -> u32 {
    1
}

impl TrainConfig {
    /// Inner samples that are made for each row, unless the settings say how many.
    pub const STOCK: usize = 64;

    /// The settings of a round before the last.
    pub fn of_early_round(self) -> Self {
        let steps = self.steps.map(|steps| (steps as f64 * self.early).ceil() as u64);
        Self { steps, cycles: 1, ..self }
    }

    /// The optimiser.
    pub fn adam(&self) -> AdamConfig {
        let decay = if self.decay_coupled {
            Decay::Coupled(self.decay)
        } else {
            Decay::Decoupled(self.decay)
        };
        AdamConfig { decay, clip: self.clip.unwrap_or(f64::INFINITY), ..AdamConfig::default() }
    }
}

/// Where the inner samples of a step come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// All training rows.
    Pool,
    /// The rows of the batch.
    Batch,
    /// All training rows, those whose summaries are close to the outer ones more often.
    Near,
    /// Half the proposal, half the posterior of the round before at the outer summaries: where q is.
    Mixture,
    /// The mixture by a digitally shifted net of Sobol's sequence for each row, which is more even than independent samples.
    Sobol,
    /// All training rows, and an estimate of what they should sum up to.
    Normalised,
}

impl Inner {
    /// True if inner samples are drawn from something else than rows with equal chances.
    pub fn is_special(self) -> bool {
        !matches!(self, Self::Pool | Self::Batch)
    }

    /// True if the outer θ may be one of the inner samples: its weight is known, and samples are independent.
    pub fn allows_outer(self) -> bool {
        !matches!(self, Self::Near | Self::Sobol | Self::Normalised)
    }

    /// True if the law needs the posteriors of all rounds before.
    pub fn needs_posteriors(self) -> bool {
        self.is_made() || self == Self::Normalised
    }

    /// True if samples are made for every row at the start of a round.
    pub fn is_made(self) -> bool {
        matches!(self, Self::Mixture | Self::Sobol)
    }
}

/// Where the levels of an estimator come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LevelSource {
    /// The settings of the estimator.
    #[default]
    Given,
    /// Moments that are measured on the flow of the round before, with the inner samples of the round.
    Auto,
}

/// Which rows are held out for validation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Split {
    /// The same share of every round, for the whole run: no row is ever on both sides.
    Fixed,
    /// A share of the newest round, anew each round: the paper as printed.
    Newest,
    /// As many rows, anew each round from all rounds: the authors' code.
    Pooled,
}

/// How the validation loss is estimated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Validation {
    /// By the atomic loss with atoms fixed for the round: the same random numbers for every epoch.
    Fixed,
    /// By the training estimator with fresh levels and inner samples each time: the paper's way.
    Random,
}

/// How the learning rate goes over the epochs of a round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Schedule {
    /// It stays.
    Constant,
    /// It falls to 0 along half a cosine over the epochs of the round.
    Cosine,
}

/// What later rounds start from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// The weights and the optimiser of the round before.
    Carried,
    /// The weights of the round before, with a new optimiser; a change of x's scale is folded into them.
    Warm,
    /// New weights.
    Fresh,
}

impl Named for Inner {
    const ALL: &'static [(&'static str, Self)] = &[
        ("pool", Self::Pool),
        ("batch", Self::Batch),
        ("near", Self::Near),
        ("mixture", Self::Mixture),
        ("sobol", Self::Sobol),
        ("normalised", Self::Normalised),
    ];
}
impl Named for LevelSource {
    const ALL: &'static [(&'static str, Self)] = &[("given", Self::Given), ("auto", Self::Auto)];
}
impl Named for Split {
    const ALL: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("newest", Self::Newest), ("pooled", Self::Pooled)];
}
impl Named for Validation {
    const ALL: &'static [(&'static str, Self)] =
        &[("fixed", Self::Fixed), ("random", Self::Random)];
}
impl Named for Schedule {
    const ALL: &'static [(&'static str, Self)] =
        &[("constant", Self::Constant), ("cosine", Self::Cosine)];
}
impl Named for Start {
    const ALL: &'static [(&'static str, Self)] =
        &[("carried", Self::Carried), ("warm", Self::Warm), ("fresh", Self::Fresh)];
}
serde_by_name!(Inner, LevelSource, Split, Validation, Schedule, Start);
