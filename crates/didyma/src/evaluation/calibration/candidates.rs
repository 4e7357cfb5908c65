//! Sets of candidates: parameters that made an x among draws of q(θ | x), told apart by nothing if q is exact.

use crate::error::Result;
use crate::math::particles::{Cumulative, effective, normalised};
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::RngExt;

/// For each of several x a set of candidates: first the parameters θ_0 that made it, then draws θ_1, …, θ_L of q(· | x).
///
/// Simulations of a run come from a proposal p̃, not from the prior p. If q is exact, θ_0 has the law π ∝ q p̃ / p given x, and
/// the others have q. With w = p̃ / p the joint density of a set, θ_j being the one that made x, is
///
/// ```text
/// π(θ_j) ∏_{k ≠ j} q(θ_k) ∝ w(θ_j) ∏_k q(θ_k)
/// ```
///
/// so that, given the set alone, the one that made x is number j with probability w_j / Σ w: exactly, for any number of draws
/// and any weights. Every test of this room compares the place of θ_0 with that law. A set whose weight lies on one candidate
/// says nothing, and raises no false alarm either.
#[derive(Clone, Debug)]
pub struct Candidates {
    each: usize,
    /// Of each candidate, set after set.
    weights: Vec<f64>,
    /// For each statistic the numbers of all candidates.
    statistics: Vec<Vec<f64>>,
}

impl Candidates {
    /// Sets of `each` candidates, by the logarithm of each candidate's weight. A set without any weight is not among them:
    /// the mask says which sets are.
    pub fn new(each: usize, log_weights: &[f64]) -> (Self, Vec<bool>) {
        let sets = log_weights.chunks_exact(each);
        let usable = |set: &[f64]| set[0].is_finite() && !set.iter().any(|w| w.is_nan());
        let kept: Vec<bool> = sets.clone().map(usable).collect();
        let weights = sets.zip(&kept).filter(|(_, kept)| **kept);
        let weights = weights.flat_map(|(set, _)| normalised(set)).collect();
        (Self { each, weights, statistics: Vec::new() }, kept)
    }

    /// Adds a statistic: a number for each candidate of the sets that are kept, set after set.
    ///
    /// # Panics
    /// Unless there is one number for each candidate.
    pub fn with(mut self, statistic: Vec<f64>) -> Self {
        assert_eq!(statistic.len(), self.weights.len(), "one number for each candidate");
        self.statistics.push(statistic);
        self
    }

    /// Adds the columns of θ, one row for each candidate of the sets that are kept.
    pub fn with_parameters(self, theta: Rows) -> Result<Self> {
        theta.expect_rows(self.weights.len(), "one for each candidate")?;
        let column = |i: usize| theta.iter().map(|row| row[i]).collect();
        Ok((0..theta.columns()).map(column).fold(self, Self::with))
    }

    /// Adds the distance of each candidate to a point of the box that holds its set, in units of the box's sides; one row for
    /// each candidate of the sets that are kept. The point depends on the set alone, whichever of the candidates made x.
    pub fn with_distances(self, theta: Rows, streams: &Streams) -> Result<Self> {
        theta.expect_rows(self.weights.len(), "one for each candidate")?;
        let sets = theta.data().chunks_exact(self.each * theta.columns()).enumerate();
        let all = sets.flat_map(|(set, rows)| {
            let mut rng = streams.stream(Purpose::References, 0, set as u64);
            distances(rows, theta.columns(), &mut rng)
        });
        let all = all.collect();
        Ok(self.with(all))
    }

    /// Number of sets.
    pub fn len(&self) -> usize {
        self.weights.len() / self.each
    }

    /// True if there is no set.
    pub fn is_empty(&self) -> bool {
        self.weights.is_empty()
    }

    /// Candidates of a set.
    pub fn each(&self) -> usize {
        self.each
    }

    /// Number of statistics.
    pub fn statistics(&self) -> usize {
        self.statistics.len()
    }

    /// A statistic of a candidate.
    pub fn value(&self, statistic: usize, set: usize, candidate: usize) -> f64 {
        self.statistics[statistic][set * self.each + candidate]
    }

