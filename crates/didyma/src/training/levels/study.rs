//! Moments of the level differences, and the rates at which they fall.

use super::sums::LevelSums;
use super::{Evaluated, Objective};
use crate::error::{Error, Result};
use crate::math::moments::Moments;
use crate::math::regression::{Slope, log2_slope};
use crate::named::Named;
use crate::rng::{Purpose, Streams};
use crate::training::estimator::alpha::{LEAST_RATE, best_tails, variance_cost};
use crate::training::estimator::{
    Blocks, Coupling, Estimator, LARGEST_BLOCK, Method, Plan, Settings,
};
use serde::Serialize;
use std::ops::RangeInclusive;

/// Levels whose differences the rates are fitted to; level 0 holds the outer term and is left out.
const FITTED: RangeInclusive<u32> = 1..=6;
/// Levels that the rate of the bias is fitted to: means are lost in the noise sooner.
const FITTED_BIAS: RangeInclusive<u32> = 1..=4;
/// Queries of a level, at least.
const LEAST_QUERIES: usize = 200;
/// Kurtosis above which the second moments rest on few draws.
const HEAVY: f64 = 100.0;

/// What is known of one level.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelMoments {
    /// l.
    pub level: u32,
    /// E Δψ_l.
    pub mean_loss: f64,
    /// Its standard error.
    pub mean_loss_se: f64,
    /// E |Δψ_l|².
    pub second_moment_loss: f64,
    /// Its standard error.
    pub second_moment_loss_se: f64,
    /// E ‖Δρ_l‖².
    pub second_moment_gradient: f64,
    /// Its standard error.
    pub second_moment_gradient_se: f64,
    /// Of Δψ_l: 3 for a normal variable, hundreds where single draws decide.
    pub kurtosis: f64,
    /// M_l, inner samples.
    pub cost: f64,
    /// Number of queries.
    pub queries: usize,
}

/// The term at the base level of a method.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BaseTerm {
    /// m.
    pub level: u32,
    /// Trace of the covariance of ρ_{M_m}.
    pub variance_gradient: f64,
    /// The same in units of B, if E ‖Δρ_l‖² = B 2^(−r2 l) by the fitted line: what `didyma alpha` asks for.
    pub base_variance: f64,
    /// M_m + 1.
    pub cost: f64,
}

/// The levels of an estimator, with what follows from them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LevelReport {
    /// Level by level, from 0.
    pub levels: Vec<LevelMoments>,
    /// E |Δψ_l|² falls like 2^(−r1 l).
    pub r1: f64,
    /// Standard error of `r1`; it does not know of tails that were not drawn.
    pub r1_se: f64,
    /// E ‖Δρ_l‖² falls like 2^(−r2 l).
    pub r2: f64,
    /// Standard error of `r2`; it does not know of tails that were not drawn.
    pub r2_se: f64,
    /// r2 − 2 standard errors: the figure to plan with.
    pub r2_safe: f64,
    /// |E Δψ_l| falls like 2^(−rate l).
    pub bias_rate: f64,
    /// Its standard error.
    pub bias_rate_se: f64,
    /// The base term of the method.
    pub base: BaseTerm,
    /// Best P(L ≥ j) for the levels above the base up to the top, if there is one, from the measured moments.
    pub tails: Vec<f64>,
    /// Variance of the gradient × cost in evaluations with these tails, cross terms left out.
    pub variance_cost: f64,
    /// In plain words.
    pub warnings: Vec<String>,
    /// The lines fitted to log₂ of E |Δψ_l|², E ‖Δρ_l‖² and |E Δψ_l|.
    #[serde(skip)]
    pub lines: [Slope; 3],
}

/// How to measure.
#[derive(Clone, Debug, PartialEq)]
pub struct LevelStudy {
    /// The estimator; its coupling and kind of difference decide what a level is.
    pub settings: Settings,
    /// The highest level to measure.
    pub highest: u32,
    /// Evaluations of g at each level; more if that is less than 200 queries.
    pub budget: usize,
}

