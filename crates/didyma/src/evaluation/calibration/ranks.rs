//! Ranks of true parameters among draws of their posteriors: simulation-based calibration.

use super::uniformity::LEAST_ROWS;
use crate::error::{Error, Result};
use crate::evaluation::metrics::{FOLDS, c2st_by_seed};
use crate::math::kolmogorov;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use rand::RngExt;
use serde::Serialize;

/// Ranks of n rows of C numbers, each among L draws.
///
/// If θ_i and its draws come from the same law given x_i, the rank of θ_i among them is uniform over 0, …, L (Cook,
/// Gelman and Rubin 2006; Talts et al. 2018): the ranks of a posterior that is too narrow gather at both ends, of one too
/// wide in the middle, of one too low or too high at one end. The converse does not hold: the prior itself, drawn
/// without regard to x, also has uniform ranks.
///
/// ```
/// use didyma::{Rows, calibration::Ranks, rng::Streams};
/// let theta: Vec<f64> = (0..20).map(f64::from).collect();
/// let draws: Vec<f64> = theta.iter().flat_map(|t| [t - 2.0, t - 1.0, t + 1.0]).collect();
/// let (theta, draws) = (Rows::new("theta", &theta, 1)?, Rows::new("draws", &draws, 1)?);
/// let ranks = Ranks::of(theta, draws, &Streams::new(1))?;
/// assert_eq!((ranks.below[0], ranks.draws), (2, 3));
/// assert!((0.5..0.75).contains(&ranks.values(0)[0])); // (2 + V) / 4
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Ranks {
    /// Draws of each row: L.
    pub draws: usize,
    /// Numbers of each row: C.
    pub columns: usize,
    /// Draws strictly below each number, row after row: the ranks of sbi's `run_sbc`.
    pub below: Vec<usize>,
    /// Randomised ranks in (0, 1), row after row.
    randomised: Vec<f64>,
}

impl Ranks {
    /// Ranks of every parameter. The draws of a row of `theta` stand one after the other: row i L + l of `draws` is draw
    /// l for row i.
    pub fn of(theta: Rows, draws: Rows, streams: &Streams) -> Result<Self> {
        let count = check_draws(theta, draws)?;
        let columns = theta.columns();
        let place = |row: usize, column: usize| {
            let value = theta.row(row)[column];
            let others = (0..count).map(move |draw| draws.row(row * count + draw)[column]);
            counts(value, others)
        };
        Ok(Self::ranked((theta.len(), columns, count), place, streams, 0))
    }

    /// Ranks of one number a row, such as log q(θ_i | x_i), among those of its draws: a row of L numbers. −∞ is a number
    /// here, as the log-density outside of a support is.
    pub fn of_scores(scores: &[f64], draws: Rows, streams: &Streams) -> Result<Self> {
        Rows::new("scores", scores, 1)?.expect_rows_from(LEAST_ROWS, "at least; simulate more")?;
        draws.expect_rows(scores.len(), "one for each score")?;
        check_scores("scores", scores, 1)?;
        check_scores("scores of draws", draws.data(), draws.columns())?;
        let place = |row: usize, _| counts(scores[row], draws.row(row).iter().copied());
        Ok(Self::ranked((scores.len(), 1, draws.columns()), place, streams, 1))
    }

    /// Ranks by their numbers of smaller draws and of equal ones.
    ///
    /// With V uniform on (0, 1), u = (smaller + V (equal + 1)) / (L + 1) is uniform if the rank is, whether or not the
    /// law has ties: the true number is as likely in each of the places among its equals. A middle rank would gather
    /// the ties, and look like a posterior that is too wide.
    pub(super) fn ranked(
        (rows, columns, draws): (usize, usize, usize),
        place: impl Fn(usize, usize) -> (usize, usize),
        streams: &Streams,
        kind: u64,
    ) -> Self {
        let (mut below, mut randomised) = (Vec::new(), Vec::new());
        for row in 0..rows {
            let mut rng = streams.stream(Purpose::RankTies, kind, row as u64);
            for column in 0..columns {
                let (smaller, equal) = place(row, column);
                let inside: f64 = rng.random();
                below.push(smaller);
                let u = (smaller as f64 + inside * (equal + 1) as f64) / (draws + 1) as f64;
                randomised.push(u);
            }
        }
        Self { draws, columns, below, randomised }
    }

    /// Randomised ranks of a column, which are uniform on (0, 1) if the posteriors are right: what
    /// [`Uniformity`](super::Uniformity) tests.
    pub fn values(&self, column: usize) -> Vec<f64> {
        self.randomised.iter().skip(column).step_by(self.columns).copied().collect()
    }

    /// P-values of sbi's `check_sbc`: of the Kolmogorov–Smirnov test of ranks over L against the continuous uniform law,
    /// for each column. For few draws they are too small, since ranks are whole numbers; the test of
    /// [`values`](Self::values) is exact for any number of draws.
    pub fn ks_p_values(&self) -> Vec<f64> {
        let p_value = |column| {
            let ranks = self.below.iter().skip(column).step_by(self.columns);
            let mut shares: Vec<f64> = ranks.map(|&rank| rank as f64 / self.draws as f64).collect();
            shares.sort_unstable_by(f64::total_cmp);
            kolmogorov::p_value(shares.len(), kolmogorov::deviation(&shares))
        };
        (0..self.columns).map(p_value).collect()
    }
}

/// How well a classifier tells the true values of each parameter from one draw for each row: ½ for a posterior whose
/// average over x is the prior, as that of the true one is (sbi's `c2st_dap`; Talts et al. 2018).
pub fn data_averaged(
    theta: Rows,
    draws: Rows,
    threads: usize,
    streams: &Streams,
) -> Result<Vec<f64>> {
    let count = check_draws(theta, draws)?;
    let accuracy = |column: usize| {
        let truth: Vec<f64> = theta.iter().map(|row| row[column]).collect();
        let drawn: Vec<f64> = draws.iter().step_by(count).map(|row| row[column]).collect();
        let (truth, drawn) = (Rows::new("theta", &truth, 1)?, Rows::new("draws", &drawn, 1)?);
        Ok(c2st_by_seed(truth, drawn, (1, FOLDS), threads, streams)?[0])
    };
    (0..theta.columns()).map(accuracy).collect()
}

/// Draws for each row of θ, which are as many for all rows.
pub(super) fn check_draws(theta: Rows, draws: Rows) -> Result<usize> {
    theta.expect_rows_from(LEAST_ROWS, "at least, to say anything; simulate more")?;
    draws.expect_columns(theta.columns(), "as many as theta has")?;
    let count = draws.len() / theta.len();
    draws.expect_rows(count.max(1) * theta.len(), "as many draws for each row of theta")?;
    theta.expect_finite()?;
    draws.expect_finite()?;
    Ok(count)
}

/// Refuses NaN and +∞.
fn check_scores(name: &'static str, scores: &[f64], columns: usize) -> Result<()> {
    match scores.iter().position(|&score| score.is_nan() || score == f64::INFINITY) {
        None => Ok(()),
        Some(i) => {
            let (row, column) = (i / columns, i % columns);
            Err(Error::NotFinite { name, row, column, value: scores[i] })
        }
    }
}

/// How many of the others are smaller, and how many are equal.
fn counts(value: f64, others: impl Iterator<Item = f64>) -> (usize, usize) {
    others.fold((0, 0), |(smaller, equal), other| {
        (smaller + usize::from(other < value), equal + usize::from(other == value))
    })
}
