//! Moments of the places of θ_0 among its candidates, over all x and near x_o: shifts, widths, correlations, unused summaries.

use super::Candidates;
use crate::math::{normal, principal};
use crate::parallel;
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use rand::RngExt;

/// Redraws of the null: the smallest p-value is one in a thousand.
const REDRAWS: usize = 999;
/// Summaries, or principal directions of more, that places are compared with.
const DIRECTIONS: usize = 8;
/// Parameters up to which pairs of them are looked at.
const MOST_PAIRED: usize = 16;
/// Units beyond which a summary counts no more.
const FARTHEST: f64 = 3.0;
/// Variance that a moment has at least, summed over the sets: of fewer nothing is normal, and nothing is told.
const LEAST: f64 = 5.0;

/// A moment of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The mean of a statistic's score: θ_0 lies above its candidates, or below.
    Location(usize),
    /// Its square: θ_0 lies farther out than its candidates, or less far.
    Width(usize),
    /// The product of the scores of two parameters.
    Pair(usize, usize),
    /// The product with a summary, or a direction of summaries: q makes too much or too little of it.
    Summary(usize, usize),
}

/// A moment that was looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Deviation {
    /// The moment.
    pub moment: Moment,
    /// True if sets count by how near their x is to x_o.
    pub near: bool,
    /// Its distance from what an exact q gives, in standard errors.
    pub z: f64,
    /// The tilt of q that would explain it: q exp(tilt · moment) is nearer to the truth. Of a location it is the shift in
    /// standard deviations.
    pub tilt: f64,
}

/// All moments together.
#[derive(Clone, Debug, PartialEq)]
pub struct MomentTest {
    /// How often an exact q shows a moment at least as far out.
    pub p_value: f64,
    /// The moment that is farthest out, and those after it.
    pub deviations: Vec<Deviation>,
    /// How many sets of equal weight those near x_o are worth.
    pub near: f64,
    /// How many moments were looked at.
    pub moments: usize,
    /// The variance of the scores that θ_0 is compared by, summed over the sets, of the parameter that has least: a shift of 1/√ of
    /// it is one standard error.
    pub information: f64,
}

/// Sets of candidates as normal scores, with their x.
struct Scores<'a> {
    candidates: &'a Candidates,
    parameters: usize,
    /// For each set and candidate the scores of all statistics.
    scores: Vec<f64>,
    /// For each set its summaries in units of their deviation, or directions of them.
    summaries: Vec<f64>,
    directions: usize,
    moments: Vec<Moment>,
    /// What each set counts near x_o.
    nearness: Vec<f64>,
}

/// Sums over all sets, and over those near x_o.
type Sums = Vec<[f64; 2]>;

impl MomentTest {
    /// Compares moments of the places of θ_0 with those that its law given the candidates has. `features` are the x of the sets
    /// in the units that q reads, `own` are those of x_o; the first `parameters` statistics are the parameters.
    ///
    /// A candidate's score by a statistic is s = Φ⁻¹(its place). For a function φ of a set's scores and x, and weights K of sets,
    ///
    /// ```text
    /// Z = Σ_i K_i (φ_i(0) − Σ_k w_ik φ_i(k)) / √(Σ_i K_i² Var_w φ_i)
    /// ```
    ///
    /// has mean 0 and variance 1 if q is exact; the largest |Z| is compared with those of sets whose θ_0 is drawn anew by the
    /// weights, so that the p-value is exact for any number of sets, draws and moments.
    pub fn of(
        candidates: &Candidates,
        parameters: usize,
        (features, own): (Rows, &[f64]),
        streams: &Streams,
        threads: usize,
    ) -> Self {
        let scores = Scores::new(candidates, parameters, features, own);
        let (means, variances) = scores.expected();
        let found = scores.sums(&means, &mut |_| 0);
        let z = |sums: &Sums| -> Vec<[f64; 2]> {
            let of = |(sum, variance): (&[f64; 2], &[[f64; 2]; 2])| {
                [0, 1].map(|near| match variance[near][1] > LEAST {
                    true => sum[near] / variance[near][0].sqrt(),
                    false => 0.0,
                })
            };
            sums.iter().zip(&variances).map(of).collect()
        };
        let largest = |z: &[[f64; 2]]| z.iter().flatten().fold(0.0, |top: f64, z| top.max(z.abs()));
        let observed = z(&found);
        let top = largest(&observed);
        let redrawn = parallel::map(REDRAWS, threads, |redraw| {
            let mut rng = streams.stream(Purpose::CalibrationNull, 0, redraw as u64);
            let sums = scores.sums(&means, &mut |set| scores.draw(set, &mut rng));
            largest(&z(&sums))
        });
        let beyond = redrawn.iter().filter(|other| **other >= top).count();
        let deviations = scores.deviations(&observed, &found, &variances);
        Self {
            p_value: (1 + beyond) as f64 / (1 + REDRAWS) as f64,
            deviations,
            near: scores.near(),
            moments: scores.moments.len(),
            information: variances[..parameters]
                .iter()
                .map(|v| v[0][0])
                .fold(f64::INFINITY, f64::min),
        }
    }
}

