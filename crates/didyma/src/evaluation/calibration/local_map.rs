//! The local test of a run: is q right at the observation, by simulations that training never saw?

use super::{
    Candidates, HeldOut, LEAST_LOCAL_ROWS, LocalFinding, LocalMap, LocalSettings, LocalTest, Sets,
};
use crate::error::Result;
use crate::inference::failures::FLOOR;
use crate::inference::posterior::SampleStreams;
use crate::math::cholesky::Cholesky;
use crate::math::normal;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::RngExt;
use std::collections::HashSet;

/// Draws of q at x_o that classifiers are evaluated at, and draws among which these are chosen.
const EVALUATED: usize = 500;
const DRAWN: usize = 5000;
/// Pairs that classifiers are trained on, at most: a hundred and one trainings are to take a minute.
const MOST: usize = 1000;

/// Share below which a place counts no further out: what the places in a set of a hundred can tell.
const OUTERMOST: f64 = 0.005;
/// Weight of the identity in a set's covariance: sets may be worth few candidates.
const SHRINKAGE: f64 = 0.1;
/// A difference of logarithms beyond which a weight is nothing.
const WEIGHTLESS: f64 = 600.0;

/// θ_0 and θ_J of each set with its x, as the classifiers see them.
struct Pairs {
    truth: Vec<f64>,
    drawn: Vec<f64>,
    features: Vec<f64>,
}

impl LocalMap {
    /// Trains classifiers on sets of candidates, and looks at q with them at x_o.
    ///
    /// One class are the parameters θ_0 that made x, the other are θ_J, where J is drawn by the set's weights w ∝ p̃ / p **among
    /// all candidates, θ_0 included**. If q is exact, θ_0 is number j of its set with probability w_j ([`Candidates`]), given
    /// the set and x; so is θ_J, independently. So (θ_0, θ_J) and (θ_J, θ_0) have one law, for any weights and number of
    /// draws, and swapping each pair with probability ½ gives data of the very law of the data: the p-value of
    /// [`LocalTest::of_pairs`] is exact. (A J that may not be 0 would break it: with weights on one candidate, θ_0 would always
    /// be the heavy one.) A simulation that several members held out takes part once, or its θ_0 would stay together in pairs
    /// that are swapped apart.
    ///
    /// The classifiers see θ by its place in its set ([`in_its_set`]), since that is where an exact q has one law for every x, and
    /// x in the units that q reads. Coordinates that depend on the whole set, whichever candidate made x, leave the swap exact.
    ///
    /// The classes have the laws p(θ | x) p̃ / p and q(θ | x) p̃ / p, up to their constants, so that the odds d / (1 − d) are
    /// those of p(θ | x) and q(θ | x) up to a factor for each x. At x_o they are known where training pairs lie: classifiers
    /// are evaluated at draws of q(· | x_o), chosen in proportion to p̃ / p of the newest law, in coordinates of such a set. The
    /// choice is no part of the proof: all trials are evaluated at the same draws. None of too few pairs.
    pub(crate) fn of(
        held_out: &HeldOut,
        sets: &Sets,
        streams: &Streams,
        threads: usize,
    ) -> Result<Option<Self>> {
        let posterior = held_out.posterior;
        let dim = posterior.dim();
        let own: Vec<f64> =
            posterior.features(posterior.observation())?.into_iter().map(f64::from).collect();
        let pairs = Pairs::new(held_out, sets, own.len(), streams);
        if pairs.truth.len() < LEAST_LOCAL_ROWS * dim {
            return Ok(None);
        }
        let (truth, drawn) =
            (Rows::new("theta", &pairs.truth, dim)?, Rows::new("draws", &pairs.drawn, dim)?);
        let x = Rows::new("x", &pairs.features, own.len())?;
        let settings = LocalSettings::default();
        let test = LocalTest::of_pairs(truth, x, drawn, settings, threads, streams)?;
        let (theta, places) = evaluated(held_out, streams, threads)?;
        let LocalFinding { p_value, statistic, probabilities, .. } =
            test.at(&own, Rows::new("theta", &places, dim)?)?;
        let probability = probabilities.iter().map(|d| 1.0 - d).collect();
        Ok(Some(Self { p_value, statistic, theta, probability }))
    }
}

