//! Centre and scale of each summary, so that what is near x_o stays resolved, whatever lies far from it.
//!
//! Simulations of a summary are scaled by their median and the distance of their quantiles at 16 and 84 %. That is no measure
//! where some of them say −999 for "missing", or where they vary over many orders of magnitude: x_o and its neighbours
//! would all have the same features. So point masses are left out; and where the spread of all is more than [`WIDE`] times
//! that of the bulk around x_o, the bulk takes its place: simulations up to [`REACH`] times as far from x_o as the nearest
//! tenth of them, which is 3.1 deviations of a normal law around x_o. What lies beyond is bent (see
//! [`super::coordinates`]) and stays distinct. Other summaries, such as counts with long tails, are scaled as before: of eight
//! tasks the widest spread is 9 times that of its bulk.

use crate::math::masses::Masses;
use crate::math::mean_and_deviation;
use crate::rows::Rows;
use serde::{Deserialize, Serialize};

/// Share of the simulations that are near x_o.
const NEAR: f64 = 0.1;
/// Radius of the bulk, in radii of the near ones.
const REACH: f64 = 25.0;
/// Spread of all simulations, in spreads of the bulk, from which the bulk counts.
const WIDE: f64 = 10.0;
/// Simulations of a round, at least, that say something of its bulk.
const FEW: usize = 20;
/// Units beyond which nothing is any farther.
const FARTHEST: f64 = 1e300;
/// Numbers that vary by less than this many of their last digits are the same, but for rounding.
const ROUNDING: f64 = 64.0 * f64::EPSILON;

/// Ratio of the sizes at 95 and 5 % from which a summary of one sign, whose spread is too wide for its bulk, counts by its
/// logarithm. It is 720 for a log-normal law whose logarithm has deviation 2.
const ORDERS: f64 = 1000.0;

/// v ↦ (v − mean) / scale, number by number, where v is the number or its logarithm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Scaling {
    pub mean: Vec<f64>,
    pub scale: Vec<f64>,
    /// The size m below which a number no longer counts by its logarithm, v = asinh(x / m), where it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    sizes: Vec<Option<f64>>,
}

impl Scaling {
    pub(super) fn identity(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], scale: vec![1.0; dim], sizes: Vec::new() }
    }

    /// Whether these are finite numbers for so many summaries.
    pub(super) fn is_valid(&self, dim: usize) -> bool {
        let Self { mean, scale, sizes } = self;
        let lengths = mean.len() == dim && scale.len() == dim && [0, dim].contains(&sizes.len());
        let positive = |s: &f64| s.is_finite() && *s > 0.0;
        let finite = mean.iter().all(|m| m.is_finite()) && scale.iter().all(positive);
        lengths && finite && sizes.iter().flatten().all(positive)
    }

    /// A summary in units of its scale.
    pub(super) fn scaled(&self, column: usize, x: f64) -> f64 {
        let v = logarithmic(x, self.sizes.get(column).copied().flatten());
        // A summary of 1e150 in units of 1e-300 is far, and no infinity.
        ((v - self.mean[column]) / self.scale[column]).clamp(-FARTHEST, FARTHEST)
    }

    /// Whether the same summaries count by their logarithm, in the same way.
    pub(super) fn is_alike(&self, other: &Self) -> bool {
        self.sizes == other.sizes
    }

    /// Centre and spread of each summary; of one that does not vary, the spread that it has in the first round, else 1. The
    /// first round also says which summaries count by their logarithm.
    pub(super) fn near(x_o: &[f64], rows: Rows, first: Rows) -> Self {
        let sizes: Vec<Option<f64>> =
            (0..rows.columns()).map(|i| size(&column(first, i, None), x_o[i])).collect();
        let scaled = |i: usize| {
            let (newest, x_o) = (column(rows, i, sizes[i]), logarithmic(x_o[i], sizes[i]));
            let before = || spread(&column(first, i, sizes[i]), x_o).map(|(_, scale)| scale);
            let unit = || (median(&newest), before().unwrap_or(1.0));
            spread(&newest, x_o).unwrap_or_else(unit)
        };
        let (mean, scale) = (0..rows.columns()).map(scaled).unzip();
        Self { mean, scale, sizes }
    }

    /// Mean and standard deviation; a number that does not vary keeps its unit.
    pub(super) fn moments(rows: Rows) -> Self {
        let n = rows.len() as f64;
        let scaled = |i: usize| {
            let column: Vec<f64> = rows.iter().map(|row| row[i]).collect();
            let (mean, deviation) = mean_and_deviation(&column);
            let deviation = deviation * ((n - 1.0) / n).sqrt();
            (mean, if deviation > ROUNDING * mean.abs() { deviation } else { 1.0 })
        };
        let (mean, scale) = (0..rows.columns()).map(scaled).unzip();
        Self { mean, scale, sizes: Vec::new() }
    }
}

