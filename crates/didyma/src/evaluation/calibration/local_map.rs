//! The local test of a run: is q right at the observation, by simulations that training never saw?

use super::{HeldOut, LEAST_LOCAL_ROWS, LocalFinding, LocalMap, LocalSettings, LocalTest, Sets};
use crate::error::Result;
use crate::inference::failures::FLOOR;
use crate::inference::posterior::SampleStreams;
use crate::math::particles::{Cumulative, normalised};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use rand::RngExt;
use std::collections::HashSet;

/// Draws of q at x_o that classifiers are evaluated at, and draws among which these are chosen.
const EVALUATED: usize = 500;
const DRAWN: usize = 5000;
/// Pairs that classifiers are trained on, at most: a hundred and one trainings are to take a minute.
const MOST: usize = 1000;

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
    /// The classes have the laws p(θ | x) p̃ / p and q(θ | x) p̃ / p, up to their constants, so that the odds d / (1 − d) are
    /// those of p(θ | x) and q(θ | x) up to a factor for each x. At x_o they are known where training pairs lie: classifiers
    /// are evaluated at draws of q(· | x_o), chosen in proportion to p̃ / p of the newest law. The choice is no part of the
    /// proof: all trials are evaluated at the same draws.
    ///
    /// θ is in the flow's coordinates, x in the units that q reads. None of too few pairs.
    ///
    /// [`Candidates`]: super::Candidates
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
        let theta = evaluated(held_out, streams, threads)?;
        let z: Vec<f64> = theta.chunks_exact(dim).flat_map(|row| to_z(held_out, row)).collect();
        let LocalFinding { p_value, statistic, probabilities, .. } =
            test.at(&own, Rows::new("theta", &z, dim)?)?;
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
            let of = |candidate| -> Vec<f64> {
                (0..dim).map(|i| candidates.value(i, set, candidate)).collect()
            };
            let truth = of(0);
            if !known.insert(truth.iter().map(|t| t.to_bits()).collect::<Vec<_>>()) {
                continue;
            }
            let place = streams.stream(Purpose::LocalPairs, 0, set as u64).random();
            let drawn = of(Cumulative::new(candidates.weights(set)).at(place));
            let (truth, drawn) = (to_z(held_out, &truth), to_z(held_out, &drawn));
            // At the very border of the prior the unbounded coordinates have no number.
            if truth.iter().chain(&drawn).all(|z| z.is_finite()) && known.len() <= MOST {
                pairs.truth.extend(truth);
                pairs.drawn.extend(drawn);
                pairs.features.extend_from_slice(features);
            }
        }
        pairs
    }
}

/// θ in the flow's coordinates.
fn to_z(held_out: &HeldOut, theta: &[f64]) -> Vec<f64> {
    let posterior = held_out.posterior;
    let mut z = vec![0.0; theta.len()];
    posterior.coordinates.to_z(posterior.prior(), theta, &mut z);
    z
}

/// Draws of q(· | x_o), chosen in proportion to p̃ s / p of the newest law; in equal shares if that is nowhere.
fn evaluated(held_out: &HeldOut, streams: &Streams, threads: usize) -> Result<Vec<f64>> {
    let (posterior, dim) = (held_out.posterior, held_out.posterior.dim());
    let drawing = SampleStreams::new(*streams, Purpose::LocalDraws, 0);
    let mut theta = posterior.draw(DRAWN, drawing, threads)?.theta;
    let finite = |row: &[f64]| to_z(held_out, row).iter().all(|z| z.is_finite());
    theta = theta.chunks_exact(dim).filter(|row| finite(row)).flatten().copied().collect();
    let rows = Rows::new("theta", &theta, dim)?;
    let newest = held_out.rows.iter().max_by_key(|row| row.round).map_or(0, |row| row.law);
    let mut log_weights = held_out.laws[newest].log_ratio(rows)?;
    if let Some(validity) = held_out.success {
        let s = validity.probabilities(rows);
        log_weights.iter_mut().zip(s).for_each(|(weight, s)| *weight += s.max(FLOOR).ln());
    }
    if !log_weights.iter().any(|weight| weight.is_finite()) {
        log_weights.fill(0.0);
    }
    let cumulative = Cumulative::new(&normalised(&log_weights));
    let mut rng = streams.stream(Purpose::LocalDraws, 1, 0);
    let chosen =
        (0..EVALUATED).map(|i| cumulative.at((i as f64 + rng.random::<f64>()) / EVALUATED as f64));
    Ok(chosen.flat_map(|row| rows.row(row).to_vec()).collect())
}
