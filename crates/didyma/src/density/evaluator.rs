//! The seam between flows and the machine that evaluates them: densities and draws.

use super::flow::SplineFlow;
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
}
