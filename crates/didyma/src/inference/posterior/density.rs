//! Log-densities of a posterior, normalised over the prior's support.

use super::streams::BLOCK;
use super::{Posterior, SampleStreams};
use crate::error::Result;
use crate::parallel;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use std::ops::Range;

/// Draws from which the mass outside the prior is estimated.
const MASS_DRAWS: usize = 10_000;

/// Rows of θ in the flow's coordinates, without those that have no density.
pub(super) struct Inside {
    /// The place of each among all rows.
    places: Vec<usize>,
    log_jacobians: Vec<f64>,
    /// All rows, these and the others.
    rows: usize,
    pub(super) z: Vec<f32>,
}

impl Inside {
    /// Log-densities of all rows from those of z, −∞ for the others.
    pub(super) fn log_densities(&self, log_q: &[f64]) -> Vec<f64> {
        let mut all = vec![f64::NEG_INFINITY; self.rows];
        for ((&place, log_jacobian), log_q) in
            self.places.iter().zip(&self.log_jacobians).zip(log_q)
        {
            all[place] = log_q - log_jacobian;
        }
        all
    }

    /// Of so many rows in a row from the first on, how many have a density.
    pub(super) fn count(&self, rows: Range<usize>) -> usize {
        let before = |row: usize| self.places.partition_point(|&place| place < row);
        before(rows.end) - before(rows.start)
    }
}

impl Posterior {
    /// log p(θ | x_o) of each row, normalised over the prior's support; −∞ outside of it.
    pub fn log_density(&self, theta: Rows, threads: usize) -> Result<Vec<f64>> {
        self.log_density_at(&self.observation, theta, threads)
    }

    /// log q(θ | x) of each row at another observation, normalised over the prior's support.
    pub fn log_density_at(&self, x: &[f64], theta: Rows, threads: usize) -> Result<Vec<f64>> {
        theta.expect_columns(self.prior.dim(), "parameters of the prior")?;
        theta.expect_finite()?;
        let features = self.features(x)?;
        let log_mass = self.log_mass_inside(x, threads)?;
        let blocks = parallel::map(theta.len().div_ceil(BLOCK), threads, |i| {
            let rows = i * BLOCK..theta.len().min((i + 1) * BLOCK);
            self.log_density_block(&features, rows.map(|row| theta.row(row)))
        });
        let mut all = Vec::with_capacity(theta.len());
        for block in blocks {
            all.extend(block?.into_iter().map(|l| l - log_mass));
        }
        Ok(all)
    }

    /// One block of densities: those inside the support go through the flow together.
    fn log_density_block<'a>(
        &self,
        features: &[f32],
        theta: impl Iterator<Item = &'a [f64]>,
    ) -> Result<Vec<f64>> {
        let inside = self.inside(theta);
        let z = Rows::new("z", &inside.z, self.dim())?;
        let x = Rows::new("x", features, features.len())?;
        Ok(inside.log_densities(&self.ensemble.log_density(&*self.device, z, x)?))
    }

    /// log q(θ | x_o) of each row, not normalised over the support, where the base of the flow has this standard deviation:
    /// the density of [`Posterior::propose`], up to a constant. Of flows only; −∞ outside of the support.
    pub(crate) fn log_proposal(&self, theta: Rows, width: f64) -> Result<Vec<f64>> {
        let features = self.features(&self.observation)?;
        let inside = self.inside(theta.iter());
        let z = Rows::new("z", &inside.z, self.dim())?;
        let x = Rows::new("x", &features, features.len())?;
        let log_q = self.ensemble.log_density_of_groups(z, x, &[z.len()], width)?;
        Ok(inside.log_densities(&log_q))
    }

    /// These rows in the flow's coordinates.
    pub(super) fn inside<'a>(&self, theta: impl Iterator<Item = &'a [f64]>) -> Inside {
        let (mut places, mut log_jacobians, mut all_z) = (Vec::new(), Vec::new(), Vec::new());
        let (mut z, mut rows) = (vec![0.0; self.dim()], 0);
        for row in theta {
            let log_jacobian =
                self.prior.contains(row).then(|| self.coordinates.to_z(&self.prior, row, &mut z));
            // So far out that single precision has no number for it, the density is 0.
            let near = |z: &f64| (*z as f32).is_finite();
            if let Some(log_jacobian) = log_jacobian.filter(|_| z.iter().all(near)) {
                places.push(rows);
                log_jacobians.push(log_jacobian);
                all_z.extend(z.iter().map(|&z| z as f32));
            }
            rows += 1;
        }
        Inside { places, log_jacobians, rows, z: all_z }
    }

    /// Share of q(· | x_o) outside the prior's support: none in unbounded coordinates, else by a fixed number of draws.
    pub fn mass_outside(&self, streams: SampleStreams, threads: usize) -> Result<f64> {
        if self.coordinates.is_unbounded() {
            return Ok(0.0);
        }
        let features = self.features(&self.observation)?;
        let blocks = MASS_DRAWS.div_ceil(BLOCK);
        let drawn = parallel::map(blocks, threads, |i| {
            self.block(&features, 1.0, streams, i as u64).map(|rows| rows.len() / self.prior.dim())
        });
        let inside: usize = drawn.into_iter().sum::<Result<usize>>()?;
        Ok(1.0 - inside as f64 / (blocks * BLOCK) as f64)
    }

    /// Logarithm of the mass of q inside the support: 0 in unbounded coordinates, else by counting draws.
    pub(super) fn log_mass_inside(&self, x: &[f64], threads: usize) -> Result<f64> {
        if self.coordinates.is_unbounded() {
            return Ok(0.0);
        }
        let streams = SampleStreams::new(Streams::new(0), Purpose::Mass, 0);
        Ok(self.sample_at(x, MASS_DRAWS, streams, threads)?.acceptance.ln())
    }
}
