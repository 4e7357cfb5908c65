//! What the sizes of a scheme are chosen from: bias, variances and costs, measured beforehand.

use super::PILOT;
use super::scheme::{M0, Scheme, Sizes, Summand};
use crate::toy::Toy;
use didyma::estimator::Method;
use didyma::math::Moments;
use didyma::rng::{Purpose, Streams};
use didyma::{Error, Result, parallel};

/// The highest level measured; multilevel Monte Carlo goes no higher.
const HIGHEST: u32 = 9;
/// Levels that the constant of the bias comes from: the lowest ones are not yet ∝ 1/M, in the highest it is
/// lost in the noise, though the weights see to that.
const BIAS_LEVELS: std::ops::RangeInclusive<usize> = 2..=6;
/// A second number of inner samples at which Var ψ_M is measured; the first is M₀.
const MANY: usize = 8 * M0;

/// Bias, variances and costs of the schemes.
#[derive(Clone, Debug)]
pub(super) struct Pilot {
    /// b in E ψ_M = L − b/M.
    bias: f64,
    /// Var ψ_M = v₀ + v₁/M.
    variance: (f64, f64),
    /// (V_l, C_l), variance and pairs of Δψ_l.
    levels: Vec<(f64, f64)>,
    /// The same of a query of RU and of RR.
    random: [(f64, f64); 2],
}

impl Pilot {
    /// Draws about `budget` pairs for each summand; the i-th summand from the stream (`PILOT`, i).
    pub fn measure(toy: &Toy, budget: usize, threads: usize, streams: Streams) -> Result<Self> {
        let mut summands = (0..=HIGHEST).map(Summand::level).collect::<Result<Vec<_>>>()?;
        summands.push(Summand::nested(MANY)?);
        summands.push(Summand::random_level(Method::Ru)?);
        summands.push(Summand::random_level(Method::Rr)?);
        let pairs = |i: usize| M0 << if i <= HIGHEST as usize { i } else { 3 };
        let measured = parallel::map(summands.len(), threads, |i| {
            let mut rng = streams.stream(Purpose::Diagnostic, PILOT, i as u64);
            let (mut value, mut cost) = (Moments::default(), Moments::default());
            let queries = (budget / pairs(i)).max(200);
            let mut summand = summands[i].clone();
            summand.draw(toy, queries, 1, &mut rng, |loss, _, pairs| {
                value.add(loss);
                cost.add(pairs as f64);
            })?;
            Ok((value, cost))
        });
        let measured = measured.into_iter().collect::<Result<Vec<_>>>()?;
        let mut pilot = Self::from_moments(&measured);
        // Known in closed form, while the sampled cost of random levels has a heavy tail.
        let costs = summands[HIGHEST as usize + 2..].iter().map(Summand::expected_pairs);
        pilot.random.iter_mut().zip(costs).for_each(|(random, cost)| random.1 = cost);
        Ok(pilot)
    }

    fn from_moments(measured: &[(Moments, Moments)]) -> Self {
        let (levels, others) = measured.split_at(HIGHEST as usize + 1);
        // E Δψ_l = b/M_{l−1} − b/M_l = b/M_l: each level has its own estimate of b.
        let of_level = |l: usize| {
            let (mean, samples) = (levels[l].0.estimate(), (M0 << l) as f64);
            (samples * mean.mean, (samples * mean.error).powi(-2))
        };
        let weights: f64 = BIAS_LEVELS.map(|l| of_level(l).1).sum();
        let bias = BIAS_LEVELS.map(|l| of_level(l).0 * of_level(l).1).sum::<f64>() / weights;
        let both = |(value, cost): &(Moments, Moments)| (value.variance(), cost.mean());
        let (few, many) = (levels[0].0.variance(), others[0].0.variance());
        let (at_few, at_many) = (1.0 / M0 as f64, 1.0 / MANY as f64);
        let slope = ((few - many) / (at_few - at_many)).max(0.0);
        Self {
            bias,
            variance: (many - slope * at_many, slope),
            levels: levels.iter().map(both).collect(),
            random: [both(&others[1]), both(&others[2])],
        }
    }

    /// The cheapest sizes whose mean squared error is ε² by these moments, and their expected pairs.
    pub fn sizes(&self, scheme: Scheme, epsilon: f64) -> Result<(Sizes, f64)> {
        match scheme {
            Scheme::Nested => self.nested(epsilon),
            Scheme::Mlmc => self.multilevel(epsilon),
            Scheme::Ru => Ok(random(self.random[0], epsilon)),
            Scheme::Rr => Ok(random(self.random[1], epsilon)),
        }
    }

    /// The M of least N (M + 1), where N = Var ψ_M / (ε² − b²/M²) leaves a mean squared error of ε² whatever
    /// M is: rounding M shifts error between bias and variance, not the sum. For large M it is √3 b/ε,
    /// where b²/M² = ε²/3.
    fn nested(&self, epsilon: f64) -> Result<(Sizes, f64)> {
        let least = (self.bias.abs() / epsilon).floor() as usize + 1;
        let queries = |samples: usize| {
            let samples = samples as f64;
            let (v_0, v_1) = self.variance;
            (v_0 + v_1 / samples) / (epsilon * epsilon - (self.bias / samples).powi(2))
        };
        let cost = |samples: usize| queries(samples) * (samples + 1) as f64;
        let best = (least..=4 * least + 4).min_by(|&a, &b| cost(a).total_cmp(&cost(b)));
        let samples = best.ok_or_else(|| too_small(epsilon))?;
        let queries = queries(samples).ceil() as usize;
        Ok((Sizes::Nested { queries, samples }, (queries * (samples + 1)) as f64))
    }

    /// N_l = √(V_l/C_l) Σ_k √(V_k C_k) / (ε² − b²/M_L²), for the top level L of least cost
    /// (Σ √(V C))² / (ε² − b²/M_L²).
    fn multilevel(&self, epsilon: f64) -> Result<(Sizes, f64)> {
        let plan = |top: usize| {
            let noise = epsilon * epsilon - (self.bias / (M0 << top) as f64).powi(2);
            let levels = &self.levels[..=top];
            let root: f64 = levels.iter().map(|(v, c)| (v * c).sqrt()).sum();
            (noise > 0.0).then_some((root * root / noise, root / noise, levels))
        };
        let plans = (0..self.levels.len()).filter_map(plan);
        let best = plans.min_by(|a, b| a.0.total_cmp(&b.0)).ok_or_else(|| too_small(epsilon))?;
        let queries = |&(v, c): &(f64, f64)| ((v / c).sqrt() * best.1).ceil() as usize;
        let sizes: Vec<usize> = best.2.iter().map(queries).collect();
        let cost = sizes.iter().zip(best.2).map(|(&n, (_, c))| n as f64 * c).sum();
        Ok((Sizes::Levels(sizes), cost))
    }
}

/// N = Var / ε²: without bias all of the error is noise.
fn random((variance, cost): (f64, f64), epsilon: f64) -> (Sizes, f64) {
    let queries = (variance / (epsilon * epsilon)).ceil();
    (Sizes::Queries(queries as usize), queries * cost)
}

fn too_small(epsilon: f64) -> Error {
    let why = format!("large enough for a bias of {} inner samples to be below it", M0 << HIGHEST);
    Error::setting("epsilon", epsilon, why)
}