impl LevelStudy {
    /// A study of this estimator as it is usually made: levels up to 6, a million evaluations each.
    pub fn new(settings: Settings) -> Self {
        Self { settings, highest: 6, budget: 1_000_000 }
    }

    /// Refuses levels that cannot be measured, and methods without levels.
    pub fn check(&self) -> Result<()> {
        let largest = self.settings.m0.checked_shl(self.highest).unwrap_or(usize::MAX);
        if !(3..=16).contains(&self.highest) || largest > LARGEST_BLOCK {
            let why = format!("between 3 and 16, with m0 · 2^levels up to {LARGEST_BLOCK}");
            return Err(Error::setting("levels", self.highest, why));
        }
        if !self.settings.method.is_multilevel() {
            let why = "ru, tru, rr, grr or tgrr: the others have no levels";
            return Err(Error::setting("method", self.settings.method.name(), why));
        }
        Estimator::new(self.settings.clone()).map(|_| ())
    }

    /// Draws queries at every level and fits the rates.
    pub fn run(&self, problem: &mut impl Objective, streams: Streams) -> Result<LevelReport> {
        self.check()?;
        let mut all = self.estimator(0)?;
        let base = self.settings.base;
        let last = self.highest.max(base);
        if all.highest_level(problem).is_none_or(|highest| highest < last) {
            let (block, rows) = (all.block_size(last), problem.largest_block());
            return Err(Error::SmallPool { block, level: last, rows });
        }
        let mut levels = Vec::new();
        for level in 0..=self.highest {
            levels.push(self.difference(&mut all, level, problem, streams)?);
        }
        let variance = self.variance(base, problem, streams)?;
        Ok(self.report(levels, variance, problem.evaluations()))
    }

    /// Moments of the differences from level 1 on, and the variance of the gradient at each level from 0 on.
    pub(super) fn moments(
        &self,
        problem: &mut impl Objective,
        streams: Streams,
    ) -> Result<(Vec<LevelMoments>, Vec<f64>)> {
        let mut all = self.estimator(0)?;
        let levels = 1..=self.highest;
        let levels = levels.map(|level| self.difference(&mut all, level, problem, streams));
        let levels = levels.collect::<Result<_>>()?;
        let bases = 0..=self.highest;
        let variances = bases.map(|base| self.variance(base, problem, streams));
        Ok((levels, variances.collect::<Result<_>>()?))
    }

    /// Moments of one level, by an estimator that begins at level 0.
    fn difference(
        &self,
        all: &mut Estimator,
        level: u32,
        problem: &mut impl Objective,
        streams: Streams,
    ) -> Result<LevelMoments> {
        let sums = self.measure(all, level, 0, problem, streams)?;
        Ok(sums.moments(level, all.block_size(level)))
    }

    /// Trace of the covariance of the gradient at a base level.
    fn variance(&self, base: u32, problem: &mut impl Objective, streams: Streams) -> Result<f64> {
        let (mut at_base, components) = (self.estimator(base)?, problem.gradient_len());
        let sums = self.measure(&mut at_base, base, components, problem, streams)?;
        Ok(sums.components.iter().map(Moments::variance).sum())
    }

    /// An estimator that takes the term at this base, or differences above it.
    fn estimator(&self, base: u32) -> Result<Estimator> {
        let (top, blocks) = (Some(self.highest.max(base)), Blocks::Fresh);
        let settings = Settings { method: Method::Rr, base, top, blocks, ..self.settings.clone() };
        Estimator::new(Settings { tails: Default::default(), ..settings })
    }

    /// Draws the queries of one level; of the gradient's components the first `components` are kept apart.
    fn measure(
        &self,
        estimator: &mut Estimator,
        level: u32,
        components: usize,
        problem: &mut impl Objective,
        streams: Streams,
    ) -> Result<LevelSums> {
        let queries = (self.budget / estimator.block_size(level)).max(LEAST_QUERIES);
        let base = u64::from(estimator.law().base());
        let mut rng = streams.stream(Purpose::Diagnostic, base, u64::from(level));
        let mut row = Vec::new();
        let mut plans = vec![Plan::default(); problem.at_once()];
        let nothing = Evaluated { loss: 0.0, gradient: vec![0.0; problem.gradient_len()] };
        let mut found = vec![nothing; plans.len()];
        let mut sums = LevelSums::new(components);
        while sums.queries < queries {
            let count = plans.len().min(queries - sums.queries);
            for plan in &mut plans[..count] {
                problem.outer(1, &mut rng, &mut row);
                estimator.plan_level(row[0], level, problem, &mut rng, plan)?;
            }
            problem.evaluate_all(&plans[..count], &mut found[..count])?;
            found[..count].iter().try_for_each(|query| sums.add(level, query))?;
        }
        Ok(sums)
    }