    /// Weights of the candidates of a set, which sum to 1.
    pub fn weights(&self, set: usize) -> &[f64] {
        &self.weights[set * self.each..(set + 1) * self.each]
    }

    /// The candidate of a set at a place from 0 to 1 of their weights: at a uniform place, number j with probability w_j, as the
    /// one that made x. All candidates take part, θ_0 too, so that it and θ_0 may change places without notice.
    pub(crate) fn drawn(&self, set: usize, place: f64) -> usize {
        Cumulative::new(self.weights(set)).at(place)
    }

    /// How many candidates of equal weight a set is worth: 1 / Σ w², the mean over the sets.
    pub fn effective(&self) -> f64 {
        let sets = self.weights.chunks_exact(self.each);
        sets.map(effective).sum::<f64>() / self.len().max(1) as f64
    }

    /// The weight below each candidate of a set by a statistic, and that of those level with it.
    pub fn below(&self, statistic: usize, set: usize) -> Vec<(f64, f64)> {
        let values = &self.statistics[statistic][set * self.each..(set + 1) * self.each];
        let weights = self.weights(set);
        let mut order: Vec<usize> = (0..self.each).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut found = vec![(0.0, 0.0); self.each];
        let mut sum = 0.0;
        for level in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let here: f64 = level.iter().map(|&k| weights[k]).sum();
            level.iter().for_each(|&k| found[k] = (sum, here));
            sum += here;
        }
        found
    }

    /// The place of θ_0 in each set by a statistic, from 0 to 1: the weight below it, and a uniform share of the weight level
    /// with it. Uniform if q is exact.
    pub fn places(&self, statistic: usize, rng: &mut Stream) -> Vec<f64> {
        let place = |set| {
            let (below, level) = self.below(statistic, set)[0];
            (below + level * rng.random::<f64>()).clamp(0.0, 1.0)
        };
        (0..self.len()).map(place).collect()
    }
}

