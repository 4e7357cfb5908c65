//! Regression adjustment (Beaumont, Zhang and Balding, 2002): what particles would be at distance 0.
//!
//! Near the observation θ is nearly linear in the summaries: θ = a + B (x − x_o) + residual. Fitted with weights that
//! fall to 0 at the tolerance (Epanechnikov), the line moves every particle to θ − B (x − x_o). It is fitted to θ itself:
//! in a space where a bound of the prior lies at infinity, the bound bends the line (measured on Lotka-Volterra, two of
//! whose rates lie three standard deviations from a bound).

use super::{SmcAbc, SmcAbcResult};
use crate::error::{Error, Result};
use crate::math::cholesky::Cholesky;

/// Adjusted particles, row after row, and their weights.
pub(super) fn regression_adjust(
    result: &SmcAbcResult,
    abc: &SmcAbc,
) -> Result<(Vec<f64>, Vec<f64>)> {
    let (dim, x_dim) = (abc.prior.dim(), abc.simulator.x_dim());
    let tolerance = result.distance.iter().copied().fold(0.0, f64::max);
    let kernel = |distance: &f64| 1.0 - (distance / tolerance).powi(2);
    let weights: Vec<f64> =
        result.weights.iter().zip(&result.distance).map(|(w, d)| w * kernel(d)).collect();
    let offset = |row: &[f64]| -> Vec<f64> {
        let parts = row.iter().zip(abc.observation).zip(abc.scale);
        std::iter::once(1.0).chain(parts.map(|((x, o), s)| (x - o) / s)).collect()
    };
    let design: Vec<Vec<f64>> = result.x.chunks_exact(x_dim).map(offset).collect();
    let slopes = fit(&design, &result.theta, &weights, dim).ok_or_else(|| {
        let why = "such that the summaries of the particles differ: take more particles, or do not adjust";
        Error::setting("particles", result.weights.len(), why)
    })?;
    let mut theta = result.theta.clone();
    for (row, theta) in design.iter().zip(theta.chunks_exact_mut(dim)) {
        for (theta, slopes) in theta.iter_mut().zip(&slopes) {
            *theta -= row[1..].iter().zip(&slopes[1..]).map(|(x, b)| x * b).sum::<f64>();
        }
    }
    Ok((theta, weights))
}

/// Weighted least squares: for each parameter the intercept and the slopes.
fn fit(design: &[Vec<f64>], theta: &[f64], weights: &[f64], dim: usize) -> Option<Vec<Vec<f64>>> {
    let columns = design[0].len();
    let mut normal = vec![0.0; columns * columns];
    let mut right = vec![vec![0.0; columns]; dim];
    for (i, (row, w)) in design.iter().zip(weights).enumerate() {
        for a in 0..columns {
            for b in 0..columns {
                normal[a * columns + b] += w * row[a] * row[b];
            }
            right.iter_mut().enumerate().for_each(|(k, r)| r[a] += w * row[a] * theta[i * dim + k]);
        }
    }
    // A summary that is the same for all particles says nothing: a trace of a ridge gives it no slope.
    let cholesky = Cholesky::new(&normal, columns).or_else(|| {
        (1..columns).for_each(|a| normal[a * columns + a] += 1e-9 * normal[0]);
        Cholesky::new(&normal, columns)
    })?;
    right.iter_mut().for_each(|r| cholesky.solve(r));
    Some(right)
}
