//! The flow on plain rows: densities and samples, checked at the edge.

use super::{Scaling, SplineFlow, Tape, check_params};
use crate::error::{Error, Result};
use crate::kernel::{PANEL, Real};
use crate::rows::Rows;
use rand_distr::{Distribution, StandardNormal};

/// Pairs that are worked on at a time.
const TILE: usize = 4 * PANEL;

impl Scaling {
    /// Row by row (v − mean) / scale, in the flow's kind of number.
    pub fn apply<'a, F: Real>(&'a self, row: &'a [f32]) -> impl Iterator<Item = F> + 'a {
        let parts = row.iter().zip(self.mean.iter().zip(&self.scale));
        parts.map(|(&v, (&mean, &scale))| F::of((f64::from(v) - mean) / scale))
    }
}

impl SplineFlow {
    /// log q(θ | x) for each row of `theta`; `x` has as many rows, or one that all share.
    ///
    /// It is −∞ where the density underflows, and an error where f32 cannot say.
    pub fn log_density<F: Real>(&self, params: &[F], theta: Rows, x: Rows) -> Result<Vec<f64>> {
        self.check_params(params)?;
        let shared = self.check_pairs(theta, x)?;
        let tile = if shared { TILE } else { Tape::<F>::CONTEXTS };
        let mut tape = Tape::new(self, tile);
        let mut log_q = Vec::with_capacity(theta.len());
        for start in (0..theta.len()).step_by(tile) {
            tape.clear();
            for i in start..theta.len().min(start + tile) {
                if i == start || !shared {
                    tape.context(self.x.apply(x.row(if shared { 0 } else { i })));
                }
                tape.pair(self.theta.apply(theta.row(i)));
            }
            self.forward(params, &mut tape);
            log_q.extend(tape.log_q().iter().map(|l| l.f64()));
        }
        check_densities(log_q)
    }

    /// Refuses rows of another flow; whether one x is shared by all rows of θ.
    pub fn check_pairs(&self, theta: Rows, x: Rows) -> Result<bool> {
        theta.expect_columns(self.config.theta_dim, "theta_dim of the flow")?;
        x.expect_columns(self.config.x_dim, "x_dim of the flow")?;
        theta.expect_finite()?;
        x.expect_finite()?;
        if x.len() != 1 {
            x.expect_rows(theta.len(), "one for each row of theta, or one for all")?;
        }
        Ok(x.len() == 1)
    }

    /// `count` draws of θ from q(· | x), row after row, and their log-densities.
    pub fn sample<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        count: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.sample_wide(params, x, count, 1.0, rng)
    }

    /// Draws of a law that is wider than q(· | x) in every direction: the base's standard deviation is `width`
    /// instead of 1. The log-densities are those of q.
    pub fn sample_wide<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        count: usize,
        width: f64,
        rng: &mut impl rand::Rng,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let size = count.saturating_mul(self.config.theta_dim);
        let mut base = Vec::new();
        if base.try_reserve_exact(size).is_err() {
            return Err(Error::setting("count", count, "few enough for the memory"));
        }
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        base.extend((0..size).map(|_| (width * normal()) as f32));
        self.transport(params, x, &base)
    }

    /// θ of given draws of the base, row after row, and log q(θ | x).
    pub fn transport<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.check_params(params)?;
        let dim = self.config.theta_dim;
        let base = self.check_base(x, base)?;
        let mut tape = Tape::new(self, TILE.min(base.len()));
        let mut z = Vec::with_capacity(base.data().len());
        let mut log_q = Vec::with_capacity(base.len());
        for tile in base.data().chunks(TILE * dim) {
            tape.clear();
            tape.context(self.x.apply(x));
            for u in tile.chunks_exact(dim) {
                tape.pair(u.iter().map(|&u| F::of(u.into())));
            }
            self.inverse(params, &mut tape);
            log_q.extend(tape.log_q().iter().map(|l| l.f64()));
            z.extend((0..tile.len()).map(|i| tape.output(i / dim, i % dim).f64()));
        }
        self.unscaled(z, log_q)
    }

    /// Refuses an observation or a base of another flow.
    pub fn check_base<'a>(&self, x: &[f32], base: &'a [f32]) -> Result<Rows<'a>> {
        let row = Rows::new("x", x, x.len())?;
        row.expect_columns(self.config.x_dim, "x_dim of the flow")?;
        row.expect_finite()?;
        Rows::new("base", base, self.config.theta_dim)
    }

    /// θ of what comes out of the flow, row after row, with its log-densities; refuses what f32 could not hold.
    pub fn unscaled(
        &self,
        z: impl IntoIterator<Item = f64>,
        log_q: Vec<f64>,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let scaling = self.theta.mean.iter().zip(&self.theta.scale).cycle();
        let theta: Vec<f32> = z
            .into_iter()
            .zip(scaling)
            .map(|(z, (mean, scale))| (z * scale + mean) as f32)
            .collect();
        check_samples(&theta, &log_q, self.config.theta_dim)?;
        Ok((theta, log_q))
    }

    /// Refuses a parameter vector of another flow, and one that holds NaN or infinity.
    pub fn check_params<F: Real>(&self, params: &[F]) -> Result<()> {
        check_params(params, self.params_len(), "the shape of the flow")
    }
}

/// Refuses log-densities of which f32 could not say what they are.
pub fn check_densities(log_q: Vec<f64>) -> Result<Vec<f64>> {
    match log_q.iter().position(|l| l.is_nan()) {
        Some(row) => Err(Error::OutOfRange { what: "log q", row, value: log_q[row] }),
        None => Ok(log_q),
    }
}

/// Refuses samples that f32 could not hold.
fn check_samples(theta: &[f32], log_q: &[f64], dim: usize) -> Result<()> {
    if let Some(i) = theta.iter().position(|t| !t.is_finite()) {
        let value = f64::from(theta[i]);
        return Err(Error::OutOfRange { what: "the sampled theta", row: i / dim, value });
    }
    match log_q.iter().position(|l| !l.is_finite()) {
        Some(row) => Err(Error::OutOfRange { what: "log q", row, value: log_q[row] }),
        None => Ok(()),
    }
}
