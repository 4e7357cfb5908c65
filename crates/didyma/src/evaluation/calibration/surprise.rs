//! Is an observation like simulations? All of its summaries together, by an exact test.
//!
//! Under the model the observation is one more draw of the simulations' law: any order of the n + 1 points is as likely as any
//! other. So a statistic that treats all points alike ranks the observation uniformly, whatever the law, and the p-value
//! (1 + rows at least as far out) / (n + 1) is exact for any n. Three views say how far out a point is, each best at
//! something else:
//!
//! - the distance to its neighbours in scaled summaries finds what lies between modes or off a curve;
//! - the same in uncorrelated summaries finds broken correlations, and many small shifts;
//! - its largest feature, and largest residual by its other summaries, finds one wrong summary among hundreds.
//!
//! A point's statistic is the logarithm of the mean of 1/p over the views, where p is its rank in a view as a share: the
//! smallest rank counts most. Its own rank among all points is exact again, since all points are still treated alike; the
//! price for looking three times is a smallest p-value of up to 3 / (n + 1) where only one view is surprised.

use super::cloud::Cloud;
use crate::error::Result;
use crate::parallel;
use crate::rows::Rows;

/// Rows that are looked at, at most.
const MOST: usize = 1000;
/// Rows squared times summaries, at most: some tenths of a second.
const WORK: usize = 100_000_000;
/// Summaries that are named, at most, and their least part of the largest contribution.
const NAMED: usize = 3;
const PART: f64 = 0.5;
/// Numbers that are added up side by side.
const LANES: usize = 8;

/// How surprising an observation is among simulations.
///
/// ```
/// use didyma::{Rows, calibration::Surprise};
/// // Points of a circle: its centre is in the middle of each summary, and far from all of them.
/// let angle = |i: i32| f64::from(i) * 0.1;
/// let x: Vec<f64> = (0..62).flat_map(|i| [angle(i).cos(), angle(i).sin()]).collect();
/// let found = Surprise::of(&[0.0, 0.0], Rows::new("x", &x, 2)?, 1)?;
/// assert!(found.p_value < 0.05);
/// assert!(Surprise::of(&[0.6, 0.8], Rows::new("x", &x, 2)?, 1)?.p_value > 0.05);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Surprise {
    /// Simulations that were looked at.
    pub rows: usize,
    /// How far out the observation is: the logarithm of the mean of 1/p over the views.
    pub statistic: f64,
    /// Share of the points, the observation among them, that are at least as far out: uniform if it is one of them.
    pub p_value: f64,
    /// The summaries that contribute most, by their number from 0; the first one most.
    pub foremost: Vec<usize>,
}

impl Surprise {
    /// The surprise of `x_o` among simulated rows, in any units: each summary is scaled by all points. Of many rows some
    /// are looked at, evenly spread. The result is the same for any number of threads.
    pub fn of(x_o: &[f64], rows: Rows, threads: usize) -> Result<Self> {
        let columns = rows.columns();
        let observed = Rows::new("x_o", x_o, x_o.len())?;
        observed.expect_columns(columns, "a number for each column of the simulations")?;
        observed.expect_finite()?;
        rows.expect_finite()?;
        rows.expect_rows_from(Self::LEAST, "at least: fewer tell nothing; simulate more")?;
        parallel::check_threads(threads)?;
        let most = (WORK / columns).isqrt().clamp(Self::LEAST, MOST).min(rows.len());
        let chosen = (0..most).flat_map(|i| rows.row(i * rows.len() / most));
        let points: Vec<f64> = chosen.chain(x_o).copied().collect();
        let cloud = Cloud::of(Rows::new("x", &points, columns)?);
        let views = [
            distances(&cloud.features, columns, threads),
            distances(&cloud.whitened, columns, threads),
            largest(&cloud),
        ];
        let shares = views.map(|view| shares(&view));
        let statistics: Vec<f64> = (0..=most)
            .map(|i| (shares.iter().map(|p| 1.0 / p[i]).sum::<f64>() / 3.0).ln())
            .collect();
        let p_value = share_from(&statistics, statistics[most]);
        let between = shares[0][most] < shares[1][most].min(shares[2][most]);
        let foremost = foremost(&contributions(&cloud, between));
        Ok(Self { rows: most, statistic: statistics[most], p_value, foremost })
    }

