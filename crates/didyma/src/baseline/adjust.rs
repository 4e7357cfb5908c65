//! Regression adjustment (Beaumont, Zhang and Balding, 2002): what particles would be at distance 0.
//!
//! Near the observation θ is nearly linear in the summaries: θ = a + B (x − x_o) + residual. Fitted with weights that
//! fall to 0 at the tolerance (Epanechnikov), the line moves every particle to θ − B (x − x_o). It is fitted in the
//! unbounded space of the prior, so that no particle leaves its support.

use super::{SmcAbc, SmcAbcResult};
use crate::cholesky::Cholesky;
use crate::error::{Error, Result};

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
    let mut z = vec![0.0; result.theta.len()];
    for (theta, z) in result.theta.chunks_exact(dim).zip(z.chunks_exact_mut(dim)) {
        abc.prior.unbounded(theta, z);
    }
    let offset = |row: &[f64]| -> Vec<f64> {
        let parts = row.iter().zip(abc.observation).zip(abc.scale);
        std::iter::once(1.0).chain(parts.map(|((x, o), s)| (x - o) / s)).collect()
    };
    let design: Vec<Vec<f64>> = result.x.chunks_exact(x_dim).map(offset).collect();
    let slopes = fit(&design, &z, &weights, dim).ok_or_else(|| {
        let why = "such that the summaries of the particles differ: take more particles, or do not adjust";
        Error::setting("particles", result.weights.len(), why)
    })?;
    let mut theta = vec![0.0; z.len()];
    for (i, row) in design.iter().enumerate() {
        let z = &mut z[i * dim..][..dim];
        for (k, z) in z.iter_mut().enumerate() {
            *z -= row[1..].iter().zip(&slopes[k][1..]).map(|(x, b)| x * b).sum::<f64>();
        }
        abc.prior.bounded(z, &mut theta[i * dim..][..dim]);
    }
    Ok((theta, weights))
}

/// Weighted least squares: for each parameter the intercept and the slopes.
fn fit(design: &[Vec<f64>], z: &[f64], weights: &[f64], dim: usize) -> Option<Vec<Vec<f64>>> {
    let columns = design[0].len();
    let mut normal = vec![0.0; columns * columns];
    let mut right = vec![vec![0.0; columns]; dim];
    for (i, (row, w)) in design.iter().zip(weights).enumerate() {
        for a in 0..columns {
            for b in 0..columns {
                normal[a * columns + b] += w * row[a] * row[b];
            }
            right.iter_mut().enumerate().for_each(|(k, r)| r[a] += w * row[a] * z[i * dim + k]);
        }
    }
    let cholesky = Cholesky::new(&normal, columns)?;
    right.iter_mut().for_each(|r| cholesky.solve(r));
    Some(right)
}
