//! Points in comparable units: features of each number, and what the others do not tell of it.
//!
//! Everything here treats all points alike, an observation among simulations too: the order of the points does not matter.

use crate::math::cholesky::Cholesky;
use crate::math::masses::Masses;
use crate::math::mean_and_deviation;
use crate::rows::Rows;

/// Units beyond which features grow like a logarithm: tails then count, and do not rule.
const BEND: f64 = 3.0;
/// Ratio of the sizes at 95 and 5 % from which a column of one sign counts by its logarithm.
const ORDERS: f64 = 1000.0;
/// Neighbouring columns whose correlations are looked at together: it bounds the time of wide rows.
const BLOCK: usize = 256;
/// Least share of its variance that a column is taken to have for itself: rounding must not count as independent.
const OWN: f64 = 1e-6;

/// Points by their features.
pub(super) struct Cloud {
    pub columns: usize,
    /// Each number, centred, in units of its column's spread, bent.
    pub features: Vec<f64>,
    /// The same rotated and scaled so that no two are correlated.
    pub whitened: Vec<f64>,
    /// Each feature less what the others of the point predict of it, in units of what that usually is.
    pub residuals: Vec<f64>,
}

impl Cloud {
    /// Points of at least two rows.
    pub(super) fn of(points: Rows) -> Self {
        let (columns, n) = (points.columns(), points.len());
        let mut features = points.data().to_vec();
        for column in 0..columns {
            let mut values: Vec<f64> = points.iter().map(|row| row[column]).collect();
            values.sort_unstable_by(f64::total_cmp);
            let unit = Unit::of(&mut values);
            let numbers = features.iter_mut().skip(column).step_by(columns);
            numbers.for_each(|v| *v = unit.feature(*v));
        }
        let (mut whitened, mut residuals) = (vec![0.0; n * columns], vec![0.0; n * columns]);
        for first in (0..columns).step_by(BLOCK) {
            let block = first..columns.min(first + BLOCK);
            let of_block = |row: &[f64]| row[block.clone()].to_vec();
            let rows: Vec<f64> = features.chunks_exact(columns).flat_map(of_block).collect();
            let (white, rest) = decorrelated(rows, block.len());
            for (all, found) in [(&mut whitened, white), (&mut residuals, rest)] {
                let rows = all.chunks_exact_mut(columns).zip(found.chunks_exact(block.len()));
                rows.for_each(|(row, found)| row[block.clone()].copy_from_slice(found));
            }
        }
        Self { columns, features, whitened, residuals }
    }
}

/// Rows whose numbers are not correlated, and the residual of each number by the others.
fn decorrelated(mut rows: Vec<f64>, dim: usize) -> (Vec<f64>, Vec<f64>) {
    let n = rows.len() / dim;
    let covariance = Cholesky::weighted_covariance(&rows, &vec![1.0 / n as f64; n], dim);
    // Few rows overrate correlations of many columns: these shrink.
    let own = (dim as f64 / n as f64).powi(2).clamp(OWN, 0.5);
    let shrunk = covariance.iter().enumerate().map(|(i, &c)| match i % (dim + 1) {
        0 if c > 0.0 => c,
        0 => 1.0,
        _ => (1.0 - own) * c,
    });
    let factor = Cholesky::new(&shrunk.collect::<Vec<f64>>(), dim);
    let factor = factor.unwrap_or_else(|| Cholesky::identity(dim));
    centre(&mut rows, dim);
    let mut residuals = rows.clone();
    // By the inverse Σ⁻¹ of a covariance, (Σ⁻¹ z)_i is a multiple of z_i less its regression on the others.
    residuals.chunks_exact_mut(dim).for_each(|row| factor.solve(row));
    to_unit_spread(&mut residuals, dim);
    rows.chunks_exact_mut(dim).for_each(|row| factor.solve_lower(row));
    (rows, residuals)
}

fn centre(rows: &mut [f64], dim: usize) {
    let n = (rows.len() / dim) as f64;
    for column in 0..dim {
        let mean = rows.iter().skip(column).step_by(dim).sum::<f64>() / n;
        rows.iter_mut().skip(column).step_by(dim).for_each(|v| *v -= mean);
    }
}

fn to_unit_spread(rows: &mut [f64], dim: usize) {
    for column in 0..dim {
        let mut values: Vec<f64> = rows.iter().skip(column).step_by(dim).copied().collect();
        values.sort_unstable_by(f64::total_cmp);
        let (centre, spread) = middle(&values);
        let numbers = rows.iter_mut().skip(column).step_by(dim);
        numbers.for_each(|v| *v = (*v - centre) / spread);
    }
}