/// asinh(x / m), or x itself.
fn logarithmic(x: f64, size: Option<f64>) -> f64 {
    // x / m may be infinite where m is tiny.
    size.map_or(x, |m| (x / m).clamp(-FARTHEST, FARTHEST).asinh())
}

/// A summary of all rows, in order.
fn column(rows: Rows, column: usize, size: Option<f64>) -> Vec<f64> {
    let mut values: Vec<f64> = rows.iter().map(|row| logarithmic(row[column], size)).collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

/// The size m of numbers in order that vary over many orders of magnitude: below nearly all of them, and x_o.
fn size(sorted: &[f64], x_o: f64) -> Option<f64> {
    let values = without_masses(sorted);
    let one_sign = values.iter().all(|v| v * x_o.signum() > 0.0) && x_o != 0.0;
    let sizes = [quantile(&values, 0.05), quantile(&values, 0.95)].map(f64::abs);
    let orders = sizes[0].max(sizes[1]) > ORDERS * sizes[0].min(sizes[1]);
    let least = [0.01, 0.99].map(|share| quantile(&values, share).abs());
    let least = least[0].min(least[1]).min(x_o.abs() / 10.0);
    (one_sign && orders && least > 0.0 && is_wide(&values, x_o)).then_some(least)
}

/// Centre and spread of numbers in order: of all but point masses, or of the bulk around x_o; none if all are the same.
fn spread(sorted: &[f64], x_o: f64) -> Option<(f64, f64)> {
    let values = without_masses(sorted);
    let least = ROUNDING * median(&values).abs();
    let all = middle(&values).filter(|&(_, spread)| spread > least);
    let near = bulk(&values, x_o).filter(|&(_, spread)| spread > least && values.len() >= FEW);
    match (all, near) {
        (Some(all), Some(near)) if all.1 > WIDE * near.1 => Some(near),
        (all, near) => all.or(near),
    }
}

/// Whether the spread of all is no measure of what is near x_o.
fn is_wide(values: &[f64], x_o: f64) -> bool {
    let spreads = middle(values).zip(bulk(values, x_o));
    spreads.is_some_and(|((_, all), (_, near))| all > WIDE * near)
}

fn without_masses(sorted: &[f64]) -> Vec<f64> {
    Masses::of(sorted).map_or_else(|| sorted.to_vec(), |masses| masses.rest)
}

/// The middle of the numbers around x_o. Of those that are nearly all the same, the distance of the others from x_o is the
/// spread.
fn bulk(sorted: &[f64], x_o: f64) -> Option<(f64, f64)> {
    let mut distances: Vec<f64> =
        sorted.iter().map(|v| (v - x_o).abs()).filter(|&distance| distance > 0.0).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let radius = *distances.get(place(NEAR, distances.len()))?;
    let near = |v: &&f64| (**v - x_o).abs() <= REACH * radius;
    let bulk: Vec<f64> = sorted.iter().filter(near).copied().collect();
    let (centre, spread) = middle(&bulk)?;
    Some((centre, if spread > 0.0 { spread } else { radius }))
}

/// Median, and half the distance of the quantiles at 16 and 84 %.
fn middle(sorted: &[f64]) -> Option<(f64, f64)> {
    let spread = (quantile(sorted, 0.8413) - quantile(sorted, 0.1587)) / 2.0;
    (!sorted.is_empty()).then(|| (median(sorted), spread))
}

fn median(sorted: &[f64]) -> f64 {
    quantile(sorted, 0.5)
}

/// A quantile of numbers in order; 0 of none.
fn quantile(sorted: &[f64], share: f64) -> f64 {
    sorted.get(place(share, sorted.len())).copied().unwrap_or(0.0)
}

/// The place of a quantile.
fn place(share: f64, count: usize) -> usize {
    (count.saturating_sub(1) as f64 * share).round() as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Stream, Streams};
    use rand::RngExt;
    use rand_distr::{Cauchy, Distribution, StandardNormal};

    /// Scaled x_o and x_o + `step`, by 1000 simulations of one summary.
    fn scaled(x_o: f64, step: f64, draw: impl Fn(&mut Stream) -> f64) -> [f64; 2] {
        let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
        let x: Vec<f64> = (0..1000).map(|_| draw(&mut rng)).collect();
        let rows = Rows::new("x", &x, 1).unwrap();
        let scaling = Scaling::near(&[x_o], rows, rows);
        assert!(scaling.is_valid(1));
        [x_o, x_o + step].map(|x| scaling.scaled(0, x))
    }

    fn normal(rng: &mut Stream) -> f64 {
        StandardNormal.sample(rng)
    }

    /// A deviation of the bulk is about a unit, for any share of sentinels and wherever they are. Quantiles of 600 draws
    /// have a standard error of 5 %, and the reach of the bulk cuts off its own tails.
    #[test]
    fn sentinels_leave_the_bulk_resolved() {
        for sentinel in [-999.0, 1e30, 8.0, 0.5] {
            for share in [0.0, 0.05, 0.2, 0.4] {
                let draw = |rng: &mut Stream| match rng.random::<f64>() < share {
                    true => sentinel,
                    false => normal(rng),
                };
                let [at, next] = scaled(0.3, 1.0, draw);
                assert!((next - at - 1.0).abs() < 0.2, "{sentinel} {share}: {at} {next}");
                assert!(at.abs() < 1.0, "{sentinel} {share}: {at}");
            }
        }
    }

    #[test]
    fn tails_orders_of_magnitude_and_offsets_leave_x_o_resolved() {
        let cauchy = Cauchy::new(0.0, 1.0).unwrap();
        let [at, next] = scaled(0.3, 1.0, |rng| cauchy.sample(rng));
        assert!((0.3..3.0).contains(&(next - at)), "{at} {next}");
        // Over twelve orders, a factor of ten is the same step everywhere: 12 of them are 3.5 deviations of a uniform law.
        for x_o in [1e-4, 1.0, 100.0] {
            let orders = |rng: &mut Stream| 10f64.powf(rng.random_range(-6.0..6.0));
            let [at, next] = scaled(x_o, 9.0 * x_o, orders);
            assert!((0.2..0.4).contains(&(next - at)), "{x_o}: {at} {next}");
        }
        // The largest ones are resolved as they are.
        let [at, next] = scaled(1e4, 1e4, |rng| 10f64.powf(rng.random_range(-6.0..6.0)));
        assert!((0.2..4.0).contains(&(next - at)) && at < 4.0, "{at} {next}");
        let [at, next] = scaled(2459000.5, 1e-3, |rng| 2459000.5 + 1e-3 * normal(rng));
        assert!((next - at - 1.0).abs() < 0.1, "{at} {next}");
        let [at, next] = scaled(0.0, 1e-300, |rng| 1e-300 * normal(rng));
        assert!((next - at - 1.0).abs() < 0.1, "{at} {next}");
    }

    #[test]
    fn constants_keep_their_unit_and_their_exceptions_give_the_scale() {
        assert_eq!(scaled(3.0, 1.0, |_| 3.0), [0.0, 1.0]);
        let rare = |rng: &mut Stream| if rng.random::<f64>() < 0.01 { 1e-6 } else { 0.0 };
        let [at, next] = scaled(0.0, 1e-6, rare);
        assert_eq!((at, next), (0.0, 1.0));
    }

    /// Of a plain summary the scale is that of all simulations.
    #[test]
    fn plain_summaries_are_scaled_by_all_simulations() {
        let mut rng = Streams::new(2).stream(Purpose::Synthetic, 0, 0);
        let mut x: Vec<f64> = (0..1000).map(|_| rng.random()).collect();
        let scaling = {
            let rows = Rows::new("x", &x, 1).unwrap();
            Scaling::near(&[0.7], rows, rows)
        };
        x.sort_unstable_by(f64::total_cmp);
        let spread = (quantile(&x, 0.8413) - quantile(&x, 0.1587)) / 2.0;
        assert_eq!((scaling.mean[0], scaling.scale[0]), (median(&x), spread));
    }
}
