//! Samples for the tests, and the law that they have.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, StandardNormal};

/// Standard normal numbers, others for every stream.
pub(crate) fn normals(stream: u64, n: usize) -> Vec<f64> {
    let rng = ChaCha8Rng::seed_from_u64(stream);
    StandardNormal.sample_iter(rng).take(n).collect()
}

/// The probability that a standard normal number is below z.
pub(crate) fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z / std::f64::consts::SQRT_2)
}
