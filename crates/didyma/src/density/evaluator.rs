//! The seam between flows and the machine that evaluates them: densities and draws.

use super::flow::{Groups, SplineFlow};
use crate::error::Result;
use crate::rows::Rows;

/// Densities and draws of flows.
///
/// The threads of a run share one: several of them may ask at once. Rows are independent of each other, so that the
/// answer for one does not depend on those that come with it.
pub trait Evaluator: Send + Sync {
    /// log q(θ | x) for each row of `theta`, as [`SplineFlow::log_density`] has it, refusals included.
    fn log_density(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>>;

    /// θ of given draws of the base and log q(θ | x), as [`SplineFlow::transport`] has them, refusals included.
    fn transport(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)>;

    /// log q(θ | x) of each row of `theta`, whose groups share x: as [`SplineFlow::log_density_of_groups`] has it for the
    /// flow itself, refusals included. A device that has nothing better gives each row an x of its own.
    fn log_density_of_groups(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        theta: Rows<f32>,
        groups: Groups,
    ) -> Result<Vec<f64>> {
        flow.check_groups(theta, groups)?;
        let sizes = groups.x.iter().zip(groups.sizes);
        let x: Vec<f32> = sizes.flat_map(|(x, &size)| x.repeat(size)).collect();
        self.log_density(flow, params, theta, Rows::new("x", &x, groups.x.columns())?)
    }

    /// θ of given draws of the base, whose groups share x, and log q(θ | x): as [`SplineFlow::transport_groups`] has them,
    /// refusals included. A device that has nothing better goes from group to group.
    fn transport_groups(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        base: Rows<f32>,
        groups: Groups,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let dim = flow.check_groups(base, groups)?;
        let (mut theta, mut log_q, mut rest) = (Vec::new(), Vec::new(), base.data());
        for (x, size) in groups.x.iter().zip(groups.sizes).filter(|(_, size)| **size > 0) {
            let (own, others) = rest.split_at(size * dim);
            let found = self.transport(flow, params, x, own)?;
            theta.extend(found.0);
            log_q.extend(found.1);
            rest = others;
        }
        Ok((theta, log_q))
    }
}

/// The cores of this machine.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cpu;

impl Evaluator for Cpu {
    fn log_density(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        flow.log_density(params, theta, x)
    }

    fn transport(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        flow.transport(params, x, base)
    }
    fn log_density_of_groups(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        theta: Rows<f32>,
        groups: Groups,
    ) -> Result<Vec<f64>> {
        flow.log_density_of_groups(params, theta, groups, 1.0)
    }

    fn transport_groups(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        base: Rows<f32>,
        groups: Groups,
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        flow.transport_groups(params, base, groups)
    }
}
