//! The linear layer y = L (U z) + b and its derivatives, on D × D matrices.

use super::layout::{Gradient, Linear};
use crate::network::kernel::{MIN_DERIVATIVE, PANEL, Real};

/// L U as one dense matrix, its factors, and log |det|.
#[derive(Debug)]
pub(super) struct Factored<F> {
    pub product: Vec<F>,
    lower: Vec<F>,
    upper: Vec<F>,
    pub log_det: F,
    /// Gradient of `product`, gathered by the weight-gradient kernel.
    pub d_product: Vec<F>,
    /// Gradient of the bias, likewise.
    pub d_bias: Vec<F>,
}

impl<F: Real> Factored<F> {
    pub(super) fn zeros(dim: usize) -> Self {
        let matrix = || vec![F::zero(); dim * dim];
        Self {
            product: matrix(),
            lower: matrix(),
            upper: matrix(),
            log_det: F::zero(),
            d_product: matrix(),
            d_bias: vec![F::zero(); dim],
        }
    }
}

impl Linear {
    /// Reads the factors from the parameters and multiplies them.
    pub(super) fn factor<F: Real>(&self, params: &[F], to: &mut Factored<F>) {
        let n = self.dim;
        to.log_det = F::zero();
        for i in 0..n {
            let diagonal = F::of(MIN_DERIVATIVE) + params[self.diagonal + i].softplus();
            to.lower[i * n + i] = F::one();
            to.upper[i * n + i] = diagonal;
            to.log_det += diagonal.ln();
            for j in 0..i {
                to.lower[i * n + j] = params[self.lower + lower_index(i, j)];
                to.upper[j * n + i] = params[self.upper + upper_index(n, j, i)];
            }
        }
        for i in 0..n {
            for j in 0..n {
                to.product[i * n + j] =
                    (0..=i.min(j)).map(|k| to.lower[i * n + k] * to.upper[k * n + j]).sum();
            }
        }
    }

    /// Turns the gradient of L U and the bias into that of the parameters; `d_log_det` is the gradient of log |det|.
    pub(super) fn backward<F: Real>(
        &self,
        params: &[F],
        factored: &Factored<F>,
        d_log_det: F,
        gradient: &mut Gradient<F>,
    ) {
        let n = self.dim;
        let Factored { lower, upper, d_product, .. } = factored;
        for i in 0..n {
            gradient.put(self.bias + i, factored.d_bias[i]);
            for j in 0..i {
                // (dP Uᵀ)_{ij} and (Lᵀ dP)_{ji}
                let d_lower = (j..n).map(|k| d_product[i * n + k] * upper[j * n + k]).sum();
                let d_upper = (j..n).map(|k| lower[k * n + j] * d_product[k * n + i]).sum();
                gradient.put(self.lower + lower_index(i, j), d_lower);
                gradient.put(self.upper + upper_index(n, j, i), d_upper);
            }
            let d_diagonal: F = (i..n).map(|k| lower[k * n + i] * d_product[k * n + i]).sum();
            let d_diagonal = d_diagonal + d_log_det / upper[i * n + i];
            let i = self.diagonal + i;
            gradient.put(i, d_diagonal * params[i].sigmoid());
        }
    }

    /// z = U⁻¹ L⁻¹ (y − b) for every row of a panel, in place.
    pub(super) fn solve<F: Real>(&self, params: &[F], factored: &Factored<F>, panel: &mut [F]) {
        let n = self.dim;
        for i in 0..n {
            let (before, row) = panel.split_at_mut(i * PANEL);
            let bias = params[self.bias + i];
            row[..PANEL].iter_mut().for_each(|y| *y -= bias);
            for (j, solved) in before.chunks_exact(PANEL).enumerate() {
                subtract(row, factored.lower[i * n + j], solved);
            }
        }
        for i in (0..n).rev() {
            let (row, after) = panel[i * PANEL..].split_at_mut(PANEL);
            for (j, solved) in after.chunks_exact(PANEL).take(n - i - 1).enumerate() {
                subtract(row, factored.upper[i * n + i + 1 + j], solved);
            }
            let diagonal = factored.upper[i * n + i];
            row.iter_mut().for_each(|y| *y /= diagonal);
        }
    }
}

fn subtract<F: Real>(from: &mut [F], factor: F, what: &[F]) {
    from.iter_mut().zip(what).for_each(|(f, &w)| *f -= factor * w);
}

/// Place of entry (i, j), j < i, of a strictly lower triangle stored by rows.
fn lower_index(i: usize, j: usize) -> usize {
    i * (i - 1) / 2 + j
}

/// Place of entry (i, j), i < j, of a strictly upper triangle stored by rows.
fn upper_index(n: usize, i: usize, j: usize) -> usize {
    i * (2 * n - i - 1) / 2 + j - i - 1
}
