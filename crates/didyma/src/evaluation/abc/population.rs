//! A generation of particles: their weights, and where the next one's proposals come from.

use super::{Generation, SmcAbc};
use crate::error::{Error, Result};
use crate::math::cholesky::Cholesky;
use crate::math::particles::{Cumulative, effective, normalised};
use crate::parallel;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, SimulationStream, SimulationStreams, Streams};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Particles with their weights, and the kernel that moves them.
pub(super) struct Population {
    pub theta: Vec<f64>,
    pub x: Vec<f64>,
    pub distance: Vec<f64>,
    pub weights: Vec<f64>,
    /// For drawing by the weights.
    cumulative: Cumulative,
    kernel: Cholesky,
}

/// One accepted attempt.
pub(super) struct Accepted {
    pub theta: Vec<f64>,
    pub x: Vec<f64>,
    pub distance: f64,
}

impl Population {
    /// Weights and kernel of a new generation.
    pub(super) fn new(
        abc: &SmcAbc,
        accepted: Vec<Accepted>,
        before: Option<&Self>,
    ) -> Result<Self> {
        let dim = abc.prior.dim();
        let theta: Vec<f64> = accepted.iter().flat_map(|a| a.theta.iter().copied()).collect();
        let log_weights = parallel::map(accepted.len(), abc.threads, |i| {
            let theta = &theta[i * dim..][..dim];
            before.map_or(0.0, |before| abc.prior.log_density(theta) - before.log_density(theta))
        });
        let weights = normalised(&log_weights);
        let mut covariance = Cholesky::weighted_covariance(&theta, &weights, dim);
        covariance.iter_mut().for_each(|c| *c *= 2.0);
        let kernel = Cholesky::new(&covariance, dim).ok_or_else(|| {
            let why = "such that the particles differ in every parameter: take more of them";
            Error::setting("particles", accepted.len(), why)
        })?;
        Ok(Self {
            cumulative: Cumulative::new(&weights),
            x: accepted.iter().flat_map(|a| a.x.iter().copied()).collect(),
            distance: accepted.iter().map(|a| a.distance).collect(),
            theta,
            weights,
            kernel,
        })
    }

    pub(super) fn generation(
        &self,
        tolerance: f64,
        simulations: u64,
        acceptance: f64,
    ) -> Generation {
        let effective = effective(&self.weights);
        let particles = self.weights.len();
        Generation { tolerance, simulations, particles, acceptance, effective }
    }

    /// log Σ_j w_j N(θ; θ_j, Σ), up to a constant. In the coordinates L⁻¹θ the kernel is a standard normal.
    fn log_density(&self, theta: &[f64]) -> f64 {
        let dim = theta.len();
        let mut offset = vec![0.0; dim];
        let exponents = self.theta.chunks_exact(dim).map(|particle| {
            offset.iter_mut().zip(theta).zip(particle).for_each(|((o, t), p)| *o = t - p);
            self.kernel.solve_lower(&mut offset);
            -0.5 * offset.iter().map(|o| o * o).sum::<f64>()
        });
        let exponents: Vec<f64> = exponents.collect();
        let top = exponents.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = exponents.iter().zip(&self.weights).map(|(e, w)| w * (e - top).exp()).sum();
        top + sum.ln()
    }
}

/// Where the parameters of an attempt come from.
pub(super) struct Law<'a> {
    prior: &'a Prior,
    population: Option<&'a Population>,
    pub proposals: SimulationStreams,
    pub simulations: SimulationStreams,
}

impl<'a> Law<'a> {
    pub(super) fn prior(prior: &'a Prior, streams: &Streams, generation: u64) -> Self {
        let proposals = streams.simulations(Purpose::Parameters, generation);
        let simulations = streams.simulations(Purpose::Simulation, generation);
        Self { prior, population: None, proposals, simulations }
    }

    pub(super) fn moved(
        prior: &'a Prior,
        population: &'a Population,
        streams: &Streams,
        generation: u64,
    ) -> Self {
        Self { population: Some(population), ..Self::prior(prior, streams, generation) }
    }

    /// A draw inside the prior's support: what falls outside is drawn anew, without a simulation.
    pub(super) fn draw(&self, rng: &mut SimulationStream, theta: &mut [f64]) {
        let Some(population) = self.population else { return self.prior.sample(rng, theta) };
        let dim = theta.len();
        loop {
            let i = population.cumulative.at(rng.random());
            theta.iter_mut().for_each(|z| *z = StandardNormal.sample(rng));
            population.kernel.multiply(theta);
            theta.iter_mut().zip(&population.theta[i * dim..]).for_each(|(to, from)| *to += from);
            if self.prior.contains(theta) {
                return;
            }
        }
    }
}
