//! Scores of a posterior that need no reference: simulations near the observation, density at the truth.

use crate::error::{Error, Result};
use crate::rows::Rows;

/// Added to the accepted share in [`nlog`], so that a posterior wholly outside the prior has a score.
const LEAST_ACCEPTED: f64 = 1e-3;

/// Median over simulations x of ‖(x − observation) / scale‖₂, the division column by column.
///
/// `x` has one simulation for each sample of the posterior; LMD is the natural logarithm of the result. Rows with
/// NaN, failed simulations, are left out; an infinite number is infinitely far. Of two middle distances
/// the mean is taken.
///
/// ```
/// use didyma::{metrics::median_distance, Rows};
/// let x = [3.0, 4.0, f64::NAN, 0.0, 0.0, 1.0, 30.0, 40.0];
/// let x = Rows::new("x", &x, 2)?;
/// assert_eq!(median_distance(x, &[0.0, 0.0], &[1.0, 1.0])?, 5.0);
/// assert_eq!(median_distance(x, &[0.0, 0.0], &[0.5, 0.5])?, 10.0);
/// # Ok::<(), didyma::Error>(())
/// ```
pub fn median_distance(x: Rows, observation: &[f64], scale: &[f64]) -> Result<f64> {
    check(x.columns(), observation, scale)?;
    let distance = |row: &[f64]| -> f64 {
        let scaled = row.iter().zip(observation).zip(scale).map(|((x, o), s)| (x - o) / s);
        scaled.map(|z| z * z).sum::<f64>().sqrt()
    };
    let whole = x.iter().filter(|row| !row.iter().any(|x| x.is_nan()));
    let mut distances: Vec<f64> = whole.map(distance).collect();
    distances.sort_unstable_by(f64::total_cmp);
    let n = distances.len();
    if n == 0 {
        let (unit, why) = ("rows without NaN", "at least; simulate with more samples");
        return Err(Error::Shape { name: "x", unit, found: 0, expected: 1, why });
    }
    Ok((distances[(n - 1) / 2] + distances[n / 2]) / 2.0)
}

fn check(columns: usize, observation: &[f64], scale: &[f64]) -> Result<()> {
    for (name, found) in [("observation", observation.len()), ("scale", scale.len())] {
        if found != columns {
            let (unit, why) = ("numbers", "one for each column of x");
            return Err(Error::Shape { name, unit, found, expected: columns, why });
        }
    }
    if let Some(column) = observation.iter().position(|o| !o.is_finite()) {
        let (name, value) = ("observation", observation[column]);
        return Err(Error::NotFinite { name, row: 0, column, value });
    }
    match scale.iter().find(|s| !(s.is_finite() && **s > 0.0)) {
        None => Ok(()),
        Some(s) => Err(Error::setting("scale", s, "positive and finite in every column")),
    }
}

/// −log q(θ* | x_o) + log(a + 1/1000): the negative log-density of the posterior at the true parameters.
///
/// `accepted` is a, the share of q's samples inside the prior: the posterior cut off at the prior has
/// density q/a there. The 1/1000 keeps the score finite at a = 0, and adds 0.0010 at a = 1.
///
/// ```
/// use didyma::metrics::nlog;
/// assert!((nlog(-2.0, 1.0) - 2.0010).abs() < 1e-6);
/// assert!((nlog(-2.0, 0.0) - (2.0 - 1000f64.ln())).abs() < 1e-12);
/// ```
pub fn nlog(log_q_truth: f64, accepted: f64) -> f64 {
    -log_q_truth + (accepted + LEAST_ACCEPTED).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median(data: &[f64], observation: &[f64], scale: &[f64]) -> Result<f64> {
        median_distance(Rows::new("x", data, 1)?, observation, scale)
    }

    #[test]
    fn middle_distances_and_failed_rows() -> Result<()> {
        assert_eq!(median(&[4.0, 1.0], &[0.0], &[1.0])?, 2.5);
        assert_eq!(median(&[4.0, f64::NAN, 1.0, -7.0], &[0.0], &[2.0])?, 2.0);
        assert_eq!(median(&[f64::INFINITY, 1.0, 2.0], &[1.0], &[1.0])?, 1.0);
        assert_eq!(median(&[f64::NEG_INFINITY], &[1.0], &[1.0])?, f64::INFINITY);
        Ok(())
    }

    #[test]
    fn messages_name_the_argument() {
        let message = |found: Result<f64>| found.unwrap_err().to_string();
        let long = message(median(&[1.0], &[0.0, 0.0], &[1.0]));
        assert!(long.starts_with("observation has 2 numbers, but 1 are needed"), "{long}");
        let empty = message(median(&[f64::NAN], &[0.0], &[1.0]));
        assert!(empty.starts_with("x has 0 rows without NaN, but 1 are needed"), "{empty}");
        let zero = message(median(&[1.0], &[0.0], &[0.0]));
        assert_eq!(zero, "scale is 0, but it must be positive and finite in every column");
        let nan = message(median(&[1.0], &[f64::NAN], &[1.0]));
        assert!(nan.starts_with("observation holds NaN in row 0, column 0"), "{nan}");
    }
}
