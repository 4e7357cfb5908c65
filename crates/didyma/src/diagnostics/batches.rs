//! Mean, variance and cost of an estimator, batch by batch as training sees it.

use super::Problem;
use crate::error::{Error, Result};
use crate::estimator::{Estimator, Plan};
use crate::rng::{Purpose, Streams};

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

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
    problem: &mut impl Problem,
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
    let mut plan = Plan::default();
    let mut gradient = vec![0.0; problem.gradient_len()];
    let (mut loss, mut pairs) = (Sums::default(), Sums::default());
    let mut components = vec![Sums::default(); gradient.len()];
    for batch in 0..batches {
        let mut rng = streams.stream(Purpose::Diagnostic, 0, batch as u64);
        let rows = problem.outer(size, &mut rng).to_vec();
        estimator.plan(&rows, problem, &mut rng, &mut plan)?;
        gradient.fill(0.0);
        let groups = plan.groups().iter();
        loss.add(groups.map(|g| problem.evaluate(&plan, g, &mut gradient)).sum());
        pairs.add(plan.pairs() as f64 / size as f64);
        components.iter_mut().zip(&gradient).for_each(|(sums, &g)| sums.add(g));
    }
    Ok(BatchMoments {
        loss: loss.estimate(),
        gradient: components.iter().map(Sums::estimate).collect(),
        variance: size as f64 * components.iter().map(Sums::variance).sum::<f64>(),
        pairs: pairs.estimate(),
    })
}

/// Count, mean and sum of squared deviations (Welford's recurrence).
#[derive(Clone, Copy, Default)]
struct Sums {
    count: f64,
    mean: f64,
    squares: f64,
}

impl Sums {
    fn add(&mut self, value: f64) {
        self.count += 1.0;
        let deviation = value - self.mean;
        self.mean += deviation / self.count;
        self.squares += deviation * (value - self.mean);
    }

    fn variance(&self) -> f64 {
        self.squares / (self.count - 1.0)
    }

    fn estimate(&self) -> Estimate {
        Estimate { mean: self.mean, error: (self.variance() / self.count).sqrt() }
    }
}