impl<'a> Scores<'a> {
    fn new(candidates: &'a Candidates, parameters: usize, features: Rows, own: &[f64]) -> Self {
        let (sets, each, count) = (candidates.len(), candidates.each(), candidates.statistics());
        let mut scores = vec![0.0; sets * each * count];
        for statistic in 0..count {
            for set in 0..sets {
                for (k, (below, level)) in candidates.below(statistic, set).iter().enumerate() {
                    let place = (below + 0.5 * level).clamp(1e-4, 1.0 - 1e-4);
                    scores[(set * each + k) * count + statistic] = normal::quantile(place);
                }
            }
        }
        let directions = features.columns().min(DIRECTIONS);
        let mut summaries = if features.columns() > DIRECTIONS {
            principal(features, DIRECTIONS)
        } else {
            standardised(features)
        };
        summaries.iter_mut().for_each(|v| *v = v.clamp(-FARTHEST, FARTHEST));
        let moments = moments(count, parameters, directions);
        let nearness = nearness(features, own);
        Self { candidates, parameters, scores, summaries, directions, moments, nearness }
    }

    /// The scores of a candidate.
    fn scores(&self, set: usize, k: usize) -> &[f64] {
        let count = self.candidates.statistics();
        &self.scores[(set * self.candidates.each() + k) * count..][..count]
    }

    /// A moment of a candidate.
    fn value(&self, moment: Moment, set: usize, scores: &[f64]) -> f64 {
        match moment {
            Moment::Location(i) => scores[i],
            Moment::Width(i) => (scores[i] * scores[i] - 1.0) * std::f64::consts::FRAC_1_SQRT_2,
            Moment::Pair(i, j) => scores[i] * scores[j],
            Moment::Summary(i, m) => scores[i] * self.summaries[set * self.directions + m],
        }
    }

    /// For each set and moment its mean over the candidates; for each moment Σ K² Var and Σ K Var, of all sets and of those
    /// near x_o.
    fn expected(&self) -> (Vec<f64>, Vec<[[f64; 2]; 2]>) {
        let count = self.moments.len();
        let mut means = Vec::with_capacity(self.candidates.len() * count);
        let mut variances = vec![[[0.0; 2]; 2]; count];
        for set in 0..self.candidates.len() {
            let weights = self.candidates.weights(set);
            for (&moment, variance) in self.moments.iter().zip(&mut variances) {
                let (mut mean, mut square) = (0.0, 0.0);
                for (k, &weight) in weights.iter().enumerate() {
                    let value = self.value(moment, set, self.scores(set, k));
                    mean += weight * value;
                    square += weight * value * value;
                }
                let own = (square - mean * mean).max(0.0);
                means.push(mean);
                for (near, weight) in [1.0, self.nearness[set]].into_iter().enumerate() {
                    variance[near][0] += weight * weight * own;
                    variance[near][1] += weight * own;
                }
            }
        }
        (means, variances)
    }

