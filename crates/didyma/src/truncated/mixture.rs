//! What candidates for a truncated prior are drawn from.

use crate::cholesky::Cholesky;
use crate::error::{Error, Result};
use crate::posterior::Point;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Degrees of freedom of the kernels.
const TAIL: usize = 3;

/// Kernels of one shape around particles: Student's t, whose tails reach what the particles have missed.
#[derive(Debug)]
pub(super) struct Mixture {
    pub dim: usize,
    /// Running sums of the particles' weights, from which a centre is drawn.
    cumulative: Vec<f64>,
    weights: Vec<f64>,
    centres: Vec<f64>,
    /// L of the kernels' covariance L Lᵀ, and L⁻¹ times the centres.
    kernel: Cholesky,
    white_centres: Vec<f64>,
}

impl Mixture {
    /// Kernels around points of these weights, those inside the region of `drawn` candidates, as wide as Silverman's rule
    /// has it.
    pub fn new<'a>(
        points: impl Iterator<Item = &'a Point>,
        log_weights: &[f64],
        drawn: usize,
    ) -> Result<Self> {
        if log_weights.is_empty() {
            return Err(Error::ThinRegion { drawn, accepted: 0 });
        }
        let centres: Vec<f64> = points.flat_map(|p| p.z.iter().map(|&z| f64::from(z))).collect();
        let dim = centres.len() / log_weights.len();
        let weights = normalised(log_weights);
        let d = dim as f64;
        let width = (4.0 / (d + 2.0) / effective(log_weights).max(1.0)).powf(1.0 / (d + 4.0));
        let mut covariance = Cholesky::weighted_covariance(&centres, &weights, dim);
        covariance.iter_mut().for_each(|c| *c *= width * width);
        (0..dim).for_each(|i| covariance[i * (dim + 1)] += 1e-12);
        let Some(kernel) = Cholesky::new(&covariance, dim) else {
            return Err(Error::ThinRegion { drawn, accepted: log_weights.len() });
        };
        let mut white_centres = centres.clone();
        white_centres.chunks_exact_mut(dim).for_each(|centre| kernel.solve_lower(centre));
        let mut sum = 0.0;
        let running = weights.iter().map(|w| {
            sum += w;
            sum
        });
        let cumulative = running.collect();
        Ok(Self { dim, cumulative, weights, centres, kernel, white_centres })
    }

    pub fn sample(&self, rng: &mut impl rand::Rng) -> Vec<f64> {
        let (place, last) = (rng.random::<f64>(), self.cumulative.len() - 1);
        let i = self.cumulative.partition_point(|&sum| sum < place).min(last);
        let mut z: Vec<f64> = (0..self.dim).map(|_| StandardNormal.sample(rng)).collect();
        let squares = (0..TAIL).map(|_| f64::powi(StandardNormal.sample(rng), 2)).sum::<f64>();
        let stretch = (TAIL as f64 / squares).sqrt();
        z.iter_mut().for_each(|z| *z *= stretch);
        self.kernel.multiply(&mut z);
        z.iter_mut().zip(&self.centres[i * self.dim..]).for_each(|(z, centre)| *z += centre);
        z
    }

    /// Gives a standard normal vector the kernels' shape.
    pub fn shape(&self, z: &mut [f64]) {
        self.kernel.multiply(z);
    }

    /// Up to a constant.
    pub fn log_density(&self, z: &[f32]) -> f64 {
        let mut white: Vec<f64> = z.iter().map(|&z| f64::from(z)).collect();
        self.kernel.solve_lower(&mut white);
        let kernels = self.white_centres.chunks_exact(self.dim).zip(&self.weights);
        let power = -0.5 * (TAIL + self.dim) as f64;
        let density = kernels.map(|(centre, weight)| {
            let squares = white.iter().zip(centre).map(|(a, b)| (a - b) * (a - b));
            weight * (1.0 + squares.sum::<f64>() / TAIL as f64).powf(power)
        });
        density.sum::<f64>().ln()
    }
}

/// Weights that sum to 1.
pub(super) fn normalised(log_weights: &[f64]) -> Vec<f64> {
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|l| (l - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// How many equal weights these are worth: 1 / Σ w².
pub(super) fn effective(log_weights: &[f64]) -> f64 {
    1.0 / normalised(log_weights).iter().map(|w| w * w).sum::<f64>()
}
