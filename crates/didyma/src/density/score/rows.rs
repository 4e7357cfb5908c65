//! The score network on plain rows: samples and densities, checked at the edge.

use super::ScoreModel;
use super::field::NetworkScore;
use super::ode::{Grid, Integrator, Way};
use crate::error::{Error, Result};
use crate::network::kernel::{PANEL, Real};
use crate::rows::Rows;

impl ScoreModel {
    /// Carries draws of the standard normal law, row after row, to draws of q(θ | x).
    pub fn sample<F: Real>(&self, params: &[F], x: &[f32], base: &[f32]) -> Result<Vec<f32>> {
        Ok(self.carry_base(params, x, base, false)?.0)
    }

    /// [`ScoreModel::sample`] with log |dz/dbase| of each row, by the exact trace.
    pub fn transport<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.carry_base(params, x, base, true)
    }

    /// log q(z | x) for each row of `z`; `x` has as many rows, or one that all share.
    pub fn log_density<F: Real>(
        &self,
        params: &[F],
        z: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        self.check(params, z, x)?;
        let (dim, shared) = (self.config.theta_dim, x.len() == 1);
        if !shared {
            x.expect_rows(z.len(), "one for each row of z, or one for all")?;
        }
        let grid = Grid::new(self.config.ode_steps);
        let mut field = NetworkScore::new(self, params, grid);
        let mut integrator = Integrator::new(grid, dim, true);
        let mut log_q = Vec::with_capacity(z.len());
        for (i, panel) in z.data().chunks(PANEL * dim).enumerate() {
            if i == 0 || !shared {
                field.set_x(x.iter().skip(if shared { 0 } else { i * PANEL }));
            }
            integrator.carry(&mut field, Way::ToNoise, panel, |base, log_det| {
                log_q.push(log_normal(base) + log_det);
            });
        }
        match log_q.iter().position(|l| l.is_nan()) {
            Some(row) => Err(Error::OutOfRange { what: "log q", row, value: log_q[row] }),
            None => Ok(log_q),
        }
    }

    fn check<F: Real>(&self, params: &[F], theta: Rows<f32>, x: Rows<f32>) -> Result<()> {
        self.check_params(params)?;
        theta.expect_columns(self.config.theta_dim, "theta_dim of the score network")?;
        x.expect_columns(self.config.x_dim, "x_dim of the score network")?;
        theta.expect_finite()?;
        x.expect_finite()
    }

    fn carry_base<F: Real>(
        &self,
        params: &[F],
        x: &[f32],
        base: &[f32],
        trace: bool,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let dim = self.config.theta_dim;
        let x = Rows::new("x", x, x.len())?;
        self.check(params, Rows::new("base", base, dim)?, x)?;
        let grid = Grid::new(self.config.ode_steps);
        let mut field = NetworkScore::new(self, params, grid);
        field.set_x(x.iter());
        let mut integrator = Integrator::new(grid, dim, trace);
        let (mut z, mut log_det) = (Vec::with_capacity(base.len()), Vec::new());
        for panel in base.chunks(PANEL * dim) {
            integrator.carry(&mut field, Way::ToData, panel, |row, log| {
                z.extend(row.iter().map(|&v| v as f32));
                log_det.push(log);
            });
        }
        if let Some(i) = z.iter().position(|z| !z.is_finite()) {
            let value = f64::from(z[i]);
            return Err(Error::OutOfRange { what: "the sampled theta", row: i / dim, value });
        }
        match log_det.iter().position(|l| !l.is_finite()) {
            Some(row) => {
                Err(Error::OutOfRange { what: "log |dz/dbase|", row, value: log_det[row] })
            }
            None => Ok((z, log_det)),
        }
    }
}

/// log N(base; 0, I).
fn log_normal(base: &[f64]) -> f64 {
    base.iter().map(|b| -0.5 * (b * b + std::f64::consts::TAU.ln())).sum()
}
