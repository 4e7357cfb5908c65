//! Four ways to estimate the loss, and the means that they are sums of.

use crate::toy::Toy;
use didyma::estimator::{Estimator, Method, Plan, Settings};
use didyma::levels::Objective;
use didyma::rng::Stream;
use didyma::{Named, Result};
use serde::Serialize;

/// M₀, inner samples of level 0.
pub(super) const M0: usize = 8;
/// The level that RU and RR are capped at: what is left of the bias is that of 2¹⁵ inner samples, some
/// 10⁻³ of the smallest error asked for.
const CAP: u32 = 12;
/// Outer samples drawn together; it bounds the memory and changes nothing else.
const BATCH: usize = 256;

/// A way to estimate the loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Scheme {
    /// The mean of ψ_M over N queries.
    Nested,
    /// Multilevel Monte Carlo: Σ_l of the mean of Δψ_l over N_l queries, antithetic.
    Mlmc,
    /// The mean over N queries of Δψ_L / P(L).
    Ru,
    /// The mean over N queries of Σ_{j≤L} Δψ_j / P(L ≥ j).
    Rr,
}

impl Named for Scheme {
    const ALL: &'static [(&'static str, Self)] =
        &[("nested", Self::Nested), ("mlmc", Self::Mlmc), ("ru", Self::Ru), ("rr", Self::Rr)];
}

impl Scheme {
    /// The exponent of theory: cost ∝ ε^(−3) for nested sampling, ε^(−2) for all others.
    pub fn exponent(self) -> f64 {
        if self == Self::Nested { -3.0 } else { -2.0 }
    }
}

/// How many samples a scheme takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Sizes {
    /// N outer samples with M inner ones each.
    Nested {
        /// N.
        queries: usize,
        /// M.
        samples: usize,
    },
    /// N_l for the levels l = 0, 1, ….
    Levels(Vec<usize>),
    /// N queries of random level.
    Queries(usize),
}

/// What is averaged: a whole query, or the term of one level.
#[derive(Clone, Debug)]
pub(super) struct Summand {
    estimator: Estimator,
    level: Option<u32>,
}

impl Summand {
    pub fn nested(samples: usize) -> Result<Self> {
        Self::query(Settings { atoms: samples, ..Settings::paper(Method::Nested) })
    }

    pub fn level(level: u32) -> Result<Self> {
        let query =
            Self::query(Settings { m0: M0, top: Some(level), ..Settings::paper(Method::Rr) });
        Ok(Self { level: Some(level), ..query? })
    }

    pub fn random_level(method: Method) -> Result<Self> {
        Self::query(Settings { m0: M0, top: Some(CAP), ..Settings::paper(method) })
    }

    fn query(settings: Settings) -> Result<Self> {
        Ok(Self { estimator: Estimator::new(settings)?, level: None })
    }

    pub fn expected_pairs(&self) -> f64 {
        self.estimator.expected_pairs()
    }

    /// Tells `each` value of `queries` independent ones with its number of pairs: of one query at a time,
    /// or the mean of up to `together` with their number.
    pub fn draw(
        &mut self,
        toy: &Toy,
        queries: usize,
        together: usize,
        rng: &mut Stream,
        mut each: impl FnMut(f64, usize, usize),
    ) -> Result<()> {
        let (mut problem, mut rows, mut plan) = (toy.queries(), Vec::new(), Plan::default());
        let together = if self.level.is_some() { 1 } else { together };
        for first in (0..queries).step_by(together) {
            let size = together.min(queries - first);
            problem.outer(size, rng, &mut rows);
            match self.level {
                None => self.estimator.plan(&rows, &mut problem, rng, &mut plan)?,
                Some(level) => {
                    self.estimator.plan_level(rows[0], level, &mut problem, rng, &mut plan)?;
                }
            }
            each(problem.loss(&plan), size, plan.pairs());
        }
        Ok(())
    }

    /// The mean over `queries` of them, and the pairs evaluated.
    fn mean(&mut self, toy: &Toy, queries: usize, rng: &mut Stream) -> Result<(f64, f64)> {
        let (mut sum, mut pairs) = (0.0, 0);
        self.draw(toy, queries, BATCH, rng, |value, size, more| {
            sum += value * size as f64;
            pairs += more;
        })?;
        Ok((sum / queries as f64, pairs as f64))
    }
}

/// One estimate of the loss, and the pairs that it took.
pub(super) fn estimate(
    toy: &Toy,
    scheme: Scheme,
    sizes: &Sizes,
    rng: &mut Stream,
) -> Result<(f64, f64)> {
    match sizes {
        Sizes::Nested { queries, samples } => Summand::nested(*samples)?.mean(toy, *queries, rng),
        Sizes::Queries(queries) => {
            let method = if scheme == Scheme::Ru { Method::Ru } else { Method::Rr };
            Summand::random_level(method)?.mean(toy, *queries, rng)
        }
        Sizes::Levels(queries) => {
            let (mut sum, mut pairs) = (0.0, 0.0);
            for (level, &queries) in queries.iter().enumerate() {
                let (mean, more) = Summand::level(level as u32)?.mean(toy, queries, rng)?;
                sum += mean;
                pairs += more;
            }
            Ok((sum, pairs))
        }
    }
}
