//! The local classifier two-sample test: is q(θ | x_o) right at one observation?

mod networks;
mod pairs;

use crate::error::{Error, Result};
use crate::parallel;
use crate::rng::Streams;
use crate::rows::Rows;
use networks::{Networks, train};
use pairs::{Null, Pairs};
use serde::Serialize;

/// Fewest pairs: a tenth of them says when training ends, and must hold some of both classes.
pub const LEAST_LOCAL_ROWS: usize = 50;

/// How a [`LocalTest`] is trained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LocalSettings {
    /// Parts of the data that are left out in turn: each leaves a network more, and 1 leaves nothing out.
    pub folds: usize,
    /// Networks of each part, which differ in their first weights and batches; their probabilities are averaged.
    pub ensemble: usize,
    /// Repetitions under the null hypothesis: the smallest p-value is 1 / (1 + trials).
    pub trials: usize,
}

impl Default for LocalSettings {
    /// As sbi's `LC2ST`: one part, one network, 100 trials.
    fn default() -> Self {
        Self { folds: 1, ensemble: 1, trials: 100 }
    }
}

impl LocalSettings {
    fn check(self) -> Result<()> {
        for (name, value, most) in [
            ("folds", self.folds, 100),
            ("ensemble", self.ensemble, 1000),
            ("trials", self.trials, 100_000),
        ] {
            if !(1..=most).contains(&value) {
                return Err(Error::setting(name, value, format!("between 1 and {most}")));
            }
        }
        Ok(())
    }
}

/// Classifiers of the local two-sample test L-C2ST (Linhart, Gramfort and Rodrigues 2023).
///
/// A network learns to tell pairs (θ_i, x_i) of the problem from pairs (θ'_i, x_i), θ'_i ~ q(· | x_i). Let d(θ, x) be the
/// probability that it gives to the former: ½ everywhere if q is the posterior. At an observation x_o,
///
/// T(x_o) = mean over θ ~ q(· | x_o) of (d(θ, x_o) − ½)²
///
/// is compared with the same statistic of networks that were trained where both classes have one law. Two ways lead there:
///
/// - [`of_pairs`](Self::of_pairs): θ_i and θ'_i are swapped with probability ½, each pair by itself. If q is right for
///   every x, swapped data have the very law of the data, and the test is exact: P(p ≤ α) ≤ α. (sbi permutes all rows of
///   both classes, by which the x of one class lose their partners in the other.)
/// - [`of_base`](Self::of_base), L-C2ST-NF: the flow's z_i = T⁻¹(θ_i; x_i) take the place of θ_i, and draws of N(0, I) that
///   of θ'_i. Both classes of the null hypothesis are then N(0, I), whatever the flow.
///
/// As in sbi a network has two hidden layers of 10 · dim θ rectified units and stops early, by a tenth of the pairs; here
/// the loss of that tenth decides and the best weights are kept, and all columns are brought to mean 0 and deviation 1.
/// The statistic is the mean over folds, of probabilities that are means over an ensemble.
#[derive(Clone, Debug)]
pub struct LocalTest {
    observed: Networks,
    null: Vec<Networks>,
}

/// The local test at one observation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LocalFinding {
    /// T(x_o).
    pub statistic: f64,
    /// The statistic of every trial under the null hypothesis.
    pub null: Vec<f64>,
    /// (1 + trials with a statistic as large) / (1 + trials): sbi's is the share of trials with a larger one.
    pub p_value: f64,
    /// d(θ, x_o) of every evaluation row, a mean over all networks: above ½ where q is too low, below where too high.
    /// sbi's probabilities are those of the other class: 1 − d.
    pub probabilities: Vec<f64>,
}

impl LocalTest {
    /// From true parameters, their x, and one draw of q(· | x_i) for each.
    pub fn of_pairs(
        theta: Rows,
        x: Rows,
        draws: Rows,
        settings: LocalSettings,
        threads: usize,
        streams: &Streams,
    ) -> Result<Self> {
        draws.expect_columns(theta.columns(), "as many as theta has")?;
        draws.expect_rows(theta.len(), "one draw for each row of theta")?;
        draws.expect_finite()?;
        check(theta, x, settings, threads)?;
        let pairs = Pairs::new(theta, x, Null::Swaps(draws));
        Ok(Self::train(&pairs, settings, threads, streams))
    }

    /// From z_i = T⁻¹(θ_i; x_i), the true parameters in the base space of a flow, where q(· | x) is N(0, I) for every x.
    pub fn of_base(
        z: Rows,
        x: Rows,
        settings: LocalSettings,
        threads: usize,
        streams: &Streams,
    ) -> Result<Self> {
        check(z, x, settings, threads)?;
        Ok(Self::train(&Pairs::new(z, x, Null::Normal), settings, threads, streams))
    }

    fn train(pairs: &Pairs, settings: LocalSettings, threads: usize, streams: &Streams) -> Self {
        let mut all = parallel::map(settings.trials + 1, threads, |trial| {
            train(&pairs.trial(trial, streams), pairs.scales(), settings, trial, streams)
        });
        let observed = all.remove(0);
        Self { observed, null: all }
    }

    /// The test at `x_o`. `evaluation` holds draws of q(· | x_o), or for a test in a base space draws of N(0, I): 1,000
    /// are enough.
    pub fn at(&self, x_o: &[f64], evaluation: Rows) -> Result<LocalFinding> {
        evaluation.expect_columns(self.observed.dim(), "as many as theta has")?;
        evaluation.expect_rows_from(1, "at least; draw some")?;
        evaluation.expect_finite()?;
        let x_o = Rows::new("x_o", x_o, x_o.len())?;
        x_o.expect_columns(self.observed.x_dim(), "as many as x has")?;
        x_o.expect_finite()?;
        let (statistic, probabilities) = self.observed.statistic(x_o.row(0), evaluation);
        let statistics = self.null.iter().map(|trial| trial.statistic(x_o.row(0), evaluation).0);
        let null: Vec<f64> = statistics.collect();
        let as_large = null.iter().filter(|&&other| other >= statistic).count();
        let p_value = (1 + as_large) as f64 / (1 + null.len()) as f64;
        Ok(LocalFinding { statistic, null, p_value, probabilities })
    }
}

fn check(theta: Rows, x: Rows, settings: LocalSettings, threads: usize) -> Result<()> {
    settings.check()?;
    parallel::check_threads(threads)?;
    theta.expect_rows_from(LEAST_LOCAL_ROWS, "at least, to train on; simulate more")?;
    x.expect_rows(theta.len(), "one for each row of theta")?;
    theta.expect_finite()?;
    x.expect_finite()
}
