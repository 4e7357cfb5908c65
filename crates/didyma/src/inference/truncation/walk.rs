//! Particles that walk in the region, where drawing by rejection would take too long.
//!
//! A step of differential evolution (ter Braak and Vrugt 2008): z' = z + γ (a − b) with two candidates a and b of the
//! swarm, whose differences have the shape of the region, and Metropolis' rule for p on A. The candidates stay as they are
//! and the step is symmetric, so that p on A is left as it is by every step.

use super::{BLOCK, Candidate, TruncatedPrior};
use crate::error::Result;
use crate::inference::posterior::{Point, SampleStreams};
use crate::math::particles::{Cumulative, normalised};
use crate::parallel;
use crate::rng::{Purpose, Stream};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Steps of a particle: of a flow, and of a score, whose density is dear.
const STEPS: (usize, usize) = (150, 15);
/// Steps have all these lengths in turn, in units of 2.38 / √(2 dim), the best for a normal law.
const LENGTHS: [f64; 3] = [1.0, 0.4, 0.1];
/// A little more in every direction, in units of the kernels, so that every place can be reached.
const BLUR: f64 = 0.01;

impl TruncatedPrior<'_> {
    /// θ of `count` particles, row after row.
    pub(super) fn walk(
        &self,
        count: usize,
        swarm: &[Candidate],
        threads: usize,
    ) -> Result<Vec<f64>> {
        let log_weights: Vec<f64> = swarm.iter().map(|c| c.log_weight(1.0)).collect();
        let cumulative = Cumulative::new(&normalised(&log_weights));
        let blocks = parallel::map(count.div_ceil(BLOCK), threads, |block| {
            let SampleStreams { streams, round, .. } = self.streams;
            let mut rng = streams.stream(Purpose::Walk, round, block as u64);
            // Each particle begins at a candidate: by its weight, spread evenly over all particles.
            let first = block * BLOCK;
            let places = first..count.min(first + BLOCK);
            let start = places.map(|i| {
                let place = (i as f64 + rng.random::<f64>()) / count as f64;
                swarm[cumulative.at(place)].point.clone()
            });
            self.walk_block(start.collect(), swarm, &mut rng)
        });
        let mut theta = Vec::new();
        for block in blocks {
            theta.extend(block?.into_iter().flat_map(|point| point.theta));
        }
        Ok(theta)
    }

    fn walk_block(
        &self,
        mut particles: Vec<Point>,
        swarm: &[Candidate],
        rng: &mut Stream,
    ) -> Result<Vec<Point>> {
        let steps = if self.posterior.model().flow().is_some() { STEPS.0 } else { STEPS.1 };
        let best = 2.38 / (2.0 * self.mixture.dim as f64).sqrt();
        for step in 0..steps {
            let length = best * LENGTHS[step % LENGTHS.len()];
            let mut z = Vec::with_capacity(particles.len() * self.mixture.dim);
            for particle in &particles {
                let mut pick = || &swarm[rng.random_range(0..swarm.len())].point.z;
                let (a, b) = (pick(), pick());
                let mut blur: Vec<f64> =
                    (0..self.mixture.dim).map(|_| StandardNormal.sample(rng)).collect();
                self.mixture.shape(&mut blur);
                z.extend(particle.z.iter().zip(a.iter().zip(b)).zip(&blur).map(
                    |((&z, (&a, &b)), blur)| {
                        (f64::from(z) + length * f64::from(a - b) + BLUR * blur) as f32
                    },
                ));
            }
            for (particle, moved) in particles.iter_mut().zip(self.posterior.at(&z)?) {
                let chance = rng.random::<f64>().ln();
                if let Some(moved) = moved.filter(|moved| moved.log_q >= self.threshold)
                    && chance < log_law(&moved) - log_law(particle)
                {
                    *particle = moved;
                }
            }
        }
        Ok(particles)
    }
}

/// log p in the flow's coordinates.
fn log_law(point: &Point) -> f64 {
    point.log_prior + point.log_jacobian
}
