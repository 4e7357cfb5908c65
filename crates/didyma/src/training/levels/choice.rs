//! The levels of least variance × cost, chosen from moments that were measured.
//!
//! Blocks of M₀ 2^l samples, from two on up to the largest one of the settings, are the levels that are measured: V_l = E ‖Δρ_l‖²,
//! smoothed by the line through log₂ V_l, and the variance of ρ_{M_m} for every base m. For each m the best tails are known in
//! closed form ([`best_tails`]); the m with the least variance × cost is taken. The largest block stays what the settings
//! say, since the loss of a truncated method depends on it: without that, the least variance × cost would have no levels at all.

use super::study::{FITTED, LevelStudy};
use super::{LevelMoments, Objective};
use crate::error::{Error, Result};
use crate::math::regression::log2_slope;
use crate::rng::Streams;
use crate::training::estimator::alpha::{LEAST_RATE, best_tails, variance_cost};
use crate::training::estimator::{Alpha, Blocks, Estimator, Settings, Tails};
use serde::{Deserialize, Serialize};

/// Samples of the largest block that is measured; moments of larger ones follow the line.
const MEASURED: usize = 256;
/// Evaluations of log q at each level: for four digits of a probability that few queries meet, a few thousand are enough.
const EVALUATIONS: usize = 10_000;

/// Levels that were chosen for a round, and what was measured for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LevelChoice {
    /// M₀, inner samples of level 0.
    pub m0: usize,
    /// m, the lowest level.
    pub base: u32,
    /// The highest level.
    pub top: u32,
    /// P(L ≥ j) for each level above the base.
    pub tails: Vec<f64>,
    /// E ‖Δρ_l‖² falls like 2^(−r2 l).
    pub r2: f64,
    /// Its standard error; it does not know of tails that were not drawn.
    pub r2_se: f64,
    /// E ‖Δρ_l‖² as measured, from level 1 on.
    pub second_moments: Vec<f64>,
    /// Trace of the covariance of ρ_{M_l} as measured, from level 0 on.
    pub variances: Vec<f64>,
    /// Variance × cost of the levels chosen, cross terms left out.
    pub variance_cost: f64,
    /// The same of the levels that the settings give.
    pub given: f64,
}

impl LevelChoice {
    /// The best levels for these settings on a problem; none where its blocks hold fewer than three levels.
    pub fn measured(
        settings: &Settings,
        problem: &mut impl Objective,
        streams: Streams,
    ) -> Result<Option<Self>> {
        let given = settings.clone().fitted_to(problem);
        let (m0, top) = finest(&given);
        let filled = (MEASURED / m0).checked_ilog2().unwrap_or(0);
        let settings = Settings { m0, base: 0, top: Some(top), ..given.clone() };
        let settings = Settings { alpha: Alpha::Paper, tails: Tails::Paper, ..settings };
        let study = LevelStudy { settings, highest: top.min(filled), budget: EVALUATIONS };
        if study.highest < 3 {
            return Ok(None);
        }
        let moments = match study.moments(problem, streams) {
            Ok(moments) => moments,
            Err(Error::InfiniteQuery { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        Ok(Some(
            Measured { study, top, given, evaluations: problem.evaluations(), moments }.best()?,
        ))
    }

    /// Settings with these levels.
    pub fn applied(&self, settings: &Settings) -> Settings {
        let (tails, top) = (Tails::Free(self.tails.clone()), Some(self.top));
        Settings { m0: self.m0, base: self.base, top, tails, ..settings.clone() }
    }

    /// Variance × cost as a share of that of the settings' levels.
    pub fn share(&self) -> f64 {
        self.variance_cost / self.given
    }

    /// r2 − 2 standard errors: the figure to plan with.
    pub fn r2_safe(&self) -> f64 {
        self.r2 - 2.0 * self.r2_se
    }

    /// True if that is too low for a method without a top level.
    pub fn is_slow(&self) -> bool {
        self.r2_safe() <= LEAST_RATE
    }
}

/// M₀ and the top level of the finest levels that have the settings' largest block: halves of two samples at least, since
/// planted coupling has no smaller ones.
fn finest(settings: &Settings) -> (usize, u32) {
    let largest = settings.m0 << settings.top.unwrap_or(settings.base);
    let halves = largest.trailing_zeros().min((largest / 2).max(1).ilog2());
    (largest >> halves, halves)
}

/// What was measured, and for which settings.
struct Measured {
    study: LevelStudy,
    top: u32,
    given: Settings,
    evaluations: f64,
    moments: (Vec<LevelMoments>, Vec<f64>),
}

impl Measured {
    fn best(self) -> Result<LevelChoice> {
        let (levels, variances) = &self.moments;
        let inside = levels.iter().filter(|l| FITTED.contains(&l.level));
        let point = |l: &LevelMoments| {
            (l.level, l.second_moment_gradient, l.second_moment_gradient_se.powi(2))
        };
        let line = log2_slope(&inside.map(point).collect::<Vec<_>>());
        let second_moment = |level: u32| (line.intercept + line.value * f64::from(level)).exp2();
        let method = self.given.method;
        let share = if self.given.blocks == Blocks::Reused { 0.5 } else { 1.0 };
        let samples = |level: u32| self.evaluations * (self.study.settings.m0 << level) as f64;
        let above = |base: u32| -> Vec<(f64, f64)> {
            let level = |level| (second_moment(level), share * samples(level));
            (base + 1..=self.top).map(level).collect()
        };
        let of_base = |base: u32| (variances[base as usize], samples(base) + 1.0);
        let candidate = |base: u32| {
            let tails = best_tails(method, of_base(base), &above(base));
            let product = variance_cost(method, of_base(base), &above(base), &tails);
            (base, tails, product)
        };
        let all = (0..=self.study.highest).map(candidate);
        let best = all.min_by(|a, b| a.2.total_cmp(&b.2)).expect("a level at least");
        let given = {
            let finer = (self.given.m0 / self.study.settings.m0).ilog2();
            let law = Estimator::new(self.given.clone())?.law().clone();
            let tails: Vec<f64> =
                (law.base() + 1..=self.top - finer).map(|l| law.tail(l)).collect();
            let base = (law.base() + finer).min(self.study.highest);
            variance_cost(method, of_base(base), &above(base), &tails)
        };
        let (base, tails, variance_cost) = best;
        Ok(LevelChoice {
            m0: self.study.settings.m0,
            base,
            top: self.top,
            tails,
            r2: -line.value,
            r2_se: line.error,
            second_moments: levels.iter().map(|l| l.second_moment_gradient).collect(),
            variances: variances.clone(),
            variance_cost,
            given,
        })
    }
}