    fn report(
        &self,
        levels: Vec<LevelMoments>,
        variance_gradient: f64,
        evaluations: f64,
    ) -> LevelReport {
        let loss = fit(&levels, FITTED, |l| (l.second_moment_loss, l.second_moment_loss_se));
        let gradient = gradient_line(&levels);
        let mean = fit(&levels, FITTED_BIAS, |l| (l.mean_loss, l.mean_loss_se));
        let Settings { method, m0, base: level, top, .. } = self.settings;
        let base = BaseTerm {
            level,
            variance_gradient,
            base_variance: variance_gradient / gradient.intercept.exp2(),
            cost: (m0 << level) as f64 + 1.0,
        };
        let above =
            levels.iter().filter(|l| l.level > level && top.is_none_or(|top| l.level <= top));
        let share = self.settings.share_of_a_block() * evaluations;
        let above: Vec<_> = above.map(|l| (l.second_moment_gradient, share * l.cost)).collect();
        let r2_safe = gradient.safe_rate();
        let own = (base.variance_gradient, evaluations * (base.cost - 1.0) + 1.0);
        let tails = best_tails(method, own, &above);
        LevelReport {
            r1: -loss.value,
            r1_se: loss.error,
            r2: -gradient.value,
            r2_se: gradient.error,
            r2_safe,
            bias_rate: -mean.value,
            bias_rate_se: mean.error,
            variance_cost: variance_cost(method, own, &above, &tails),
            tails,
            base,
            warnings: self.warnings(&levels, r2_safe),
            levels,
            lines: [loss, gradient, mean],
        }
    }

    fn warnings(&self, levels: &[LevelMoments], r2_safe: f64) -> Vec<String> {
        let mut warnings = Vec::new();
        let heavy = levels.iter().filter(|l| l.level > 0 && l.kurtosis > HEAVY);
        if let Some(worst) = heavy.max_by(|a, b| a.kurtosis.total_cmp(&b.kurtosis)) {
            warnings.push(format!(
                "the differences have heavy tails (kurtosis {:.0} at level {}): single draws decide the \
                 second moments, the fitted rates are optimistic, and their standard errors do not show it",
                worst.kurtosis, worst.level
            ));
        }
        if self.settings.top.is_none() && r2_safe <= LEAST_RATE {
            let name = self.settings.method.name();
            warnings.push(format!(
                "r2 may be as low as {r2_safe:.2}, and {name} without a top level needs more than {LEAST_RATE}: \
                 its variance or its cost may be infinite; use tru or tgrr, or set top"
            ));
        }
        if self.settings.coupling == Coupling::Planted {
            warnings.push(
                "planted coupling does not telescope: the mean of every method is biased"
                    .to_owned(),
            );
        }
        warnings
    }
}

/// The line through log₂ of what `of` tells of the levels in this range: a mean and its standard error.
fn fit(
    levels: &[LevelMoments],
    range: RangeInclusive<u32>,
    of: fn(&LevelMoments) -> (f64, f64),
) -> Slope {
    let inside = levels.iter().filter(|l| range.contains(&l.level));
    let point = |l: &LevelMoments| (l.level, of(l).0, of(l).1.powi(2));
    log2_slope(&inside.map(point).collect::<Vec<_>>())
}

/// The line of E ‖Δρ_l‖².
pub(super) fn gradient_line(levels: &[LevelMoments]) -> Slope {
    fit(levels, FITTED, |l| (l.second_moment_gradient, l.second_moment_gradient_se))
}
