//! The seam between training and the machine it runs on.

use crate::dataset::Dataset;
use crate::error::Result;
use crate::estimator::Plan;

/// Where the arithmetic of training runs.
///
/// The cut is at the whole step: an engine holds dataset, parameters, moments and scratch, receives
/// row numbers and weights, and returns nothing until it is asked.
pub trait Engine {
    /// Replaces the dataset, e.g. by a longer one; parameters and moments stay as they are.
    fn load(&mut self, data: &Dataset) -> Result<()>;

    /// One optimiser step on the loss of `plan`. If that loss or its gradient is not finite, the
    /// parameters stay as they were and it is an error.
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()>;

    /// Mean loss of the steps since the last call; NaN if there were none.
    fn take_loss(&mut self) -> f64;

    /// The loss of `plan` at the present parameters; an error if it is not finite.
    fn evaluate(&mut self, plan: &Plan) -> Result<f64>;

    /// Copies the parameters out.
    ///
    /// # Panics
    /// Unless `to` is as long as the parameters.
    fn read_params(&self, to: &mut [f32]);
}
