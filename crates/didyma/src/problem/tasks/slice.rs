//! Slice sampling of a density that is known up to a constant (Neal, 2003).

use crate::problem::prior::Prior;
use crate::rng::SimulationStream;
use rand::RngExt;

/// Prior draws among which a chain finds its start.
const CANDIDATES: usize = 4000;
/// Steps out of a slice at most, in each direction.
const MOST_STEPS: usize = 1000;
/// Sweeps before the first draw, and between draws.
const BURN_IN: usize = 200;
const THIN: usize = 15;

/// A Markov chain whose sweeps update one parameter after the other.
pub(super) struct Chain<F> {
    log_density: F,
    theta: Vec<f64>,
    widths: Vec<f64>,
}

impl<F: Fn(&[f64]) -> f64> Chain<F> {
    /// Starts at one of many draws of the prior, chosen by its likelihood, and forgets where it started.
    pub(super) fn new(prior: &Prior, log_density: F, rng: &mut SimulationStream) -> Self {
        let dim = prior.dim();
        let mut draws = vec![0.0; CANDIDATES * dim];
        draws.chunks_exact_mut(dim).for_each(|theta| prior.sample(rng, theta));
        let weights =
            draws.chunks_exact(dim).map(|theta| log_density(theta) - prior.log_density(theta));
        let weights: Vec<f64> = weights.collect();
        let top = weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = weights.iter().map(|w| (w - top).exp()).sum();
        let mut place = rng.random::<f64>() * total;
        let chosen = weights.iter().position(|w| {
            place -= (w - top).exp();
            place <= 0.0
        });
        let start = chosen.unwrap_or(0) * dim;
        let theta = draws[start..start + dim].to_vec();
        let widths = vec![1.0; dim];
        let mut chain = Self { log_density, theta, widths };
        (0..BURN_IN).for_each(|_| chain.sweep(rng, true));
        chain
    }

    /// The next draw.
    pub(super) fn next(&mut self, rng: &mut SimulationStream) -> &[f64] {
        (0..THIN).for_each(|_| self.sweep(rng, false));
        &self.theta
    }

    fn sweep(&mut self, rng: &mut SimulationStream, adapt: bool) {
        for i in 0..self.theta.len() {
            let before = self.theta[i];
            self.update(i, rng);
            if adapt {
                // A width near the size of typical moves needs the fewest evaluations.
                let moved = (self.theta[i] - before).abs().max(1e-6);
                self.widths[i] = 0.95 * self.widths[i] + 0.05 * 3.0 * moved;
            }
        }
    }

    /// Draws parameter i uniformly from the slice under a random height: steps out, then shrinks.
    fn update(&mut self, i: usize, rng: &mut SimulationStream) {
        let (before, width) = (self.theta[i], self.widths[i]);
        let height =
            (self.log_density)(&self.theta) + rng.random::<f64>().max(f64::MIN_POSITIVE).ln();
        let mut low = before - width * rng.random::<f64>();
        let mut high = low + width;
        for _ in 0..MOST_STEPS {
            if self.at(i, low) <= height {
                break;
            }
            low -= width;
        }
        for _ in 0..MOST_STEPS {
            if self.at(i, high) <= height {
                break;
            }
            high += width;
        }
        loop {
            let value = low + (high - low) * rng.random::<f64>();
            if self.at(i, value) > height || high - low < 1e-12 * width {
                return;
            }
            if value < before {
                low = value;
            } else {
                high = value;
            }
        }
    }

    fn at(&mut self, i: usize, value: f64) -> f64 {
        self.theta[i] = value;
        (self.log_density)(&self.theta)
    }
}
