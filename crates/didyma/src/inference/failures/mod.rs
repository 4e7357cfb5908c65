//! Where simulations fail: the probability of success at θ, learnt from all simulations, and whether it depends on θ.
//!
//! `docs/failures.md` derives what it is used for: rows of maximum likelihood are weighted by 1 / s(θ), so that a simulator
//! that fails more often in one place than in another does not pull the posterior to where it works.
//!
//! The rows are cut into five folds. Five networks take turns: three folds train one, the fourth says when to stop, and
//! the fifth judges it. All start as the constant rate of success. What the folds say of networks that never saw them is
//! compared, row by row, with what the constant rate says of them: the mean difference, over its standard error, tells
//! whether failures depend on θ. The probability is the mean of the five.

mod correction;
mod network;
mod report;

pub(crate) use correction::Failing;
pub use report::{Correction, ValidityReport};

use crate::error::Result;
use crate::math::mean_and_deviation;
use crate::network::classifier::Labelled;
use crate::network::folds::{FOLDS, fold_rows};
use crate::network::mlp::Mlp;
use crate::parallel;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use network::{Parts, Trained, UNITS};
use rand::seq::SliceRandom;

/// The lowest probability of success that is corrected for: a weight is at most 50. Of the 2,500 simulations that a
/// neighbourhood of such parameters would have to have, 50 succeed, which tells s(θ) to a seventh of itself; below, the
/// weight would be a guess, and few rows would carry all of it.
pub const FLOOR: f64 = 0.02;

/// Standard errors from which failures are said to depend on θ. Where they do not, no network can do better than the
/// constant rate in the mean, so that the difference is normal around 0 or less: beyond 3 in one of 741 fits.
pub const BEYOND_CHANCE: f64 = 3.0;

/// Simulations of either kind that are needed to learn anything: two for each fold.
const LEAST: usize = 2 * FOLDS;

/// Rows of a batch of predictions.
const BATCH: usize = 256;

/// The probability that a simulation succeeds, as a function of θ.
///
/// ```
/// use didyma::prior::Prior;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::failures::Validity;
/// use didyma::Rows;
/// use rand::RngExt;
///
/// // Simulations succeed with probability 1 − θ / 2.
/// let prior = Prior::uniform(["theta"], [0.0], [1.0])?;
/// let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
/// let theta: Vec<f64> = (0..2000).map(|_| rng.random()).collect();
/// let succeeded: Vec<bool> = theta.iter().map(|t| rng.random::<f64>() < 1.0 - t / 2.0).collect();
/// let rows = Rows::new("theta", &theta, 1)?;
/// let validity = Validity::fit(&prior, rows, &succeeded, Streams::new(1), 1, 1)?.unwrap();
/// assert!(validity.depends());
/// let found = validity.probabilities(Rows::new("theta", &[0.1, 0.9], 1)?);
/// assert!((found[0] - 0.95).abs() < 0.1 && (found[1] - 0.55).abs() < 0.1);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Validity {
    prior: Prior,
    /// Mean and standard deviation of each parameter in R^D.
    scales: Vec<(f64, f64)>,
    networks: Vec<Vec<f32>>,
    gain: f64,
    z: f64,
}

impl Validity {
    /// Learns from parameters inside the prior's support and whether their simulations succeeded; the random numbers
    /// are those of the round. None if there are too few of either kind. The same for any number of threads.
    ///
    /// # Panics
    /// Unless there is one answer for each row.
    pub fn fit(
        prior: &Prior,
        theta: Rows,
        succeeded: &[bool],
        streams: Streams,
        round: u32,
        threads: usize,
    ) -> Result<Option<Self>> {
        assert_eq!(theta.len(), succeeded.len(), "one answer for each row");
        theta.expect_columns(prior.dim(), "parameters of the prior")?;
        let successes = succeeded.iter().filter(|succeeded| **succeeded).count();
        let failures = theta.len() - successes;
        if failures < LEAST || successes < LEAST {
            return Ok(None);
        }
        let mut fit = Self {
            scales: scales(prior, theta),
            prior: prior.clone(),
            networks: Vec::new(),
            gain: 0.0,
            z: 0.0,
        };
        // The second class are the successes.
        let of = |kind: bool| (0..theta.len()).filter(move |&i| succeeded[i] == kind);
        let sorted = of(false).chain(of(true)).map(|i| theta.row(i));
        let inputs: Vec<f32> = sorted.flat_map(|row| fit.inputs(row)).collect();
        let data = Labelled::new(&inputs, theta.columns(), failures);
        fit.train(data, streams, round, threads);
        Ok(Some(fit))
    }