impl Pairs {
    fn new(held_out: &HeldOut, sets: &Sets, columns: usize, streams: &Streams) -> Self {
        let (candidates, dim) = (&sets.candidates, held_out.posterior.dim());
        let mut pairs = Self { truth: Vec::new(), drawn: Vec::new(), features: Vec::new() };
        let mut known = HashSet::new();
        for (set, features) in sets.features.chunks_exact(columns).enumerate() {
            let truth = (0..dim).map(|i| candidates.value(i, set, 0).to_bits());
            if !known.insert(truth.collect::<Vec<_>>()) {
                continue;
            }
            if known.len() > MOST {
                break;
            }
            let place = streams.stream(Purpose::LocalPairs, 0, set as u64).random();
            let drawn = candidates.drawn(set, place);
            let places = in_its_set(candidates, set, dim);
            pairs.truth.extend_from_slice(&places[..dim]);
            pairs.drawn.extend_from_slice(&places[drawn * dim..][..dim]);
            pairs.features.extend_from_slice(features);
        }
        pairs
    }
}

/// All candidates of a set in the set's own coordinates, row after row: the normal scores of their places by each parameter,
/// by the weights, without correlations: about standard normal, whatever x is. Functions of the set, whichever of them made x.
fn in_its_set(candidates: &Candidates, set: usize, dim: usize) -> Vec<f64> {
    let (each, weights) = (candidates.each(), candidates.weights(set));
    let mut scores = vec![0.0; each * dim];
    for i in 0..dim {
        for (k, (below, level)) in candidates.below(i, set).into_iter().enumerate() {
            let place = (below + 0.5 * level).clamp(OUTERMOST, 1.0 - OUTERMOST);
            scores[k * dim + i] = normal::quantile(place);
        }
    }
    let covariance = Cholesky::weighted_covariance(&scores, weights, dim);
    let unit = |k: usize| if k / dim == k % dim { SHRINKAGE } else { 0.0 };
    let mixed = covariance.iter().enumerate().map(|(k, c)| (1.0 - SHRINKAGE) * c + unit(k));
    if let Some(root) = Cholesky::new(&mixed.collect::<Vec<_>>(), dim) {
        scores.chunks_exact_mut(dim).for_each(|row| root.solve_lower(row));
    }
    scores
}

/// Draws of q(· | x_o), chosen in proportion to p̃ s / p of the newest law, and their places in a set of many.
fn evaluated(
    held_out: &HeldOut,
    streams: &Streams,
    threads: usize,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (posterior, dim) = (held_out.posterior, held_out.posterior.dim());
    let drawing = SampleStreams::new(*streams, Purpose::LocalDraws, 0);
    let theta = posterior.draw(DRAWN, drawing, threads)?.theta;
    let rows = Rows::new("theta", &theta, dim)?;
    let newest = held_out.rows.iter().max_by_key(|row| row.round).map_or(0, |row| row.law);
    let mut log_weights = held_out.laws[newest].log_ratio(rows)?;
    if let Some(validity) = held_out.success {
        let s = validity.probabilities(rows);
        log_weights.iter_mut().zip(s).for_each(|(weight, s)| *weight += s.max(FLOOR).ln());
    }
    // A draw without weight is never chosen; where none has any, all count alike.
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let least = if top.is_finite() { top - WEIGHTLESS } else { 0.0 };
    log_weights.iter_mut().for_each(|weight| *weight = weight.max(least));
    let candidates = Candidates::new(DRAWN, &log_weights).0.with_parameters(rows)?;
    let places = in_its_set(&candidates, 0, dim);
    let mut rng = streams.stream(Purpose::LocalDraws, 1, 0);
    let place = |i: usize, rng: &mut Stream| (i as f64 + rng.random::<f64>()) / EVALUATED as f64;
    let chosen: Vec<usize> =
        (0..EVALUATED).map(|i| candidates.drawn(0, place(i, &mut rng))).collect();
    let of = |all: &[f64]| chosen.iter().flat_map(|k| all[k * dim..][..dim].to_vec()).collect();
    Ok((of(&theta), of(&places)))
}