    /// Σ K (φ − its mean), where `choose` says which candidate of a set made x.
    fn sums(&self, means: &[f64], choose: &mut dyn FnMut(usize) -> usize) -> Sums {
        let count = self.moments.len();
        let mut sums = vec![[0.0; 2]; count];
        for set in 0..self.candidates.len() {
            let (scores, nearness) = (self.scores(set, choose(set)), self.nearness[set]);
            let means = &means[set * count..(set + 1) * count];
            for ((sum, mean), &moment) in sums.iter_mut().zip(means).zip(&self.moments) {
                let excess = self.value(moment, set, scores) - mean;
                sum[0] += excess;
                sum[1] += nearness * excess;
            }
        }
        sums
    }

    /// A candidate of a set, by its weights.
    fn draw(&self, set: usize, rng: &mut Stream) -> usize {
        let mut place: f64 = rng.random();
        let weights = self.candidates.weights(set);
        let found = weights.iter().position(|weight| {
            place -= weight;
            place < 0.0
        });
        found.unwrap_or(0)
    }

    /// The moments that are farthest out, in that order.
    fn deviations(
        &self,
        z: &[[f64; 2]],
        sums: &Sums,
        variances: &[[[f64; 2]; 2]],
    ) -> Vec<Deviation> {
        let all = self.moments.iter().enumerate().flat_map(|(f, &moment)| {
            [0, 1].map(|near| Deviation {
                moment,
                near: near == 1,
                z: z[f][near],
                tilt: sums[f][near] / variances[f][near][1].max(LEAST),
            })
        });
        let mut all: Vec<Deviation> = all.collect();
        all.sort_by(|a, b| b.z.abs().total_cmp(&a.z.abs()));
        all.truncate(2 * self.parameters.max(5));
        all
    }

    fn near(&self) -> f64 {
        let (sum, square) =
            self.nearness.iter().fold((0.0, 0.0), |(sum, square), k| (sum + k, square + k * k));
        if square > 0.0 { sum * sum / square } else { 0.0 }
    }
}

/// All moments of so many statistics, the first of them parameters, and directions of summaries.
fn moments(statistics: usize, parameters: usize, directions: usize) -> Vec<Moment> {
    let mut found: Vec<Moment> = (0..statistics).map(Moment::Location).collect();
    found.extend((0..parameters).map(Moment::Width));
    if parameters <= MOST_PAIRED {
        let pairs = (0..parameters).flat_map(|i| (0..i).map(move |j| Moment::Pair(j, i)));
        found.extend(pairs);
    }
    let summaries = (0..parameters).flat_map(|i| (0..directions).map(move |m| (i, m)));
    found.extend(summaries.map(|(i, m)| Moment::Summary(i, m)));
    found
}

/// Each column with mean 0 and deviation 1.
fn standardised(rows: Rows) -> Vec<f64> {
    let columns: Vec<(f64, f64)> = (0..rows.columns())
        .map(|c| {
            let values: Vec<f64> = rows.iter().map(|row| row[c]).collect();
            let (mean, deviation) = crate::math::mean_and_deviation(&values);
            (mean, if deviation > 0.0 { deviation } else { 1.0 })
        })
        .collect();
    rows.iter().flat_map(|row| row.iter().zip(&columns).map(|(v, (m, d))| (v - m) / d)).collect()
}

