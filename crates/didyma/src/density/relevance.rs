//! How much each summary has to do with θ.
//!
//! Summaries that say nothing of θ are noise that a network fits, and the more of them the worse. So features are scaled down
//! where simulations show no dependence. The dependence T of a feature f is the largest |correlation| of f or |f| with z or z²
//! of any parameter. A correlation of independent numbers has the standard deviation 1/√n, whatever their laws, so that the largest of
//! m of them stays below √(2 ln m / n) in about four of five cases: a feature above that level counts in full. One below
//! has the factor
//!
//! ```text
//! r = min(1, (2 T / T of the best feature)²), at least 1/10.
//! ```
//!
//! That is cautious: where rows are few, chance alone correlates every feature with something, and all factors are near 1. And
//! nothing is lost: a network that reads a tenth of a feature learns it more slowly.

use crate::rows::Rows;

/// Factor of a feature that shows no dependence.
const LEAST: f64 = 0.1;
/// Share of the best dependence from which a feature counts in full, even if it may be chance.
const ENOUGH: f64 = 0.5;
/// Rows that are looked at, at most.
const ROWS: usize = 10_000;

/// A factor for each feature, from rows of features and of z.
pub(super) fn factors(features: Rows, z: Rows) -> Vec<f64> {
    let targets: Vec<Vec<f64>> = (0..z.columns())
        .flat_map(|i| with(column(z, i), |z| z * z))
        .filter_map(standardised)
        .collect();
    let dependence = |i: usize| {
        let seen = with(column(features, i), f64::abs).into_iter().filter_map(standardised);
        seen.map(|f| targets.iter().map(|z| correlation(&f, z)).fold(0.0, f64::max))
            .fold(0.0, f64::max)
    };
    let dependence: Vec<f64> = (0..features.columns()).map(dependence).collect();
    let tests = (2 * targets.len() * features.columns()).max(2) as f64;
    let chance = (2.0 * tests.ln() / z.len() as f64).sqrt();
    let enough = ENOUGH * dependence.iter().copied().fold(0.0, f64::max);
    let counts = |t: f64| t >= enough || t > chance;
    let factor = |&t: &f64| if counts(t) { 1.0 } else { (t / enough).powi(2).max(LEAST) };
    dependence.iter().map(factor).collect()
}

/// Rows of a pool are taken this far apart, so that they are not too many.
pub(super) fn step(rows: usize) -> usize {
    rows.div_ceil(ROWS).max(1)
}

fn column(rows: Rows, i: usize) -> Vec<f64> {
    rows.iter().map(|row| row[i]).collect()
}

/// Values, and a function of them.
fn with(values: Vec<f64>, of: impl Fn(f64) -> f64) -> [Vec<f64>; 2] {
    let others = values.iter().map(|&v| of(v)).collect();
    [values, others]
}

/// Values less their mean, with squares that sum to 1; none of a constant.
fn standardised(mut values: Vec<f64>) -> Option<Vec<f64>> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter_mut().for_each(|v| *v -= mean);
    let norm = values.iter().map(|v| v * v).sum::<f64>().sqrt();
    values.iter_mut().for_each(|v| *v /= norm);
    (norm > 0.0 && norm.is_finite()).then_some(values)
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>().abs()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand_distr::{Distribution, StandardNormal};

    /// Factors of six features of two parameters: the mean, the spread, half of the spread's size, a constant, two of noise.
    fn found(rows: usize, signal: f64) -> Vec<f64> {
        let mut rng = Streams::new(3).stream(Purpose::Synthetic, 0, 0);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (mut z, mut features) = (Vec::new(), Vec::new());
        for _ in 0..rows {
            let theta = [normal(), normal()];
            z.extend(theta);
            let spread = (signal * theta[1]).exp();
            let x = [signal * theta[0] + normal(), spread * normal(), spread + normal(), 3.0];
            features.extend(x.into_iter().chain([normal(), normal()]));
        }
        factors(Rows::new("x", &features, 6).unwrap(), Rows::new("theta", &z, 2).unwrap())
    }

    /// Of 4000 rows, the largest of eight correlations of noise is below 2.7 / √4000 = 0.04 with a probability of 95 %: less than
    /// the level of all 48, √(2 ln 48 / 4000) = 0.044. The best is the mean's, 1/√2, so that the factor is (0.04 / 0.35)² = 0.01,
    /// at least 1/10.
    #[test]
    fn noise_counts_least_and_dependence_of_any_kind_in_full() {
        let factors = found(4000, 1.0);
        assert_eq!(factors, [1.0, 1.0, 1.0, LEAST, LEAST, LEAST]);
    }

    /// Where nothing depends on θ, the best feature is chance as well. Of 40 rows its correlation is some 2.5 / √40, and that of
    /// another one seldom less than half of it.
    #[test]
    fn few_rows_condemn_nothing() {
        let factors = found(40, 0.0);
        assert!([0, 1, 2, 4, 5].into_iter().all(|i| factors[i] > 0.3), "{factors:?}");
    }
}
