//! Principal components: the directions in which rows differ most.

use crate::rows::Rows;

/// Iterations of the subspace; directions of nearly equal variance may stay mixed, which no user of this minds.
const ITERATIONS: usize = 12;

/// Coordinates of each row along the first `count` principal directions, row after row, each direction with mean 0 and
/// deviation 1. Directions without variance are 0.
///
/// By subspace iteration on the covariance, Q ← orthonormal(Xᵀ X Q), from a fixed start: no random number.
pub(crate) fn principal(rows: Rows, count: usize) -> Vec<f64> {
    let (n, dim) = (rows.len(), rows.columns());
    let count = count.min(dim);
    let mean: Vec<f64> =
        (0..dim).map(|c| rows.iter().map(|row| row[c]).sum::<f64>() / n.max(1) as f64).collect();
    let centred: Vec<f64> =
        rows.iter().flat_map(|row| row.iter().zip(&mean).map(|(v, m)| v - m)).collect();
    let mut directions: Vec<Vec<f64>> = (0..count).map(|k| start(k, dim)).collect();
    for _ in 0..ITERATIONS {
        directions = directions.iter().map(|q| covariance_times(&centred, q)).collect();
        orthonormalise(&mut directions);
    }
    let mut found = vec![0.0; n * count];
    for (k, q) in directions.iter().enumerate() {
        let along: Vec<f64> = centred.chunks_exact(dim).map(|row| dot(row, q)).collect();
        let deviation = (along.iter().map(|a| a * a).sum::<f64>() / n.max(1) as f64).sqrt();
        for (row, a) in along.into_iter().enumerate() {
            found[row * count + k] = if deviation > 1e-12 { a / deviation } else { 0.0 };
        }
    }
    found
}

/// Cosines of different frequencies, which no plausible direction is orthogonal to.
fn start(k: usize, dim: usize) -> Vec<f64> {
    (0..dim).map(|i| ((k + 1) as f64 * (i as f64 + 0.37) + 0.1 * k as f64).cos()).collect()
}

fn covariance_times(centred: &[f64], q: &[f64]) -> Vec<f64> {
    let mut sum = vec![0.0; q.len()];
    for row in centred.chunks_exact(q.len()) {
        let along = dot(row, q);
        sum.iter_mut().zip(row).for_each(|(s, v)| *s += along * v);
    }
    sum
}

/// By Gram and Schmidt; a direction that depends on those before it becomes 0.
fn orthonormalise(directions: &mut [Vec<f64>]) {
    for k in 0..directions.len() {
        let (before, rest) = directions.split_at_mut(k);
        let own = &mut rest[0];
        let size = dot(own, own).sqrt();
        for q in before {
            let along = dot(own, q);
            own.iter_mut().zip(q.iter()).for_each(|(v, q)| *v -= along * q);
        }
        let norm = dot(own, own).sqrt();
        let factor = if norm > 1e-9 * size && norm > 0.0 { norm.recip() } else { 0.0 };
        own.iter_mut().for_each(|v| *v *= factor);
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows along (3, 4) and, a tenth as far, across it.
    #[test]
    fn the_first_direction_is_the_longest() {
        let row = |i: i32| {
            let (along, across) = (f64::from(i), 0.1 * f64::from((i * i) % 7 - 3));
            [3.0 * along - 4.0 * across, 4.0 * along + 3.0 * across, 7.0]
        };
        let rows: Vec<f64> = (-10..=10).flat_map(row).collect();
        let found = principal(Rows::new("x", &rows, 3).unwrap(), 3);
        let deviation = (770.0f64 / 21.0).sqrt();
        let sign = -found[0].signum();
        for (i, along) in (-10..=10).zip(found.chunks_exact(3)) {
            assert!((sign * along[0] - f64::from(i) / deviation).abs() < 0.02, "{i}: {along:?}");
            assert_eq!(along[2], 0.0);
        }
    }
}
