//! The Cholesky factor of a small symmetric matrix.

use serde::{Deserialize, Serialize};

/// L, lower triangular and row-major, with L Lᵀ the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Cholesky {
    dim: usize,
    factor: Vec<f64>,
}

impl Cholesky {
    /// Factors a symmetric row-major matrix; `None` unless it is positive definite.
    pub(crate) fn new(matrix: &[f64], dim: usize) -> Option<Self> {
        let mut factor = vec![0.0; dim * dim];
        for i in 0..dim {
            for j in 0..=i {
                let dot: f64 = (0..j).map(|k| factor[i * dim + k] * factor[j * dim + k]).sum();
                let rest = matrix[i * dim + j] - dot;
                factor[i * dim + j] = match i == j {
                    true if rest > 0.0 => rest.sqrt(),
                    true => return None,
                    false => rest / factor[j * dim + j],
                };
            }
        }
        Some(Self { dim, factor })
    }

    /// The factor of the identity.
    pub(crate) fn identity(dim: usize) -> Self {
        let factor = (0..dim * dim).map(|i| f64::from(u8::from(i % (dim + 1) == 0))).collect();
        Self { dim, factor }
    }

    /// The factor of the same matrix in other units: row i of L times the i-th of them.
    pub(crate) fn scaled(mut self, units: &[f64]) -> Self {
        let rows = self.factor.chunks_exact_mut(self.dim).zip(units);
        rows.for_each(|(row, unit)| row.iter_mut().for_each(|l| *l *= unit));
        self
    }

    /// The covariance of rows with these weights, which sum to 1: row-major.
    pub(crate) fn weighted_covariance(rows: &[f64], weights: &[f64], dim: usize) -> Vec<f64> {
        let rows = || rows.chunks_exact(dim).zip(weights);
        let mut mean = vec![0.0; dim];
        rows().for_each(|(row, w)| mean.iter_mut().zip(row).for_each(|(m, t)| *m += w * t));
        let mut covariance = vec![0.0; dim * dim];
        for (row, w) in rows() {
            for i in 0..dim {
                for j in 0..dim {
                    covariance[i * dim + j] += w * (row[i] - mean[i]) * (row[j] - mean[j]);
                }
            }
        }
        covariance
    }

    /// log det L.
    pub(crate) fn log_volume(&self) -> f64 {
        self.factor.iter().step_by(self.dim + 1).map(|l| l.ln()).sum()
    }

    /// Whether this is a factor of `dim` dimensions, as one read from a file must be checked.
    pub(crate) fn is_valid(&self, dim: usize) -> bool {
        let positive = || self.factor.iter().step_by(dim + 1).all(|l| *l > 0.0);
        let finite = || self.factor.iter().all(|l| l.is_finite());
        self.dim == dim && self.factor.len() == dim * dim && positive() && finite()
    }

    /// L z, in place.
    pub(crate) fn multiply(&self, z: &mut [f64]) {
        for i in (0..self.dim).rev() {
            let row = &self.factor[i * self.dim..][..=i];
            z[i] = row.iter().zip(&*z).map(|(l, z)| l * z).sum();
        }
    }

    /// L⁻¹ v, in place.
    pub(crate) fn solve_lower(&self, v: &mut [f64]) {
        for i in 0..self.dim {
            let row = &self.factor[i * self.dim..][..=i];
            let dot: f64 = row[..i].iter().zip(&*v).map(|(l, v)| l * v).sum();
            v[i] = (v[i] - dot) / row[i];
        }
    }

    /// (L Lᵀ)⁻¹ v, in place.
    pub(crate) fn solve(&self, v: &mut [f64]) {
        self.solve_lower(v);
        for i in (0..self.dim).rev() {
            let dot: f64 = (i + 1..self.dim).map(|k| self.factor[k * self.dim + i] * v[k]).sum();
            v[i] = (v[i] - dot) / self.factor[i * self.dim + i];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_multiplies_and_solves() {
        let matrix = [4.0, 2.0, -1.0, 2.0, 5.0, 0.5, -1.0, 0.5, 3.0];
        let cholesky = Cholesky::new(&matrix, 3).unwrap();
        let mut x = [1.0, -2.0, 0.5];
        let product: Vec<f64> =
            matrix.chunks(3).map(|row| row.iter().zip(x).map(|(m, x)| m * x).sum()).collect();
        let mut solved = product.clone();
        cholesky.solve(&mut solved);
        assert!(solved.iter().zip(x).all(|(a, b)| (a - b).abs() < 1e-14));
        let before = x;
        cholesky.multiply(&mut x);
        cholesky.solve_lower(&mut x);
        assert!(x.iter().zip(before).all(|(a, b)| (a - b).abs() < 1e-14));
        assert!((2.0 * cholesky.log_volume() - 40f64.ln()).abs() < 1e-14); // the determinant
        assert!(Cholesky::identity(3).is_valid(3) && !Cholesky::identity(3).is_valid(2));
        assert!(Cholesky::new(&[1.0, 2.0, 2.0, 1.0], 2).is_none());
    }
}