/// The unit of a column.
struct Unit {
    logarithmic: bool,
    centre: f64,
    spread: f64,
}

impl Unit {
    /// That of numbers in order.
    fn of(sorted: &mut Vec<f64>) -> Self {
        let sizes = [quantile(sorted, 0.05), quantile(sorted, 0.95)].map(f64::abs);
        let one_sign = sorted[0] > 0.0 || sorted.last().is_some_and(|last| *last < 0.0);
        let orders = sizes[0].max(sizes[1]) > ORDERS * sizes[0].min(sizes[1]);
        let logarithmic = one_sign && orders;
        if logarithmic {
            sorted.iter_mut().for_each(|v| *v = v.abs().ln());
            sorted.sort_unstable_by(f64::total_cmp);
        }
        // Sentinels for missing values say nothing of the spread of the others.
        let masses = Masses::of(sorted);
        let (centre, spread) = middle(masses.as_ref().map_or(&*sorted, |masses| &masses.rest));
        Self { logarithmic, centre, spread }
    }

    fn feature(&self, value: f64) -> f64 {
        let value = if self.logarithmic { value.abs().ln() } else { value };
        // Numbers of 1e200 in units of 1e-200 are far, and no infinity.
        let units = ((value - self.centre) / self.spread).clamp(-1e300, 1e300);
        BEND * (units / BEND).asinh()
    }
}

/// The median of numbers in order, and half the distance of their quantiles at 16 and 84 %; where that is 0, their standard
/// deviation; 1 where they are all the same.
fn middle(sorted: &[f64]) -> (f64, f64) {
    let spread = (quantile(sorted, 0.8413) - quantile(sorted, 0.1587)) / 2.0;
    let spread = if spread > 0.0 { spread } else { mean_and_deviation(sorted).1 };
    (quantile(sorted, 0.5), if spread > 0.0 && spread.is_finite() { spread } else { 1.0 })
}

fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * share).round() as usize]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand_distr::{Distribution, StandardNormal};

    /// Of 400 draws: covariances have standard errors of 1/√400 = 0.05 and 0.07 on the diagonal, and whitening with a
    /// shrinkage of (3/400)² makes them 1 and 0 but for that shrinkage, which the third column, 0.1 apart from the first, feels
    /// by 6e-5 / (1 − 0.995²) < 1 %.
    #[test]
    fn whitened_points_are_uncorrelated_and_residuals_show_what_breaks_a_correlation() {
        let mut rng = Streams::new(4).stream(Purpose::Synthetic, 0, 0);
        let mut draw = || -> f64 { StandardNormal.sample(&mut rng) };
        let mut points: Vec<f64> = (0..400)
            .flat_map(|_| {
                let (a, b, c) = (draw(), draw(), draw());
                [7.0 + 1e-8 * a, b, a + 0.1 * c]
            })
            .collect();
        points.extend([7.0 + 1e-8, 0.0, -1.0]);
        let cloud = Cloud::of(Rows::new("x", &points, 3).unwrap());
        let covariance = Cholesky::weighted_covariance(&cloud.whitened, &[1.0 / 401.0; 401], 3);
        for (i, c) in covariance.into_iter().enumerate() {
            assert!((c - f64::from(u8::from(i % 4 == 0))).abs() < 0.01, "{i}: {c}");
        }
        let last = &cloud.residuals[1200..];
        assert!(last[0].abs() > 5.0 && last[1].abs() < 2.0 && last[2].abs() > 5.0, "{last:?}");
        assert!(cloud.features[1200..].iter().all(|f| f.abs() < 2.0));
    }

    #[test]
    fn constants_sentinels_and_orders_of_magnitude_have_units() {
        let point = |i: i32| {
            let t = f64::from(i % 50) / 50.0;
            [3.0, if i < 30 { -999.0 } else { t + f64::from(i) * 1e-6 }, 10f64.powf(12.0 * t)]
        };
        let mut points: Vec<f64> = (0..100).flat_map(point).collect();
        points[297] = 4.0;
        let cloud = Cloud::of(Rows::new("x", &points, 3).unwrap());
        let column = |i: usize| cloud.features.iter().skip(i).step_by(3).copied().collect();
        let spread = |mut values: Vec<f64>| {
            values.sort_unstable_by(f64::total_cmp);
            values[99] - values[35]
        };
        assert!(cloud.features.iter().chain(&cloud.whitened).all(|v| v.is_finite()));
        assert!(cloud.features[297] > 3.0 && cloud.features[0] == 0.0);
        assert!((1.0..6.0).contains(&spread(column(1))) && (1.0..6.0).contains(&spread(column(2))));
    }
}