    fn train(&mut self, data: Labelled, streams: Streams, round: u32, threads: usize) {
        let mut order: Vec<usize> = (0..data.len()).collect();
        order.shuffle(&mut streams.stream(Purpose::ValidityFolds, round.into(), 0));
        let fold = |number: usize| &order[fold_rows(order.len(), number % FOLDS)];
        let trained: Vec<Trained> = parallel::map(FOLDS, threads, |number| {
            let parts = Parts {
                judging: fold(number).to_vec(),
                watched: fold(number + 1).to_vec(),
                training: (2..FOLDS).flat_map(|next| fold(number + next)).copied().collect(),
            };
            let mut rng = streams.stream(Purpose::Validity, round.into(), number as u64);
            network::train(data, parts, &mut rng)
        });
        let gains: Vec<f64> = trained.iter().flat_map(|one| &one.gains).copied().collect();
        (self.gain, self.z) = mean_and_z(&gains);
        self.networks = trained.into_iter().map(|one| one.params).collect();
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.prior.dim()
    }

    /// By how many nats a simulation's success is foreseen better by its parameters than by the rate of all: the mean
    /// over rows that the networks never saw.
    pub fn gain(&self) -> f64 {
        self.gain
    }

    /// The gain in its standard errors.
    pub fn z(&self) -> f64 {
        self.z
    }

    /// Whether failures depend on θ, beyond what chance would explain.
    pub fn depends(&self) -> bool {
        self.z > BEYOND_CHANCE
    }

    /// The probability of success at each of these parameters, which are inside the prior's support.
    pub fn probabilities(&self, theta: Rows) -> Vec<f64> {
        let inputs: Vec<f32> = theta.iter().flat_map(|row| self.inputs(row)).collect();
        self.of_inputs(&inputs)
    }

    /// Share of a law, a little widened, where simulations nearly never succeed, from independent draws of it.
    ///
    /// No row that is learnt from lies where nothing ever succeeds, so that a posterior that ought to reach there ends at
    /// the border instead: its own draws would not tell. Each is moved by a quarter of the difference of two others, which
    /// widens a normal law by √(1 + 2/16), 6 %, and carries 7 % of one that is cut off at its middle over the border.
    pub fn share_beyond(&self, draws: Rows) -> f64 {
        let inputs: Vec<Vec<f32>> = draws.iter().map(|row| self.inputs(row)).collect();
        let other = |i: usize, next: usize| &inputs[(i + next) % inputs.len()];
        let moved: Vec<f32> = (0..inputs.len())
            .flat_map(|i| {
                let pairs = other(i, 1).iter().zip(other(i, 2));
                inputs[i].iter().zip(pairs).map(|(own, (a, b))| own + 0.25 * (a - b))
            })
            .collect();
        let s = self.of_inputs(&moved);
        s.iter().filter(|s| **s <= FLOOR).count() as f64 / s.len() as f64
    }

    fn of_inputs(&self, inputs: &[f32]) -> Vec<f64> {
        let dim = self.dim();
        let mut sums = vec![0.0; inputs.len() / dim];
        let mut mlp = Mlp::<f32>::new(dim, UNITS, BATCH.min(sums.len().max(1)));
        for params in &self.networks {
            mlp.params.copy_from_slice(params);
            for (sums, rows) in sums.chunks_mut(BATCH).zip(inputs.chunks(BATCH * dim)) {
                mlp.load(rows.chunks_exact(dim));
                mlp.forward();
                for (sum, logit) in sums.iter_mut().zip(mlp.logits()) {
                    *sum += 1.0 / (1.0 + (-f64::from(logit)).exp());
                }
            }
        }
        sums.iter().map(|sum| sum / self.networks.len() as f64).collect()
    }

    /// A row as the networks see it: in the space where the prior is standard normal, in standard deviations of the
    /// simulations.
    fn inputs(&self, theta: &[f64]) -> Vec<f32> {
        let z = unbounded(&self.prior, theta);
        z.iter().zip(&self.scales).map(|(z, (mean, sd))| ((z - mean) / sd) as f32).collect()
    }
}

fn unbounded(prior: &Prior, theta: &[f64]) -> Vec<f64> {
    let mut z = vec![0.0; theta.len()];
    prior.unbounded(theta, &mut z);
    z
}

/// Mean and standard deviation of every parameter, or 1 if all are the same.
fn scales(prior: &Prior, theta: Rows) -> Vec<(f64, f64)> {
    let (n, dim) = (theta.len() as f64, theta.columns());
    let (mut sums, mut squares) = (vec![0.0; dim], vec![0.0; dim]);
    for row in theta.iter() {
        for (i, z) in unbounded(prior, row).into_iter().enumerate() {
            sums[i] += z;
            squares[i] += z * z;
        }
    }
    let scale = |(sum, square): (f64, f64)| {
        let (mean, square) = (sum / n, square / n);
        let variance = square - mean * mean;
        // Rounding of the squares, where all numbers are the same.
        (mean, if variance > 1e-12 * square { variance.sqrt() } else { 1.0 })
    };
    sums.into_iter().zip(squares).map(scale).collect()
}

/// The mean, and how many of its standard errors it is away from 0.
fn mean_and_z(gains: &[f64]) -> (f64, f64) {
    let (mean, deviation) = mean_and_deviation(gains);
    let error = deviation / (gains.len() as f64).sqrt();
    (mean, if error > 0.0 { mean / error } else { 0.0 })
}

#[cfg(test)]
mod tests;
