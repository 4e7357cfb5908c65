//! Weights of particles: from logarithms, what they are worth, and drawing by them.

/// Weights that sum to 1.
pub(crate) fn normalised(log_weights: &[f64]) -> Vec<f64> {
    let top = log_weights.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let weights: Vec<f64> = log_weights.iter().map(|l| (l - top).exp()).collect();
    let total: f64 = weights.iter().sum();
    weights.into_iter().map(|w| w / total).collect()
}

/// How many equal weights these, which sum to 1, are worth: 1 / Σ w².
pub(crate) fn effective(weights: &[f64]) -> f64 {
    1.0 / weights.iter().map(|w| w * w).sum::<f64>()
}

/// Running sums of weights, for drawing by them.
#[derive(Debug)]
pub(crate) struct Cumulative(Vec<f64>);

impl Cumulative {
    /// Of weights that sum to 1, at least one.
    pub(crate) fn new(weights: &[f64]) -> Self {
        let mut sum = 0.0;
        let running = weights.iter().map(|w| {
            sum += w;
            sum
        });
        Self(running.collect())
    }

    /// The particle at this place between 0 and 1.
    pub(crate) fn at(&self, place: f64) -> usize {
        self.0.partition_point(|&sum| sum < place).min(self.0.len() - 1)
    }
}
