//! An ensemble of flows on rows in groups that share x: draws and densities at many summaries at once.

use super::{Base, Ensemble, mixed};
use crate::density::Evaluator;
use crate::density::flow::{Groups, SplineFlow};
use crate::error::{Error, Result};
use crate::rows::Rows;

impl Ensemble {
    /// log q(θ | x) of groups of rows that share x, each of its own size, by a device.
    pub(crate) fn log_density_at_groups(
        &self,
        device: &dyn Evaluator,
        theta: Rows<f32>,
        x: Rows<f32>,
        sizes: &[usize],
    ) -> Result<Vec<f64>> {
        let (flow, groups) = (self.flow()?, Groups { x, sizes });
        let of = |params: &Vec<f32>| device.log_density_of_groups(flow, params, theta, groups);
        Ok(mixed(self.members.iter().map(of).collect::<Result<_>>()?))
    }

    /// log q(θ | x) of groups of rows that share x, each of its own size, where the base of the flow has this standard
    /// deviation.
    pub(crate) fn log_density_of_groups(
        &self,
        theta: Rows<f32>,
        x: Rows<f32>,
        sizes: &[usize],
        width: f64,
    ) -> Result<Vec<f64>> {
        let (flow, groups) = (self.flow()?, Groups { x, sizes });
        let of = |params: &Vec<f32>| flow.log_density_of_groups(params, theta, groups, width);
        Ok(mixed(self.members.iter().map(of).collect::<Result<_>>()?))
    }

    /// θ of draws of the base in groups that share x, by a device.
    pub(crate) fn transport_groups(
        &self,
        device: &dyn Evaluator,
        base: &Base,
        x: Rows<f32>,
        sizes: &[usize],
    ) -> Result<Vec<f32>> {
        let (flow, dim) = (self.flow()?, self.density.dims().0);
        let mut theta = vec![0.0; base.draws.len()];
        for (k, params) in self.members.iter().enumerate() {
            let (mine, counts) = base.of_member(k, sizes);
            let row = |row: &usize| &base.draws[row * dim..(row + 1) * dim];
            let draws: Vec<f32> = mine.iter().flat_map(row).copied().collect();
            let (draws, groups) = (Rows::new("base", &draws, dim)?, Groups { x, sizes: &counts });
            let (found, _) = device.transport_groups(flow, params, draws, groups)?;
            for (row, found) in mine.iter().zip(found.chunks_exact(dim)) {
                theta[row * dim..(row + 1) * dim].copy_from_slice(found);
            }
        }
        Ok(theta)
    }

    fn flow(&self) -> Result<&SplineFlow> {
        self.density.flow().ok_or_else(|| {
            let why = "flow where densities are asked for at many summaries at once";
            Error::setting("density", "score", why)
        })
    }
}

impl Base {
    /// The draws that a member carries to θ, and how many of each group they are.
    fn of_member(&self, member: usize, sizes: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let own = |row: usize| self.members.get(row).copied().unwrap_or(0) == member;
        let (mut mine, mut counts, mut first) = (Vec::new(), Vec::new(), 0);
        for &size in sizes {
            let before = mine.len();
            mine.extend((first..first + size).filter(|&row| own(row)));
            counts.push(mine.len() - before);
            first += size;
        }
        (mine, counts)
    }
}