/// Distances of rows to a uniform point of the box that holds them all.
fn distances(rows: &[f64], dim: usize, rng: &mut Stream) -> Vec<f64> {
    let ends = |i: usize| {
        let column = rows.iter().skip(i).step_by(dim);
        column.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), &z| (low.min(z), high.max(z)))
    };
    let point = |(low, high): (f64, f64)| {
        let side = (high - low).max(f64::MIN_POSITIVE);
        (low + side * rng.random::<f64>(), side)
    };
    let points: Vec<(f64, f64)> = (0..dim).map(ends).map(point).collect();
    let distance = |row: &[f64]| {
        let along = row.iter().zip(&points).map(|(z, (at, side))| (z - at) / side);
        along.map(|d| d * d).sum::<f64>().sqrt()
    };
    rows.chunks_exact(dim).map(distance).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::math::mean_and_deviation;
    use rand_distr::{Distribution, StandardNormal};

    /// θ_0 of π ∝ q w by rejection, q standard normal, w = exp(slope θ) cut at 5; draws of q; their statistic is θ.
    fn sets(sets: usize, draws: usize, slope: f64, width: f64) -> (Candidates, Stream) {
        let mut rng = Streams::new(7).stream(Purpose::Synthetic, 0, 0);
        let log_weight = |theta: f64| (slope * theta).min(5f64.ln());
        let (mut all, mut log_weights) = (Vec::new(), Vec::new());
        for _ in 0..sets {
            let own = loop {
                let theta: f64 = StandardNormal.sample(&mut rng);
                if rng.random::<f64>() * 5.0 < log_weight(theta).exp() {
                    break theta;
                }
            };
            let others = (0..draws).map(|_| {
                let z: f64 = StandardNormal.sample(&mut rng);
                width * z
            });
            let set: Vec<f64> = [own].into_iter().chain(others).collect();
            log_weights.extend(set.iter().map(|&theta| log_weight(theta)));
            all.extend(set);
        }
        let (candidates, kept) = Candidates::new(draws + 1, &log_weights);
        assert!(kept.iter().all(|kept| *kept));
        (candidates.with(all), rng)
    }

    fn places(number: usize, draws: usize, slope: f64, width: f64) -> (Vec<f64>, f64) {
        let (candidates, mut rng) = sets(number, draws, slope, width);
        (candidates.places(0, &mut rng), candidates.effective())
    }

    /// (θ_0, θ_J) and (θ_J, θ_0) have one law: differences of θ and of θ² have mean 0, within four standard errors. With weights
    /// that rise by e² in a standard deviation and three draws, a J that may not be 0 is seen at once.
    #[test]
    fn a_candidate_by_weight_may_change_places_with_the_one_that_made_x() {
        let (candidates, mut rng) = sets(4000, 3, 2.0, 1.0);
        let truth = |set| candidates.value(0, set, 0);
        let z = |drawn: &[f64], power: i32| {
            let differences: Vec<f64> = drawn
                .iter()
                .enumerate()
                .map(|(set, d)| d.powi(power) - truth(set).powi(power))
                .collect();
            let (mean, deviation) = mean_and_deviation(&differences);
            mean / (deviation / (differences.len() as f64).sqrt())
        };
        let of = |set, candidate| candidates.value(0, set, candidate);
        let drawn: Vec<f64> =
            (0..candidates.len()).map(|set| of(set, candidates.drawn(set, rng.random()))).collect();
        assert!(z(&drawn, 1).abs() < 4.0 && z(&drawn, 2).abs() < 4.0, "{}", z(&drawn, 1));
        let others: Vec<f64> = (0..candidates.len())
            .map(|set| {
                let weights = &candidates.weights(set)[1..];
                let total: f64 = weights.iter().sum();
                let shares: Vec<f64> = weights.iter().map(|w| w / total).collect();
                of(set, 1 + Cumulative::new(&shares).at(rng.random()))
            })
            .collect();
        assert!(z(&others, 1).abs() > 8.0, "{}", z(&others, 1));
    }

    /// Mean ½ and variance 1/12 with errors 1/√(12 n) and 1/√(180 n), four of them; even with three draws and weights that
    /// leave a set worth little.
    #[test]
    fn places_are_uniform_for_any_weights_and_number_of_draws() {
        for (draws, slope) in [(3, 0.0), (3, 2.0), (50, 0.5), (50, 2.0)] {
            let n = 4000;
            let (places, effective) = places(n, draws, slope, 1.0);
            let (mean, deviation) = mean_and_deviation(&places);
            assert!(effective <= draws as f64 + 1.0 + 1e-9);
            let error = 4.0 / (12.0 * n as f64).sqrt();
            assert!((mean - 0.5).abs() < error, "{draws} {slope}: {mean}");
            let error = 4.0 / (180.0 * n as f64).sqrt();
            assert!((deviation.powi(2) - 1.0 / 12.0).abs() < error, "{draws} {slope}");
        }
    }

    /// A q that is twice too wide has places nearer to ½: var 0.0423 instead of 0.0833, far beyond four errors.
    #[test]
    fn places_of_a_wide_law_are_not_uniform() {
        let (_, deviation) = mean_and_deviation(&places(1000, 50, 0.5, 2.0).0);
        assert!(deviation.powi(2) < 1.0 / 12.0 - 8.0 / (180.0 * 1000f64).sqrt());
    }

    #[test]
    fn a_set_without_weight_is_left_out_and_ties_are_shared() {
        let none = f64::NEG_INFINITY;
        let (candidates, kept) = Candidates::new(2, &[0.0, none, none, 0.0, 0.0, 0.0]);
        assert_eq!(kept, [true, false, true]);
        let candidates = candidates.with(vec![1.0, 2.0, 3.0, 3.0]);
        assert_eq!(candidates.below(0, 0), [(0.0, 1.0), (1.0, 0.0)]);
        assert_eq!(candidates.below(0, 1), [(0.0, 1.0), (0.0, 1.0)]);
        assert_eq!((candidates.len(), candidates.effective()), (2, 1.5));
    }
}
