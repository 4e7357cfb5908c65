//! The choices of a run that have names.

use crate::named::{Named, serde_by_name};
use crate::training::estimator::Method;

/// A way to infer a posterior: what is learnt, by which loss, and where parameters come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// Later rounds propose from the posterior so far, and this loss corrects for it. The default is of this kind.
    Corrected(Method),
    /// Truncated sequential neural posterior estimation: later rounds propose from the prior where the posterior so far
    /// is not negligible, which needs no correction.
    Tsnpe,
    /// Truncated sequential neural score estimation: as TSNPE, with a score network instead of a flow.
    Snse,
    /// Neural posterior estimation: all parameters come from the prior.
    Npe,
}

/// TGRR: ahead of the others on most tasks of the public benchmark (`docs/choices.md`).
impl Default for Algorithm {
    fn default() -> Self {
        Self::Corrected(Method::Tgrr)
    }
}

/// Maximum likelihood corrects for nothing, and has to stay with the prior.
impl From<Method> for Algorithm {
    fn from(method: Method) -> Self {
        if method == Method::Likelihood { Self::Npe } else { Self::Corrected(method) }
    }
}

impl Algorithm {
    /// The loss of rounds 2 and later.
    pub fn method(self) -> Method {
        match self {
            Self::Corrected(method) => method,
            Self::Tsnpe | Self::Snse | Self::Npe => Method::Likelihood,
        }
    }
}

/// What q(θ | x) is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DensityKind {
    /// A spline flow, which has a density.
    Flow,
    /// The score of a diffusion.
    Score,
}

/// Where the parameters of later rounds come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Proposal {
    /// The prior.
    Prior,
    /// The posterior so far, a little wider.
    Posterior,
    /// The prior, restricted to where the posterior so far is not negligible.
    Truncated,
    /// Half from there, half from the posterior so far.
    Mixed,
}

/// A set of choices for everything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Profile {
    /// The best posterior per simulation and per second that we know of: see `docs/choices.md`.
    #[default]
    Default,
    /// The paper's protocol as printed.
    Paper,
}

/// Which rounds are compared with what is known of the truth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scoring {
    /// Every one.
    Every,
    /// The last.
    Last,
    /// None.
    None,
}

/// What it means that a simulation failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// The program failed, and nature would not have: x is missing. The posterior is p(θ) p(x_o | θ).
    Missing,
    /// Failing is an outcome of the model, and the observation is a success: the posterior is p(θ) p(x_o, success | θ).
    Outcome,
}

impl Named for Algorithm {
    const ALL: &'static [(&'static str, Self)] = &[
        ("tgrr", Self::Corrected(Method::Tgrr)),
        ("tsnpe", Self::Tsnpe),
        ("grr", Self::Corrected(Method::Grr)),
        ("ru", Self::Corrected(Method::Ru)),
        ("tru", Self::Corrected(Method::Tru)),
        ("rr", Self::Corrected(Method::Rr)),
        ("nested", Self::Corrected(Method::Nested)),
        ("atomic", Self::Corrected(Method::Atomic)),
        ("snse", Self::Snse),
        ("npe", Self::Npe),
    ];
}
impl Named for DensityKind {
    const ALL: &'static [(&'static str, Self)] = &[("flow", Self::Flow), ("score", Self::Score)];
}
impl Named for Proposal {
    const ALL: &'static [(&'static str, Self)] = &[
        ("prior", Self::Prior),
        ("posterior", Self::Posterior),
        ("truncated", Self::Truncated),
        ("mixed", Self::Mixed),
    ];
}
impl Named for Profile {
    const ALL: &'static [(&'static str, Self)] =
        &[("default", Self::Default), ("paper", Self::Paper)];
}
impl Named for Meaning {
    const ALL: &'static [(&'static str, Self)] =
        &[("missing", Self::Missing), ("outcome", Self::Outcome)];
}
impl Named for Scoring {
    const ALL: &'static [(&'static str, Self)] =
        &[("every", Self::Every), ("last", Self::Last), ("none", Self::None)];
}
serde_by_name!(DensityKind, Proposal, Profile, Scoring, Meaning);
