//! The Hessian of a toy's loss, and what little of matrices is needed for it.

use crate::toy::Toy;
use didyma::Result;

pub(super) type Vector = [f64; 3];
pub(super) type Matrix = [Vector; 3];

/// The Hessian of the exact loss at its minimum, H = Σ λ_i v_i v_iᵀ.
#[derive(Clone, Debug)]
pub(super) struct Curvature {
    /// H.
    pub hessian: Matrix,
    /// λ_i.
    values: Vector,
    /// v_i.
    vectors: Matrix,
}

impl Curvature {
    pub fn at_truth(toy: &Toy) -> Result<Self> {
        let rows = derivative(|offset| Ok(toy.at(offset).gradient()), [0.0; 3])?;
        Ok(Self::of(scaled(&sum(&rows, &transposed(&rows)), 0.5)))
    }

    /// Jacobi's method: rotations that remove one off-diagonal element after the other.
    fn of(hessian: Matrix) -> Self {
        let (mut a, mut vectors) = (hessian, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]);
        // It converges quadratically: three by three needs four or five sweeps to the last bit.
        for (p, q) in [(0, 1), (0, 2), (1, 2)].repeat(10) {
            let (sin, cos) = (0.5 * (2.0 * a[p][q]).atan2(a[q][q] - a[p][p])).sin_cos();
            let rotate = |v: &mut Vector| {
                (v[p], v[q]) = (cos * v[p] - sin * v[q], sin * v[p] + cos * v[q]);
            };
            a.iter_mut().for_each(rotate);
            a = transposed(&a);
            a.iter_mut().for_each(rotate);
            vectors.iter_mut().for_each(rotate);
        }
        let values = std::array::from_fn(|i| a[i][i]);
        Self { hessian, values, vectors: transposed(&vectors) }
    }

    /// μ, the smallest curvature.
    pub fn smallest(&self) -> f64 {
        self.values.into_iter().fold(f64::INFINITY, f64::min)
    }

    /// K, the largest: the smoothness.
    pub fn largest(&self) -> f64 {
        self.values.into_iter().fold(0.0, f64::max)
    }

    /// H⁻¹ times a vector.
    pub fn solve(&self, vector: Vector) -> Vector {
        let along = self.vectors.map(|v| v.iter().zip(vector).map(|(v, x)| v * x).sum::<f64>());
        std::array::from_fn(|j| {
            (0..3).map(|i| along[i] / self.values[i] * self.vectors[i][j]).sum()
        })
    }
}

/// ∂g_i/∂φ_j by central differences: with h = 10⁻⁴ they are off by h² and by ε/h, 10⁻⁸ or less.
pub(super) fn derivative(
    mut gradient: impl FnMut(Vector) -> Result<Vector>,
    at: Vector,
) -> Result<Matrix> {
    let (h, mut columns) = (1e-4, [[0.0; 3]; 3]);
    for (j, column) in columns.iter_mut().enumerate() {
        let mut shifted = |h: f64| {
            let mut offset = at;
            offset[j] += h;
            gradient(offset)
        };
        let (after, before) = (shifted(h)?, shifted(-h)?);
        *column = std::array::from_fn(|i| (after[i] - before[i]) / (2.0 * h));
    }
    Ok(transposed(&columns))
}

pub(super) fn transposed(a: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[j][i]))
}

pub(super) fn sum(a: &Matrix, b: &Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| a[i][j] + b[i][j]))
}

pub(super) fn scaled(a: &Matrix, factor: f64) -> Matrix {
    a.map(|row| row.map(|value| factor * value))
}

pub(super) fn product(a: &Matrix, b: &Matrix) -> Matrix {
    let entry = |i: usize, j: usize| (0..3).map(|k| a[i][k] * b[k][j]).sum();
    std::array::from_fn(|i| std::array::from_fn(|j| entry(i, j)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eigenvectors_are_those_of_the_matrix() {
        let a = [[4.0, 1.0, -0.5], [1.0, 3.0, 0.25], [-0.5, 0.25, 1.0]];
        let found = Curvature::of(a);
        for i in 0..3 {
            let (v, lambda) = (found.vectors[i], found.values[i]);
            let (solved, image) = (found.solve(v), product(&a, &transposed(&[v; 3])));
            for j in 0..3 {
                assert!((image[j][0] - lambda * v[j]).abs() < 1e-14);
                assert!((solved[j] - v[j] / lambda).abs() < 1e-14);
            }
        }
        assert!(found.smallest() < 1.0 && found.largest() > 4.0);
    }

    #[test]
    fn a_derivative_has_its_rows_and_columns_in_place() {
        let found = derivative(|[a, b, c]| Ok([a * b, b * b, a + 3.0 * c]), [2.0, 5.0, 1.0]);
        let expected = [[5.0, 2.0, 0.0], [0.0, 10.0, 0.0], [1.0, 0.0, 3.0]];
        for (found, expected) in
            found.unwrap_or_default().iter().flatten().zip(expected.iter().flatten())
        {
            assert!((found - expected).abs() < 1e-8);
        }
    }
}
