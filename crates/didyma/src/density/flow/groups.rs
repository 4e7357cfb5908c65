//! The flow on rows in groups that share x, each of its own size: densities and draws at many observations at once.

use super::rows::{check_densities, check_samples};
use super::{SplineFlow, Tape};
use crate::error::Result;
use crate::network::kernel::PANEL;
use crate::rows::Rows;

/// Pairs that are worked on at a time.
const TILE: usize = 4 * PANEL;

/// Rows of θ that share x: group g has row g of `x` and the next `sizes[g]` rows.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    /// One row for each group.
    pub x: Rows<'a, f32>,
    /// Rows of each group.
    pub sizes: &'a [usize],
}

impl SplineFlow {
    /// log q(θ | x) of each row of `theta`, where the base of the flow is normal with standard deviation `width`: 1 is the
    /// flow itself, proposals are wider. With u the base point of θ,
    ///
    /// ```text
    /// log q_w(θ | x) = log q(θ | x) + ½ (1 − w⁻²) ‖u‖² − D log w
    /// ```
    pub fn log_density_of_groups(
        &self,
        params: &[f32],
        theta: Rows<f32>,
        groups: Groups,
        width: f64,
    ) -> Result<Vec<f64>> {
        self.check_params(params)?;
        let dim = self.check_groups(theta, groups)?;
        let (gain, constant) = (0.5 * (1.0 - width.powi(-2)), dim as f64 * width.ln());
        let mut log_q = Vec::with_capacity(theta.len());
        self.each_tile(theta, groups, |tape| {
            self.forward(params, tape);
            for (i, log) in tape.log_q().iter().enumerate() {
                let wide = if width == 1.0 { 0.0 } else { gain * squared_norm(tape, i, dim) };
                log_q.push(f64::from(*log) + wide - constant);
            }
        });
        check_densities(log_q)
    }

    /// θ of given draws of the base, row after row, and log q(θ | x).
    pub fn transport_groups(
        &self,
        params: &[f32],
        base: Rows<f32>,
        groups: Groups,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.check_params(params)?;
        let dim = self.check_groups(base, groups)?;
        let (mut theta, mut log_q) = (Vec::with_capacity(base.data().len()), Vec::new());
        self.each_tile(base, groups, |tape| {
            self.inverse(params, tape);
            log_q.extend(tape.log_q().iter().map(|l| f64::from(*l)));
            let numbers = tape.log_q().len() * dim;
            theta.extend((0..numbers).map(|i| tape.output(i / dim, i % dim)));
        });
        check_samples(&theta, &log_q, dim)?;
        Ok((theta, log_q))
    }

    /// Refuses rows of another flow; the numbers of a θ.
    pub fn check_groups(&self, theta: Rows<f32>, groups: Groups) -> Result<usize> {
        theta.expect_columns(self.config().theta_dim, "theta_dim of the flow")?;
        groups.x.expect_columns(self.config().x_dim, "x_dim of the flow")?;
        theta.expect_finite()?;
        groups.x.expect_finite()?;
        groups.x.expect_rows(groups.sizes.len(), "one for each group")?;
        theta.expect_rows(groups.sizes.iter().sum(), "as many as the groups have")?;
        Ok(self.config().theta_dim)
    }

    /// Goes through all rows in their order, as many at a time as a tape holds.
    fn each_tile(&self, rows: Rows<f32>, groups: Groups, mut work: impl FnMut(&mut Tape<f32>)) {
        let mut tape = Tape::new(self, TILE.min(rows.len()));
        tape.clear();
        let mut row = 0;
        for (group, &size) in groups.sizes.iter().enumerate() {
            let mut begun = false;
            for _ in 0..size {
                let contexts = tape.tile.contexts;
                let full = tape.tile.pairs == TILE;
                if full || (!begun && contexts == Tape::<f32>::CONTEXTS) {
                    work(&mut tape);
                    tape.clear();
                    begun = false;
                }
                if !begun {
                    tape.context(groups.x.row(group).iter().copied());
                    begun = true;
                }
                tape.pair(rows.row(row).iter().copied());
                row += 1;
            }
        }
        if tape.tile.pairs > 0 {
            work(&mut tape);
        }
    }
}

/// ‖u‖² of a pair's base point, after a forward pass.
fn squared_norm(tape: &Tape<f32>, pair: usize, dim: usize) -> f64 {
    (0..dim).map(|f| f64::from(tape.output(pair, f)).powi(2)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::flow::FlowConfig;
    use crate::rng::{Purpose, Streams};

    fn flow() -> (SplineFlow, Vec<f32>) {
        let flow = SplineFlow::new(FlowConfig { layers: 3, ..FlowConfig::new(2, 3) }).unwrap();
        let params = flow.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
        (flow, params)
    }

    /// Numbers between −1 and 1 that look like none other.
    fn numbers(count: usize, phase: f32) -> Vec<f32> {
        (0..count).map(|i| (1.7 * i as f32 + phase).sin()).collect()
    }

    /// Groups of 0, 1, 300 and 70 times 2 rows (more than a tile, more groups than contexts) have the densities that their
    /// rows have one by one, and draws are where their densities say.
    #[test]
    fn groups_are_their_rows_one_by_one() {
        let (flow, params) = flow();
        let sizes = [vec![0, 1, 300], vec![2; 70]].concat();
        let (count, x) = (sizes.iter().sum::<usize>(), numbers(3 * sizes.len(), 0.3));
        let base = numbers(2 * count, 0.7);
        let groups = Groups { x: Rows::new("x", &x, 3).unwrap(), sizes: &sizes };
        let base = Rows::new("base", &base, 2).unwrap();
        let (theta, log_q) = flow.transport_groups(&params, base, groups).unwrap();
        let theta = Rows::new("theta", &theta, 2).unwrap();
        let found = flow.log_density_of_groups(&params, theta, groups, 1.0).unwrap();
        let context = sizes.iter().enumerate().flat_map(|(g, &size)| vec![g; size]);
        let each: Vec<f32> = context.flat_map(|g| x[3 * g..3 * g + 3].to_vec()).collect();
        let each = Rows::new("x", &each, 3).unwrap();
        let expected = flow.log_density(&params, theta, each).unwrap();
        for ((a, b), c) in found.iter().zip(&expected).zip(&log_q) {
            // One pass in single precision; the draw's own density has an inverse pass, too.
            assert!((a - b).abs() < 1e-5 && (a - c).abs() < 1e-3, "{a} {b} {c}");
        }
    }

    /// By quadrature over a square that holds all but 1e-4 of it: the mass is 1 at any width.
    #[test]
    fn wide_densities_have_mass_one() {
        let (flow, params) = flow();
        let (side, reach) = (161, 9.0f32);
        let step = 2.0 * reach / (side - 1) as f32;
        let at = |i: usize| i as f32 * step - reach;
        let grid: Vec<f32> = (0..side * side).flat_map(|i| [at(i / side), at(i % side)]).collect();
        let (x, sizes) = (numbers(3, 0.1), [side * side]);
        let groups = Groups { x: Rows::new("x", &x, 3).unwrap(), sizes: &sizes };
        let theta = Rows::new("theta", &grid, 2).unwrap();
        for width in [0.8, 1.0, 1.6] {
            let log_q = flow.log_density_of_groups(&params, theta, groups, width).unwrap();
            let mass: f64 = log_q.iter().map(|l| l.exp()).sum::<f64>() * f64::from(step * step);
            assert!((mass - 1.0).abs() < 5e-3, "{mass} at width {width}");
        }
    }
}
