//! Mean, variance and cost of an estimator, batch by batch as training sees it.

use super::Objective;
use crate::error::{Error, Result};
use crate::math::moments::{Estimate, Moments};
use crate::rng::{Purpose, Streams};
use crate::training::estimator::{Estimator, Plan};

/// What an estimator gives for a query, on average.
#[derive(Clone, Debug, PartialEq)]
pub struct BatchMoments {
    /// The loss.
    pub loss: Estimate,
    /// Each component of the gradient.
    pub gradient: Vec<Estimate>,
    /// Trace of the covariance of the gradient, per query: batch size × that of a batch's mean. Queries
    /// of a batch with systematic levels are not independent, and this shows their gain.
    pub variance: f64,
    /// (θ, x) pairs evaluated.
    pub pairs: Estimate,
}

/// Runs an estimator on `batches` batches of `size` queries.
pub fn measure_batches(
    problem: &mut impl Objective,
    estimator: &mut Estimator,
    size: usize,
    batches: usize,
    streams: Streams,
) -> Result<BatchMoments> {
    if size == 0 {
        return Err(Error::setting("size", size, "at least 1"));
    }
    if batches < 2 {
        return Err(Error::setting("batches", batches, "at least 2, for a standard error"));
    }
    let (mut plan, mut rows) = (Plan::default(), Vec::new());
    let mut gradient = vec![0.0; problem.gradient_len()];
    let (mut loss, mut pairs) = (Moments::default(), Moments::default());
    let mut components = vec![Moments::default(); gradient.len()];
    for batch in 0..batches {
        let mut rng = streams.stream(Purpose::Diagnostic, 0, batch as u64);
        problem.outer(size, &mut rng, &mut rows);
        estimator.plan(&rows, problem, &mut rng, &mut plan)?;
        loss.add(problem.evaluate(&plan, &mut gradient)?);
        pairs.add(plan.pairs() as f64 / size as f64);
        components.iter_mut().zip(&gradient).for_each(|(sums, &g)| sums.add(g));
    }
    Ok(BatchMoments {
        loss: loss.estimate(),
        gradient: components.iter().map(Moments::estimate).collect(),
        variance: size as f64 * components.iter().map(Moments::variance).sum::<f64>(),
        pairs: pairs.estimate(),
    })
}
