//! What can be measured about an estimator: its levels and their rates, its variance and its cost.

mod batches;
mod levels;
mod regression;

pub use batches::{BatchMoments, Estimate, measure_batches};
pub use levels::{BaseTerm, LevelMoments, LevelReport, LevelStudy, Slope};

use crate::estimator::{Group, Plan, Source};
use crate::rng::Stream;

/// Something whose loss and gradient can be evaluated query by query: the toys of [`crate::toy`], or
/// a flow with its dataset.
pub trait Problem: Source {
    /// Number of parameters that the gradient has.
    fn gradient_len(&self) -> usize;

    /// Starts anew with the rows of `queries` outer samples.
    fn outer(&mut self, queries: usize, rng: &mut Stream) -> &[u32];

    /// Loss of one group of a plan on rows given out since; its gradient is added to `gradient`.
    fn evaluate(&mut self, plan: &Plan, group: &Group, gradient: &mut [f64]) -> f64;
}
