//! What candidates for a truncated prior are drawn from.

use crate::error::{Error, Result};
use crate::inference::posterior::Point;
use crate::math::cholesky::Cholesky;
use crate::math::particles::{Cumulative, effective, normalised};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Degrees of freedom of the kernels.
const TAIL: usize = 3;

/// Kernels of one shape around particles: Student's t, whose tails reach what the particles have missed.
#[derive(Debug)]
pub(super) struct Mixture {
    pub dim: usize,
    /// From which a centre is drawn.
    cumulative: Cumulative,
    weights: Vec<f64>,
    centres: Vec<f64>,
    /// L of the kernels' covariance L Lᵀ, and L⁻¹ times the centres.
    kernel: Cholesky,
    white_centres: Vec<f64>,
}

impl Mixture {
    /// Kernels around points of these weights, those inside the region of `drawn` candidates, as wide as Silverman's rule
    /// has it.
    pub(super) fn new<'a>(
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
        let width = (4.0 / (d + 2.0) / effective(&weights).max(1.0)).powf(1.0 / (d + 4.0));
        let mut covariance = Cholesky::weighted_covariance(&centres, &weights, dim);
        covariance.iter_mut().for_each(|c| *c *= width * width);
        (0..dim).for_each(|i| covariance[i * (dim + 1)] += 1e-12);
        let Some(kernel) = Cholesky::new(&covariance, dim) else {
            return Err(Error::ThinRegion { drawn, accepted: log_weights.len() });
        };
        let mut white_centres = centres.clone();
        white_centres.chunks_exact_mut(dim).for_each(|centre| kernel.solve_lower(centre));
        let cumulative = Cumulative::new(&weights);
        Ok(Self { dim, cumulative, weights, centres, kernel, white_centres })
    }

    pub(super) fn sample(&self, rng: &mut impl rand::Rng) -> Vec<f64> {
        let i = self.cumulative.at(rng.random());
        let mut z: Vec<f64> = (0..self.dim).map(|_| StandardNormal.sample(rng)).collect();
        let squares = (0..TAIL).map(|_| f64::powi(StandardNormal.sample(rng), 2)).sum::<f64>();
        let stretch = (TAIL as f64 / squares).sqrt();
        z.iter_mut().for_each(|z| *z *= stretch);
        self.kernel.multiply(&mut z);
        z.iter_mut().zip(&self.centres[i * self.dim..]).for_each(|(z, centre)| *z += centre);
        z
    }

    /// Gives a standard normal vector the kernels' shape.
    pub(super) fn shape(&self, z: &mut [f64]) {
        self.kernel.multiply(z);
    }

    /// Up to a constant.
    pub(super) fn log_density(&self, z: &[f32]) -> f64 {
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