    /// Rows that are needed at least.
    const LEAST: usize = 4;

    /// Names of the foremost summaries.
    pub fn names<'a>(&self, names: &'a [String]) -> Vec<&'a str> {
        self.foremost.iter().filter_map(|&i| names.get(i)).map(String::as_str).collect()
    }
}

/// Neighbours whose farthest says how far a point is from the others: few, so that small modes have them.
fn neighbours(others: usize) -> usize {
    ((others as f64).sqrt() / 4.0).round().max(1.0) as usize
}

/// Squared distance of each point to its neighbour of that rank among the others.
fn distances(points: &[f64], columns: usize, threads: usize) -> Vec<f64> {
    let count = points.len() / columns;
    let rank = neighbours(count - 1) - 1;
    parallel::map(count, threads, |i| {
        let mut all = squares(points, columns, i);
        all.swap_remove(i);
        *all.select_nth_unstable_by(rank, f64::total_cmp).1
    })
}

/// Squared distances of a point to all points.
fn squares(points: &[f64], columns: usize, of: usize) -> Vec<f64> {
    let point = &points[of * columns..][..columns];
    points.chunks_exact(columns).map(|other| square_distance(point, other)).collect()
}

/// In lanes, which the compiler makes vectors of.
fn square_distance(a: &[f64], b: &[f64]) -> f64 {
    let square = |(a, b): (&f64, &f64)| (a - b) * (a - b);
    let mut sums = [0.0; LANES];
    let (a_lanes, b_lanes) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let rest: f64 = a_lanes.remainder().iter().zip(b_lanes.remainder()).map(square).sum();
    for (a, b) in a_lanes.zip(b_lanes) {
        sums.iter_mut().zip(a.iter().zip(b)).for_each(|(sum, pair)| *sum += square(pair));
    }
    rest + sums.iter().sum::<f64>()
}

/// The size of each point's largest feature or residual.
fn largest(cloud: &Cloud) -> Vec<f64> {
    let features = cloud.features.chunks_exact(cloud.columns);
    let rows = features.zip(cloud.residuals.chunks_exact(cloud.columns));
    let size = |largest: f64, v: &f64| largest.max(v.abs());
    rows.map(|(features, residuals)| features.iter().chain(residuals).fold(0.0, size)).collect()
}

/// The share of points that are at least as far out as each, itself among them.
fn shares(view: &[f64]) -> Vec<f64> {
    let mut sorted = view.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let from = |v: &f64| view.len() - sorted.partition_point(|other| other < v);
    view.iter().map(|v| from(v) as f64 / view.len() as f64).collect()
}

fn share_from(all: &[f64], least: f64) -> f64 {
    all.iter().filter(|v| **v >= least).count() as f64 / all.len() as f64
}

/// How much each summary contributes to what is surprising of the last point: its distance to the neighbours, or its own
/// size and residual.
fn contributions(cloud: &Cloud, between: bool) -> Vec<f64> {
    let Cloud { columns, features, residuals, .. } = cloud;
    let (columns, last) = (*columns, features.len() / columns - 1);
    let own = |all: &[f64], column: usize| all[last * columns + column];
    if !between {
        let size = |i| own(features, i).abs().max(own(residuals, i).abs());
        return (0..columns).map(size).collect();
    }
    let mut nearest: Vec<(usize, f64)> =
        squares(features, columns, last).into_iter().enumerate().take(last).collect();
    nearest.sort_by(|a, b| a.1.total_cmp(&b.1));
    nearest.truncate(neighbours(last));
    let gap = |i: usize| {
        let squares = nearest.iter().map(|(row, _)| features[row * columns + i] - own(features, i));
        squares.map(|gap| gap * gap).sum::<f64>().sqrt()
    };
    (0..columns).map(gap).collect()
}

/// The summaries with the largest contributions, in order.
fn foremost(contributions: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contributions.len()).collect();
    order.sort_by(|a, b| contributions[*b].total_cmp(&contributions[*a]));
    let least = PART * order.first().map_or(0.0, |first| contributions[*first]);
    order.retain(|i| contributions[*i] >= least);
    order.truncate(NAMED);
    order
}

#[cfg(test)]
mod tests;