/// exp(−d²/2h²), d the distance from x_o and h that of the third of the sets that are nearest.
fn nearness(features: Rows, own: &[f64]) -> Vec<f64> {
    let distance2 = |row: &[f64]| row.iter().zip(own).map(|(a, b)| (a - b) * (a - b)).sum::<f64>();
    let all: Vec<f64> = features.iter().map(distance2).collect();
    let mut sorted = all.clone();
    sorted.sort_unstable_by(f64::total_cmp);
    let width2 = sorted.get(sorted.len() / 3).copied().unwrap_or(1.0).max(f64::MIN_POSITIVE);
    all.iter().map(|d2| (-0.5 * d2 / width2).exp()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand_distr::{Distribution, StandardNormal};

    /// x = θ + noise in two dimensions, prior N(0, 1): the exact posterior is N(x/2, ½). Candidates from a law of mean
    /// `slope` x + `shift`, deviation `width` √½ and correlation `rho`; weights 1.
    fn test(seed: u64, slope: f64, shift: f64, width: f64, rho: f64) -> MomentTest {
        let streams = Streams::new(seed);
        let mut rng = streams.stream(Purpose::Synthetic, 0, 0);
        let mut normal = || -> f64 { StandardNormal.sample(&mut rng) };
        let (sets, each) = (200, 41);
        let (mut theta, mut x) = (Vec::new(), Vec::new());
        for _ in 0..sets {
            let own = [normal(), normal()];
            let at = own.map(|theta| theta + normal());
            theta.extend(own);
            for _ in 1..each {
                let (a, b) = (normal(), normal());
                let b = rho * a + (1.0 - rho * rho).sqrt() * b;
                let deviation = width * 0.5f64.sqrt();
                theta.push(slope * at[0] + shift + deviation * a);
                theta.push(slope * at[1] + deviation * b);
            }
            x.extend(at);
        }
        let (candidates, _) = Candidates::new(each, &vec![0.0; sets * each]);
        let rows = Rows::new("theta", &theta, 2).unwrap();
        let candidates = candidates.with_parameters(rows).unwrap();
        let x = Rows::new("x", &x, 2).unwrap();
        MomentTest::of(&candidates, 2, (x, &[0.2, -0.1]), &streams, 2)
    }

    /// Of 60 exact laws below 0.05: 3 are expected; more than 9 have a probability of 0.0005 (binomial).
    #[test]
    fn exact_laws_are_rarely_doubted() {
        let small = (1..=60).filter(|&seed| test(seed, 0.5, 0.0, 1.0, 0.0).p_value < 0.05).count();
        assert!(small <= 9, "{small} of 60");
    }

    /// Each fault is found, and by its own moment.
    #[test]
    fn faults_are_found_by_their_moments() {
        let first = |found: MomentTest| {
            assert!(found.p_value < 0.01, "{found:?}");
            found.deviations[0]
        };
        let shifted = first(test(1, 0.5, -0.4, 1.0, 0.0));
        assert_eq!(shifted.moment, Moment::Location(0));
        // 0.4 is 0.57 deviations of √½; scores of ranks among 40 and a tilt from the first order are good to a third.
        assert!(shifted.z > 0.0 && (shifted.tilt - 0.57).abs() < 0.2, "{shifted:?}");
        assert!(matches!(first(test(2, 0.5, 0.0, 1.7, 0.0)).moment, Moment::Width(_)));
        assert_eq!(first(test(3, 0.5, 0.0, 1.0, 0.7)).moment, Moment::Pair(0, 1));
        // The prior instead of the posterior: calibrated, but deaf to x.
        let deaf = first(test(4, 0.0, 0.0, 2f64.sqrt(), 0.0));
        assert!(matches!(deaf.moment, Moment::Summary(i, m) if i == m), "{deaf:?}");
    }

    #[test]
    fn the_number_of_threads_changes_nothing() {
        let of = |threads| {
            let values: Vec<f64> = (0..60).map(|i| f64::from((i * 37) % 23)).collect();
            let (candidates, _) = Candidates::new(6, &[0.0; 60]);
            let x = [1.0, 2.0, 0.5, 3.0, -1.0, 0.0, 2.5, 1.5, 0.2, 0.7];
            let features = Rows::new("x", &x, 1).unwrap();
            let candidates = candidates.with(values);
            MomentTest::of(&candidates, 1, (features, &[1.0]), &Streams::new(3), threads)
        };
        assert_eq!(of(1), of(3));
    }
}
