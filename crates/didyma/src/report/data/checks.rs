//! The observation against simulations at the posterior, summary by summary and all together.

use super::run::RunData;
use crate::evaluation::calibration::Surprise;
use crate::problem::check::two_sided;
use crate::rows::Rows;
use didyma_plot::quantile;

/// One summary of the observation against simulations at the posterior.
pub(crate) struct Check {
    /// Its name.
    pub(crate) name: String,
    /// The observation.
    pub(crate) observed: f64,
    /// Quantiles of the simulations: 2.5, 16, 50, 84 and 97.5 %.
    pub(crate) quantiles: [f64; 5],
    /// The two-sided p-value: twice the share of simulations at least as far out on the observation's side, itself among
    /// them. Uniform, or larger, if the observation is one of them.
    pub(crate) tail: f64,
}

/// One check for each summary; none where nothing could be simulated.
pub(crate) fn checks(run: &RunData) -> Vec<Check> {
    let columns = run.predictive.iter().flatten();
    // Failed simulations are missing from all columns alike.
    columns
        .zip(&run.observation)
        .filter(|(column, _)| !column.is_empty())
        .map(|(column, (name, observed))| Check::new(name, *observed, column.clone()))
        .collect()
}

/// All summaries together; none where nothing could be simulated. The p-value is uniform, or larger, if the observation is
/// one of the simulations.
pub(crate) fn joint_check(run: &RunData) -> Option<Surprise> {
    let columns = run.predictive.as_ref()?;
    let count = columns.first()?.len();
    let row = |i: usize| columns.iter().filter_map(move |column| column.get(i).copied());
    let rows: Vec<f64> = (0..count).flat_map(row).collect();
    let observed: Vec<f64> = run.observation.iter().map(|(_, value)| *value).collect();
    // Too few simulations are no check.
    Surprise::of(&observed, Rows::new("x", &rows, columns.len()).ok()?, 1).ok()
}

impl Check {
    fn new(name: &str, observed: f64, mut simulated: Vec<f64>) -> Self {
        simulated.sort_unstable_by(f64::total_cmp);
        Self {
            name: name.to_owned(),
            observed,
            quantiles: [0.025, 0.16, 0.5, 0.84, 0.975].map(|share| quantile(&simulated, share)),
            tail: two_sided(&simulated, observed),
        }
    }

    /// A value in units of the simulations' spread, from the observation.
    pub(crate) fn scaled(&self, value: f64) -> f64 {
        let spread = 0.5 * (self.quantiles[3] - self.quantiles[1]);
        (value - self.observed) / if spread > 0.0 { spread } else { self.observed.abs().max(1.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_ranks() {
        let simulated: Vec<f64> = (1..100).map(f64::from).collect();
        let tail = |observed: f64| Check::new("x", observed, simulated.clone()).tail;
        // 99 simulations: nothing beyond is 2 · 1/100, one value 2 · 2/100; in the middle it is 1.
        assert_eq!((tail(1000.0), tail(-5.0), tail(99.0), tail(1.0)), (0.02, 0.02, 0.04, 0.04));
        assert_eq!(tail(50.0), 1.0);
        assert_eq!(Check::new("x", 3.0, vec![3.0; 50]).tail, 1.0);
        // Few simulations say little.
        assert_eq!(Check::new("x", 9.0, vec![1.0]).tail, 1.0);
    }
}
