//! Centre and covariance of θ, so that the flow sees unit scale.

use super::coordinates::Coordinates;
use crate::error::Result;
use crate::math::cholesky::Cholesky;
use crate::math::mean_and_deviation;
use crate::problem::prior::Prior;
use crate::rows::Rows;
use serde::{Deserialize, Serialize};

/// v ↦ L⁻¹ (v − mean).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Whitening {
    pub mean: Vec<f64>,
    pub factor: Cholesky,
}

impl Whitening {
    /// v as it is.
    pub(super) fn identity(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], factor: Cholesky::identity(dim) }
    }

    /// Whether these are finite numbers of so many dimensions.
    pub(super) fn is_valid(&self, dim: usize) -> bool {
        let finite = self.mean.iter().all(|v| v.is_finite());
        self.mean.len() == dim && finite && self.factor.is_valid(dim)
    }

    /// By all covariances, or by the variances alone.
    pub(super) fn of(
        plain: &Coordinates,
        prior: &Prior,
        theta: Rows,
        covariances: bool,
    ) -> Result<Self> {
        let (dim, n) = (theta.columns(), theta.len() as f64);
        let mut rows = vec![0.0; theta.data().len()];
        for (row, z) in theta.iter().zip(rows.chunks_exact_mut(dim)) {
            prior.expect_inside(row)?;
            plain.to_z(prior, row, z);
        }
        let column = |i: usize| rows.iter().skip(i).step_by(dim).copied().collect::<Vec<f64>>();
        let (mean, units): (Vec<f64>, Vec<f64>) =
            (0..dim).map(|i| mean_and_deviation(&column(i))).unzip();
        // In units of each parameter, since squares of the smallest and largest numbers are 0 or infinite.
        let units: Vec<f64> =
            units.iter().map(|&unit| if unit > 0.0 { unit } else { 1.0 }).collect();
        let mut covariance = vec![0.0; dim * dim];
        for row in rows.chunks_exact(dim) {
            let unit = |i: usize| (row[i] - mean[i]) / units[i];
            for i in 0..dim {
                for j in (0..dim).filter(|&j| covariances || i == j) {
                    covariance[i * dim + j] += unit(i) * unit(j) / n;
                }
            }
        }
        // A parameter that hardly varies, or only with another one, keeps some width.
        (0..dim).for_each(|i| covariance[i * dim + i] += 1e-6);
        // Fewer rows say too little of a covariance.
        let enough = theta.len() >= 10 * dim;
        let factor = Cholesky::new(&covariance, dim).filter(|_| enough);
        let factor = factor.unwrap_or_else(|| Cholesky::identity(dim));
        Ok(Self { mean, factor: factor.scaled(&units) })
    }
}
