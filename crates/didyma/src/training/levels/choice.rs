//! The levels of least variance × cost, chosen from moments that were measured.
//!
//! Blocks of M₀ 2^l samples, from two on up to the largest one of the settings, or 256, are the levels that are measured:
//! V_l = E ‖Δρ_l‖², smoothed by the line through log₂ V_l, which larger blocks follow, and the variance of ρ_{M_m} for every base m.
//! For each m the best tails are known in closed form ([`best_tails`]); the m with the least variance × cost is taken. The
//! largest block stays what the settings say, since the loss of a truncated method depends on it: without that, the least
//! variance × cost would have no levels at all.

use super::study::{LevelStudy, gradient_line};
use super::{LevelMoments, Objective};
use crate::error::{Error, Result};
use crate::math::regression::Slope;
use crate::rng::Streams;
use crate::training::estimator::alpha::{LEAST_RATE, best_tails, variance_cost};
use crate::training::estimator::{Alpha, Estimator, Settings, Tails};
use serde::{Deserialize, Serialize};

/// Samples of the largest block that is measured.
const MEASURED: usize = 256;
/// Evaluations of log q at each level; more where that is less than 200 queries. A tenth of V changes the best tails by a
/// twentieth, and variance × cost by less than a hundredth, since they are at its least.
const EVALUATIONS: usize = 10_000;
/// Levels that a line needs, at least.
const LEAST_LEVELS: u32 = 3;

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
    /// The best levels for these settings on a problem; none where its blocks hold fewer than three levels. A method whose
    /// top level is only where the samples end keeps the settings' tails if second moments fall too slowly for it: the best
    /// ones would spend most on the largest blocks.
    pub fn measured(
        settings: &Settings,
        untruncated: bool,
        problem: &mut impl Objective,
        streams: Streams,
    ) -> Result<Option<Self>> {
        let given = settings.clone().fitted_to(problem);
        let law = Estimator::new(given.clone())?.law().clone();
        let (m0, top) = finest(&given);
        let filled = (MEASURED / m0).checked_ilog2().unwrap_or(0);
        let fine = Settings { m0, base: 0, top: Some(top), ..given.clone() };
        let fine = Settings { alpha: Alpha::Paper, tails: Tails::Paper, ..fine };
        let study = LevelStudy { settings: fine, highest: top.min(filled), budget: EVALUATIONS };
        if study.highest < LEAST_LEVELS {
            return Ok(None);
        }
        let moments = match study.moments(problem, streams) {
            Ok(moments) => moments,
            Err(Error::InfiniteQuery { .. }) => return Ok(None),
            Err(other) => return Err(other),
        };
        let measured = Measured::new(given, (m0, top), moments, problem.evaluations());
        let finer = (measured.given.m0 / m0).ilog2();
        let tails = (law.base() + 1..=top - finer).map(|level| law.tail(level)).collect();
        let given = measured.candidate(law.base() + finer, Some(tails));
        let best = measured.best();
        let slow = untruncated && measured.line.safe_rate() <= LEAST_RATE;
        Ok(Some(measured.choice(if slow { given.clone() } else { best }, &given)))
    }

    /// True if the largest block of these settings holds the levels that a line needs.
    pub(crate) fn is_possible(settings: &Settings) -> bool {
        settings.m0 > 0 && finest(settings).1 >= LEAST_LEVELS
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

/// M₀ and the top level of the finest levels that have the settings' largest block: down to two samples, or one where the
/// settings begin there.
fn finest(settings: &Settings) -> (usize, u32) {
    let largest = settings.m0 << settings.top.unwrap_or(settings.base);
    let halves = largest.trailing_zeros().min((largest / settings.m0.min(2)).ilog2());
    (largest >> halves, halves)
}

/// A base, the tails above it, and their variance × cost.
#[derive(Clone)]
struct Candidate {
    base: u32,
    tails: Vec<f64>,
    variance_cost: f64,
}

/// What was measured, and for which settings.
struct Measured {
    given: Settings,
    m0: usize,
    top: u32,
    levels: Vec<LevelMoments>,
    variances: Vec<f64>,
    evaluations: f64,
    line: Slope,
}

impl Measured {
    fn new(
        given: Settings,
        (m0, top): (usize, u32),
        (levels, variances): (Vec<LevelMoments>, Vec<f64>),
        evaluations: f64,
    ) -> Self {
        let line = gradient_line(&levels);
        Self { given, m0, top, levels, variances, evaluations, line }
    }

    fn samples(&self, level: u32) -> f64 {
        self.evaluations * (self.m0 << level) as f64
    }

    /// These tails above a base, or the best ones. A base beyond what was measured has the variance of the last one.
    fn candidate(&self, base: u32, tails: Option<Vec<f64>>) -> Candidate {
        let (method, share) = (self.given.method, self.given.share_of_a_block());
        let second_moment =
            |level: u32| (self.line.intercept + self.line.value * f64::from(level)).exp2();
        let above = |level: u32| (second_moment(level), share * self.samples(level));
        let above: Vec<_> = (base + 1..=self.top).map(above).collect();
        let variance = self.variances[(base as usize).min(self.variances.len() - 1)];
        let own = (variance, self.samples(base) + 1.0);
        let tails = tails.unwrap_or_else(|| best_tails(method, own, &above));
        let variance_cost = variance_cost(method, own, &above, &tails);
        Candidate { base, tails, variance_cost }
    }

    fn best(&self) -> Candidate {
        let all = (0..self.variances.len() as u32).map(|base| self.candidate(base, None));
        all.min_by(|a, b| a.variance_cost.total_cmp(&b.variance_cost)).expect("a level at least")
    }

    fn choice(self, chosen: Candidate, given: &Candidate) -> LevelChoice {
        LevelChoice {
            m0: self.m0,
            base: chosen.base,
            top: self.top,
            tails: chosen.tails,
            r2: -self.line.value,
            r2_se: self.line.error,
            second_moments: self.levels.iter().map(|l| l.second_moment_gradient).collect(),
            variances: self.variances,
            variance_cost: chosen.variance_cost,
            given: given.variance_cost,
        }
    }
}
