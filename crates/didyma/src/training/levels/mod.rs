//! What can be measured about an estimator: its levels and their rates, its variance and its cost.

mod batches;
mod choice;
mod flow;
mod study;
mod sums;

pub use crate::math::moments::Estimate;
pub use crate::math::regression::Slope;
pub use batches::{BatchMoments, measure_batches};
pub use choice::LevelChoice;
pub use flow::TrainedFlow;
pub use study::{BaseTerm, LevelMoments, LevelReport, LevelStudy};

use crate::error::Result;
use crate::rng::Stream;
use crate::training::estimator::{Plan, Source};

/// Something whose loss and gradient can be evaluated query by query: a toy, or a flow with its
/// dataset.
pub trait Objective: Source {
    /// Number of parameters that the gradient has.
    fn gradient_len(&self) -> usize;

    /// Starts anew, and fills `rows` with those of `queries` outer samples.
    fn outer(&mut self, queries: usize, rng: &mut Stream, rows: &mut Vec<u32>);

    /// Loss of a plan on rows given out since; its gradient replaces `gradient`.
    fn evaluate(&mut self, plan: &Plan, gradient: &mut [f64]) -> Result<f64>;

    /// Evaluations of log q that an inner sample takes.
    fn evaluations(&self) -> f64 {
        1.0
    }

    /// Plans that are best evaluated together. If it is more than 1, plans stay valid when [`Objective::outer`] starts
    /// anew.
    fn at_once(&self) -> usize {
        1
    }

    /// Evaluates each plan by itself, into the place of the same number.
    fn evaluate_all(&mut self, plans: &[Plan], found: &mut [Evaluated]) -> Result<()> {
        for (plan, found) in plans.iter().zip(found) {
            found.loss = self.evaluate(plan, &mut found.gradient)?;
        }
        Ok(())
    }
}

/// What a plan was evaluated to.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluated {
    /// The loss.
    pub loss: f64,
    /// Its gradient.
    pub gradient: Vec<f64>,
}
