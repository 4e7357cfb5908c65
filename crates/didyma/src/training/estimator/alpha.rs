//! How to choose the level law: what it costs, what variance it leaves, and where their product is
//! least.
//!
//! Let V_m be the variance of the base term, V_j the second moment of the difference at level j > m, and
//! C_m, C_j their costs. With cross terms left out, a roulette with tails p_j has
//!
//! ```text
//! variance × cost = (V_m + Σ_{j>m} V_j / p_j) (C_m + Σ_{j>m} p_j C_j)
//! ```
//!
//! which is least, by Cauchy-Schwarz, at p_j = √((V_j/C_j) / (V_m/C_m)): the *free tails*. With
//! V_j = B 2^(−rj) and C_j = M₀ 2^j they are a *scaled geometric* law p_j = min(1, κ 2^(−α(j−m))) with
//! **α = (r+1)/2 at every base level m**; κ is a number of its own. The paper ties it to α,
//! κ = 2^(−αm), which is the only reason why its α depends on m. The cross terms E[D_i D_j]/p_i left
//! out are positive, so tails 2 or 4 times as large are worth trying.

use super::{Alpha, Estimator, LevelLaw, Method, Settings, Tails};
use crate::error::{Error, Result};
use crate::math::dual::{Dual, minimise};
use crate::named::Named;

/// The decay rate of the levels up to which a method without a top level is refused: its α must lie
/// between 1 (finite cost) and the rate (finite variance), and measured rates are optimistic.
pub const LEAST_RATE: f64 = 1.1;

/// p_j = √((V_j/C_j) / (V_m/C_m)), at most 1 and never rising: the best tails above a base term, from
/// (variance, cost) of the base and of each level above it.
pub fn free_tails(base: (f64, f64), levels: &[(f64, f64)]) -> Vec<f64> {
    let mut least = 1.0f64;
    let tail = |&(variance, cost): &(f64, f64)| {
        least = least.min((variance / cost / (base.0 / base.1)).sqrt());
        least
    };
    levels.iter().map(tail).collect()
}

/// The best tails of a method, from (variance, cost) of its base and of each level above it: [`free_tails`] for a
/// roulette; for a single term masses ∝ √(V/C), by the same inequality.
pub fn best_tails(method: Method, base: (f64, f64), levels: &[(f64, f64)]) -> Vec<f64> {
    if !method.is_single_term() {
        return free_tails(base, levels);
    }
    let masses: Vec<f64> = levels.iter().map(|(variance, cost)| (variance / cost).sqrt()).collect();
    let total = (base.0 / base.1).sqrt() + masses.iter().sum::<f64>();
    (0..masses.len()).map(|i| masses[i..].iter().sum::<f64>() / total).collect()
}

/// Variance × cost of a method with these tails, cross terms left out:
///
/// ```text
/// roulette       (V_m + Σ V_j / p_j) (C_m + Σ p_j C_j)
/// single term    (Σ V_j / (p_j − p_{j+1})) (Σ (p_j − p_{j+1}) C_j),   the base with p_m = 1 among them
/// ```
pub fn variance_cost(
    method: Method,
    base: (f64, f64),
    levels: &[(f64, f64)],
    tails: &[f64],
) -> f64 {
    let (mut variance, mut cost) = (0.0, 0.0);
    let each = [&base].into_iter().chain(levels).zip([1.0].iter().chain(tails)).enumerate();
    for (place, (&(level_variance, level_cost), &tail)) in each {
        let next = tails.get(place).copied().filter(|_| method.is_single_term());
        let weight = tail - next.unwrap_or(0.0);
        variance += level_variance / weight;
        cost += weight * level_cost;
    }
    variance * cost
}

/// A model of the levels: V_j = 2^(−rj) above the base and V_m = c at it, in units of B; C_j = 2^j and
/// C_m = 2^m, in units of M₀.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Model {
    /// r, the decay rate of the second moments (of the gradient's differences, r2).
    pub rate: f64,
    /// c = V_m / B.
    pub base_variance: f64,
}

impl Model {
    /// The recipe's α = (r+1)/2.
    pub fn alpha(&self) -> f64 {
        0.5 * (self.rate + 1.0)
    }

    /// The recipe's tails: scaled geometric, or, for a single term with a top level, its masses normalised.
    pub fn tails(&self, method: Method, base: u32, top: Option<u32>) -> Tails {
        let (alpha, root) = (self.alpha(), self.base_variance.sqrt());
        let (m, step) = (f64::from(base), (-alpha).exp2());
        match (method.is_single_term(), top) {
            (true, Some(top)) => {
                let level = |l: u32| ((-self.rate * f64::from(l)).exp2(), f64::from(l).exp2());
                let levels: Vec<_> = (base + 1..=top).map(level).collect();
                Tails::Free(best_tails(method, (self.base_variance, m.exp2()), &levels))
            }
            // Masses ∝ √(V_l/C_l): those above the base are geometric, the first is apart.
            (true, None) => {
                let first = root * ((alpha - 0.5) * m).exp2() * (1.0 - step);
                Tails::Scaled { kappa: 1.0 / (first + step) }
            }
            (false, _) => Tails::Scaled { kappa: ((0.5 - alpha) * m).exp2() / root },
        }
    }

    /// Variance × cost of a level law, cross terms left out, in units of B · M₀.
    pub fn variance_times_cost(&self, method: Method, law: &LevelLaw) -> f64 {
        let base = law.base();
        let above = |level: u32| (-self.rate * f64::from(level)).exp2();
        if method.is_single_term() {
            let corrections = law.series(base + 1, |level| above(level) / law.mass(level));
            return (self.base_variance / law.mass(base) + corrections) * law.mean_block();
        }
        let corrections = law.series(base + 1, |level| above(level) / law.tail(level));
        (self.base_variance + corrections) * (f64::from(base).exp2() + law.corrections())
    }
}

