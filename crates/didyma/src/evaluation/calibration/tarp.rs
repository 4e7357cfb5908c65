//! TARP: the coverage of balls around points of reference.

use super::ranks::{Ranks, check_draws};
use super::uniformity::Uniformity;
use crate::error::{Error, Result};
use crate::math::kolmogorov;
use crate::parallel;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use rand::RngExt;
use serde::Serialize;

/// Keeps a parameter without width from being divided by 0, as in sbi.
const LEAST_WIDTH: f64 = 1e-10;

/// Coverage of random balls ("tests of accuracy with random points", Lemos et al. 2023).
///
/// For each pair (θ_i, x_i) and a point of reference r_i, f_i is the share of draws from q(· | x_i) that are nearer to
/// r_i than θ_i is. Right posteriors have uniform f_i, whatever the points are, and if f_i is uniform for all ways to
/// choose points by x, the posteriors are right. Points that do not depend on x, as the default ones, cannot see
/// a posterior that ignores x and is the prior.
///
/// Distances are Euclidean, in units of the box that `theta` fills.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Tarp {
    /// f_i of every row.
    pub credibility: Vec<f64>,
    /// Credibilities at which the curve is given: the ends of even bins from the smallest f_i to the largest, in single
    /// precision, as sbi's `run_tarp` returns them.
    pub alpha: Vec<f64>,
    /// Expected coverage at each α: the share of f_i in the bins below it.
    pub ecp: Vec<f64>,
    /// Area between curve and diagonal for α > ½, sbi's `atc`: above 0 too wide, below 0 too narrow or biased.
    pub area: f64,
    /// sbi's p-value: of a two-sample Kolmogorov–Smirnov test between `ecp` and `alpha`. Its rows are the bins and not the
    /// simulations, so that it is near 1 for all but the worst posteriors; `uniformity` has a p-value that holds.
    pub ks_p_value: f64,
    /// The test of randomised f_i against the uniform law.
    pub uniformity: Uniformity,
}

impl Tarp {
    /// Of the posteriors that `draws` come from: row i L + l of `draws` is draw l for row i of `theta`. `references` has
    /// a point for each row, by default drawn evenly from the box that `theta` fills; the curve has `bins` bins, by
    /// default a tenth of the rows.
    pub fn of(
        theta: Rows,
        draws: Rows,
        references: Option<Rows>,
        bins: Option<usize>,
        threads: usize,
        streams: &Streams,
    ) -> Result<Self> {
        parallel::check_threads(threads)?;
        let count = check_draws(theta, draws)?;
        let bins = bins.unwrap_or(theta.len() / 10);
        if !(1..=1_000_000).contains(&bins) {
            return Err(Error::setting("bins", bins, "between 1 and 1000000"));
        }
        let bounds = bounds(theta);
        let drawn = if references.is_none() { draw(theta.len(), &bounds, streams) } else { vec![] };
        let points = match references {
            Some(given) => given,
            None => Rows::new("references", &drawn, theta.columns())?,
        };
        points.expect_columns(theta.columns(), "as many as theta has")?;
        points.expect_rows(theta.len(), "one for each row of theta")?;
        points.expect_finite()?;
        let nearer = nearer((theta, draws, points), count, &bounds, threads);
        Self::from_counts(&nearer, count, bins, streams)
    }

    /// From the numbers of draws nearer than the truth, and as near.
    fn from_counts(
        nearer: &[(usize, usize)],
        draws: usize,
        bins: usize,
        streams: &Streams,
    ) -> Result<Self> {
        let ranks = Ranks::ranked((nearer.len(), 1, draws), |row, _| nearer[row], streams, 2);
        let credibility: Vec<f64> =
            nearer.iter().map(|&(nearer, _)| nearer as f64 / draws as f64).collect();
        let (ecp, alpha) = curve(&credibility, bins);
        let middle = alpha.len() / 2;
        let gaps = ecp[middle..].iter().zip(&alpha[middle..]).map(|(ecp, alpha)| ecp - alpha);
        let area = gaps.sum::<f64>() * (alpha[1] - alpha[0]);
        // In single precision, in which shares that are the same number are equal.
        let shares: Vec<f64> = ecp.iter().map(|&share| f64::from(share as f32)).collect();
        let steps = kolmogorov::two_sample_steps(&shares, &alpha);
        let ks_p_value = kolmogorov::two_sample_p_value(alpha.len(), steps);
        let uniformity = Uniformity::of(&ranks.values(0))?;
        Ok(Self { credibility, alpha, ecp, area, ks_p_value, uniformity })
    }
}

/// For each row, how many of its draws are nearer to its point of reference than the truth, and how many as near.
fn nearer(
    (theta, draws, points): (Rows, Rows, Rows),
    count: usize,
    bounds: &[(f64, f64)],
    threads: usize,
) -> Vec<(usize, usize)> {
    parallel::map(theta.len(), threads, |row| {
        let distance = |of: &[f64]| distance(points.row(row), of, bounds);
        let truth = distance(theta.row(row));
        let others = (0..count).map(|draw| distance(draws.row(row * count + draw)));
        others.fold((0, 0), |(nearer, equal), other| {
            (nearer + usize::from(other < truth), equal + usize::from(other == truth))
        })
    })
}

/// Smallest and largest value of each parameter.
fn bounds(theta: Rows) -> Vec<(f64, f64)> {
    let column = |c: usize| theta.iter().map(move |row| row[c]);
    let bounds = |c: usize| {
        (column(c).fold(f64::INFINITY, f64::min), column(c).fold(f64::NEG_INFINITY, f64::max))
    };
    (0..theta.columns()).map(bounds).collect()
}

/// A point for each row, evenly from a box.
fn draw(rows: usize, bounds: &[(f64, f64)], streams: &Streams) -> Vec<f64> {
    let mut rng = streams.stream(Purpose::References, 0, 0);
    let mut point = |&(low, high): &(f64, f64)| low + (high - low) * rng.random::<f64>();
    (0..rows).flat_map(|_| bounds.iter().map(&mut point).collect::<Vec<_>>()).collect()
}

/// Squared distance, in units of the box.
fn distance(a: &[f64], b: &[f64], bounds: &[(f64, f64)]) -> f64 {
    let unit = |(low, high): &(f64, f64)| high - low + LEAST_WIDTH;
    let pairs = a.iter().zip(b).zip(bounds);
    pairs.map(|((a, b), bounds)| ((a - b) / unit(bounds)).powi(2)).sum()
}

/// The distribution function of credibilities at the ends of even bins, and these ends, as torch's `histogram` cuts them:
/// in single precision, the last bin closed.
fn curve(credibility: &[f64], bins: usize) -> (Vec<f64>, Vec<f64>) {
    let mut values: Vec<f32> = credibility.iter().map(|&f| f as f32).collect();
    values.sort_unstable_by(f32::total_cmp);
    let (mut low, mut high) = (values[0], values[values.len() - 1]);
    if low == high {
        (low, high) = (low - 0.5, high + 0.5);
    }
    let step = (high - low) / bins as f32;
    // From both ends, so that both are exact.
    let end = |i: usize| {
        if i < bins.div_ceil(2) { low + step * i as f32 } else { high - step * (bins - i) as f32 }
    };
    let ends: Vec<f32> = (0..=bins).map(end).collect();
    let below = |i: usize| match i {
        _ if i == bins => values.len(),
        _ => values.partition_point(|value| *value < ends[i]),
    };
    let ecp = (0..=bins).map(|i| below(i) as f64 / values.len() as f64).collect();
    (ecp, ends.into_iter().map(f64::from).collect())
}
