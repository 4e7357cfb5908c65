//! The seam between training and the machine it runs on.

use crate::error::Result;
use crate::training::estimator::Plan;

/// Where the arithmetic of training runs.
///
/// The cut is at the whole step: an engine holds dataset, parameters, moments and scratch, receives
/// row numbers and weights, and returns nothing until it is asked.
///
/// A step may be asynchronous. An engine may then report that a loss or gradient is not finite
/// ([`Error::Diverged`](crate::Error::Diverged)) later than at its step, at the latest by the next
/// [`Engine::take_loss`], [`Engine::evaluate`], [`Engine::read_params`] or [`Engine::read_state`]; until then the
/// steps after it change nothing. It is reported once, and the engine goes on from the parameters before that step;
/// [`Engine::restore`] forgets it.
pub trait Engine: Send {
    /// One optimiser step on the loss of `plan`. If that loss or its gradient is not finite, the
    /// parameters stay as they were and it is an error, of this call or a later one.
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()>;

    /// Mean loss of the steps since the last call; NaN if there were none.
    fn take_loss(&mut self) -> Result<f64>;

    /// The loss of `plan` at the present parameters; an error if it is not finite.
    fn evaluate(&mut self, plan: &Plan) -> Result<f64>;

    /// Copies the parameters out.
    ///
    /// # Panics
    /// Unless `to` is as long as the parameters.
    fn read_params(&self, to: &mut [f32]) -> Result<()>;

    /// Copies out all that a later step depends on beside the dataset; a failed step leaves `to` as it was.
    fn read_state(&self, to: &mut EngineState) -> Result<()>;

    /// Puts back what [`Engine::read_state`] copied out, or new parameters with moments of zero.
    fn restore(&mut self, state: &EngineState) -> Result<()>;
}

/// Parameters and optimiser: an engine that is given them goes on where another stopped.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EngineState {
    /// The parameters of the flow.
    pub params: Vec<f32>,
    /// Adam's first moments.
    pub m: Vec<f32>,
    /// Adam's second moments.
    pub v: Vec<f32>,
    /// Steps taken.
    pub steps: u64,
}

impl EngineState {
    /// These parameters, and an optimiser that has taken no step.
    pub fn fresh(params: Vec<f32>) -> Self {
        let zeros = vec![0.0; params.len()];
        Self { m: zeros.clone(), v: zeros, params, steps: 0 }
    }
}