/// The objectives from which an α of GRR without a base variance follows, beside r and m.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GrrObjective {
    /// Σ 2^(−rj)/p_j times the expected cost.
    Sharp,
    /// The variance bound printed in the paper times the expected cost.
    PrintedBound,
    /// Σ 2^(−rj)/p_j times a cost whose blocks up to L are counted as 2^(L+1) without the part below
    /// the base: with r = 1.8 and m = 2 it gives the paper's 1.209.
    WithoutSubtraction,
}

/// The α of GRR that minimises an objective.
pub fn grr_alpha(objective: GrrObjective, rate: f64, base: u32) -> f64 {
    let one = Dual::from(1.0);
    minimise(1.0, rate, |alpha| {
        let sharp = sharp_variance(alpha, rate, base);
        let cost = corrections(alpha, base) + f64::from(base).exp2();
        match objective {
            GrrObjective::Sharp => sharp * cost,
            GrrObjective::PrintedBound => {
                let x = (alpha - rate).exp2();
                let keep = one - (-alpha).exp2();
                keep / (one - (-alpha * 2.0 + rate).exp2()) / (one - x) * sharp * cost
            }
            GrrObjective::WithoutSubtraction => {
                let keep = one - (-alpha).exp2();
                sharp * (keep * corrections(alpha, base) * 2.0 + f64::from(base).exp2())
            }
        }
    })
}

/// Σ_{j>m} 2^(−rj) / p_j with p_j = 2^(−αj).
fn sharp_variance(alpha: Dual, rate: f64, base: u32) -> Dual {
    let log_x = alpha - rate;
    (log_x * f64::from(base + 1)).exp2() / (Dual::from(1.0) - log_x.exp2())
}

/// Σ_{j>m} p_j 2^j with p_j = 2^(−αj).
fn corrections(alpha: Dual, base: u32) -> Dual {
    let log_y = -alpha + 1.0;
    (log_y * f64::from(base + 1)).exp2() / (Dual::from(1.0) - log_y.exp2())
}

/// The minimum of a function without known derivative: the best of a grid, refined by a golden section.
fn scan(low: f64, high: f64, function: impl Fn(f64) -> f64) -> f64 {
    const POINTS: u32 = 400;
    let at = |i: u32| low + (high - low) * f64::from(i) / f64::from(POINTS);
    let best = (0..=POINTS).min_by(|&a, &b| function(at(a)).total_cmp(&function(at(b))));
    let best = best.expect("there are points");
    let (mut low, mut high) = (at(best.saturating_sub(1)), at((best + 1).min(POINTS)));
    let golden = 0.5 * (5f64.sqrt() - 1.0);
    for _ in 0..60 {
        let (a, b) = (high - golden * (high - low), low + golden * (high - low));
        match function(a) < function(b) {
            true => high = b,
            false => low = a,
        }
    }
    0.5 * (low + high)
}

/// The paper's law and the recipe's, side by side.
#[derive(Clone, Debug, PartialEq)]
pub struct Advice {
    /// At the paper's α.
    pub paper: Estimator,
    /// With the recipe's α and tails.
    pub recipe: Estimator,
    /// The best α if the tails are the paper's, which tie κ to α: between 1 and r without a top level, between 0
    /// and r + 1 with one.
    pub one_parameter: f64,
}

/// What level law to take for the levels of a model. `settings` give method, base, top and the rest.
///
/// A method without a top level is refused if the rate is 1.1 or less: between 1 and the rate there is
/// then no α, or none to be relied on.
pub fn advise(settings: &Settings, model: Model) -> Result<Advice> {
    let Settings { method, base, top, .. } = *settings;
    if !method.is_multilevel() {
        return Err(Error::setting(
            "method",
            method.name(),
            "ru, tru, rr, grr or tgrr: the others draw no level",
        ));
    }
    if !(model.base_variance > 0.0 && model.base_variance.is_finite()) {
        return Err(Error::setting("base_variance", model.base_variance, "a number above 0"));
    }
    if !(model.rate > 0.0 && model.rate < 3.0) {
        return Err(Error::setting(
            "r2",
            model.rate,
            "above 0 and below 3: theory gives at most 2",
        ));
    }
    if top.is_none() && model.rate <= LEAST_RATE {
        let why = format!(
            "above {LEAST_RATE} for {}, which has no top level: its alpha must lie between 1 (finite cost) \
             and r2 (finite variance); take tru or tgrr instead",
            method.name()
        );
        return Err(Error::setting("r2", model.rate, why));
    }
    if top == Some(base) {
        let why = format!("above base ({base}), or there is no level to choose");
        return Err(Error::setting("top", base, why));
    }
    let law = |alpha, tails| Estimator::new(Settings { alpha, tails, ..settings.clone() });
    let (paper, recipe) = (
        law(Alpha::Paper, Tails::Paper)?,
        law(Alpha::Value(model.alpha()), model.tails(method, base, top))?,
    );
    // Finite cost and variance without a top level; with one, the range in which both matter.
    let (low, high) =
        if top.is_none() { (1.0, model.rate.min(2.0)) } else { (0.01, model.rate + 1.0) };
    let margin = 1e-6;
    let one_parameter = scan(low + margin, high - margin, |alpha| {
        let estimator = law(Alpha::Value(alpha), Tails::Paper);
        estimator.map_or(f64::INFINITY, |e| model.variance_times_cost(method, e.law()))
    });
    Ok(Advice { paper, recipe, one_parameter })
}
