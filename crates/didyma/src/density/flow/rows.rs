//! The flow on plain rows: densities and samples, checked at the edge.

use super::{SplineFlow, Tape, check_params};
use crate::error::{Error, Result};
use crate::network::kernel::{PANEL, Real};
use crate::rows::Rows;
use rand_distr::{Distribution, StandardNormal};

/// Pairs that are worked on at a time.
const TILE: usize = 4 * PANEL;

impl SplineFlow {
    /// log q(θ | x) for each row of `theta`; `x` has as many rows, or one that all share.
    ///
    /// It is −∞ where the density underflows, and an error where f32 cannot say.
    pub fn log_density<F: Real>(
        &self,
        params: &[F],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        self.check_params(params)?;
        let shared = self.check_pairs(theta, x)?;
        let tile = if shared { TILE } else { Tape::<F>::CONTEXTS };
        let mut tape = Tape::new(self, tile);
        let mut log_q = Vec::with_capacity(theta.len());
        for start in (0..theta.len()).step_by(tile) {
            tape.clear();
            for i in start..theta.len().min(start + tile) {
                if i == start || !shared {
                    tape.context(numbers(x.row(if shared { 0 } else { i })));
                }
                tape.pair(numbers(theta.row(i)));
            }
            self.forward(params, &mut tape);
            log_q.extend(tape.log_q().iter().map(|l| l.f64()));
        }
        check_densities(log_q)
    }

    /// Refuses rows of another flow; whether one x is shared by all rows of θ.
    pub fn check_pairs(&self, theta: Rows<f32>, x: Rows<f32>) -> Result<bool> {
        self.check_dims(theta, x)?;
        theta.expect_finite()?;
        x.expect_finite()?;
        if x.len() != 1 {
            x.expect_rows(theta.len(), "one for each row of theta, or one for all")?;
        }
        Ok(x.len() == 1)
    }

    /// Refuses rows of another flow.
    pub fn check_dims(&self, theta: Rows<f32>, x: Rows<f32>) -> Result<()> {
        theta.expect_columns(self.config.theta_dim, "theta_dim of the flow")?;
        x.expect_columns(self.config.x_dim, "x_dim of the flow")
    }

    /// `count` draws of θ from q(· | x), row after row, and their log-densities.
    pub fn sample<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        count: usize,
        rng: &mut impl rand::Rng,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let size = count.saturating_mul(self.config.theta_dim);
        let mut base = Vec::new();
        if base.try_reserve_exact(size).is_err() {
            return Err(Error::setting("count", count, "few enough for the memory"));
        }
        let mut normal = || -> f64 { StandardNormal.sample(rng) };
        base.extend((0..size).map(|_| normal() as f32));
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
        let mut theta = Vec::with_capacity(base.data().len());
        let mut log_q = Vec::with_capacity(base.len());
        for tile in base.data().chunks(TILE * dim) {
            tape.clear();
            tape.context(numbers(x));
            for u in tile.chunks_exact(dim) {
                tape.pair(numbers(u));
            }
            self.inverse(params, &mut tape);
            log_q.extend(tape.log_q().iter().map(|l| l.f64()));
            theta.extend((0..tile.len()).map(|i| tape.output(i / dim, i % dim).f64() as f32));
        }
        check_samples(&theta, &log_q, dim)?;
        Ok((theta, log_q))
    }

    /// Refuses an observation or a base of another flow.
    pub fn check_base<'a>(&self, x: &[f32], base: &'a [f32]) -> Result<Rows<'a, f32>> {
        let row = Rows::new("x", x, x.len())?;
        row.expect_columns(self.config.x_dim, "x_dim of the flow")?;
        row.expect_finite()?;
        Rows::new("base", base, self.config.theta_dim)
    }

    /// Refuses a parameter vector of another flow, and one that holds NaN or infinity.
    pub fn check_params<F: Real>(&self, params: &[F]) -> Result<()> {
        check_params(params, self.params_len(), "the shape of the flow")
    }
}

/// A row in the flow's kind of number.
fn numbers<F: Real>(row: &[f32]) -> impl Iterator<Item = F> {
    row.iter().map(|&v| F::of(v.into()))
}

/// Refuses log-densities of which f32 could not say what they are.
pub fn check_densities(log_q: Vec<f64>) -> Result<Vec<f64>> {
    match log_q.iter().position(|l| l.is_nan()) {
        Some(row) => Err(Error::OutOfRange { what: "log q", row, value: log_q[row] }),
        None => Ok(log_q),
    }
}

/// Refuses samples of `dim` numbers each that f32 could not hold.
pub fn check_samples(theta: &[f32], log_q: &[f64], dim: usize) -> Result<()> {
    if let Some(i) = theta.iter().position(|t| !t.is_finite()) {
        let value = f64::from(theta[i]);
        return Err(Error::OutOfRange { what: "the sampled theta", row: i / dim, value });
    }
    match log_q.iter().position(|l| !l.is_finite()) {
        Some(row) => Err(Error::OutOfRange { what: "log q", row, value: log_q[row] }),
        None => Ok(()),
    }
}
