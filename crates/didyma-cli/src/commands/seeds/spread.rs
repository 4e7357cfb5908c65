//! How much runs of several seeds differ: means and standard deviations over them.

use crate::commands::show::Shown;
use didyma::math::mean_and_deviation;
use serde::Serialize;
use std::collections::BTreeMap;

/// A number's mean over the runs, and its standard deviation if there are two or more.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Mean {
    pub mean: f64,
    pub sd: Option<f64>,
}

/// A parameter's posterior over the runs: the mean of its means, how much they differ, and the same of its standard deviations.
#[derive(Debug, Serialize)]
pub struct ParameterMean {
    pub name: String,
    pub mean: f64,
    pub mean_sd: Option<f64>,
    pub sd: f64,
    pub sd_sd: Option<f64>,
    pub truth: Option<f64>,
}

/// Numbers of a run in the table.
pub const COLUMNS: usize = 8;

/// Names of the numbers of a run, in text and JSON, and digits after the point.
pub const NUMBERS: [(&str, &str, usize); COLUMNS] = [
    ("C2ST", "c2st", 3),
    ("MMD^2", "mmd2", 4),
    ("LMD", "lmd", 3),
    ("NLOG", "nlog", 3),
    ("apart", "disagreement", 3),
    ("simulations", "simulations", 0),
    ("failures", "failures", 0),
    ("seconds", "seconds", 1),
];

/// The numbers of a run, as far as it knows them: scores, and how far the members are apart, after its last round.
pub fn numbers(shown: &Shown) -> [Option<f64>; COLUMNS] {
    let overview = shown.overview();
    let last = overview.summary.rounds.last();
    let scores = last.map(|round| round.scores);
    [
        scores.and_then(|scores| scores.c2st),
        scores.and_then(|scores| scores.mmd2),
        scores.and_then(|scores| scores.lmd),
        scores.and_then(|scores| scores.nlog),
        last.and_then(|round| round.disagreement),
        Some(overview.simulations as f64),
        Some(overview.failed as f64),
        Some(overview.summary.seconds_total),
    ]
}

/// The standard error of a run's C2ST over classifier seeds; none if there is no C2ST, or an older one of a single seed.
pub fn c2st_error(shown: &Shown) -> Option<f64> {
    shown.overview().summary.rounds.last().and_then(|round| round.scores.c2st_error)
}

impl Mean {
    /// None of no values.
    fn of(values: &[f64]) -> Option<Self> {
        let (mean, deviation) = mean_and_deviation(values);
        let sd = (values.len() > 1).then_some(deviation);
        (!values.is_empty()).then_some(Self { mean, sd })
    }
}

/// The means of the numbers, by their names in JSON.
pub fn means(runs: &[&Shown]) -> BTreeMap<&'static str, Mean> {
    let all: Vec<_> = runs.iter().map(|run| numbers(run)).collect();
    let mean = |i: usize| {
        let values: Vec<f64> = all.iter().filter_map(|numbers| numbers[i]).collect();
        Some((NUMBERS[i].1, Mean::of(&values)?))
    };
    (0..NUMBERS.len()).filter_map(mean).collect()
}

/// The means of the parameters of the posterior.
pub fn parameters(runs: &[&Shown]) -> Vec<ParameterMean> {
    let lines: Vec<_> = runs.iter().map(|run| &run.overview().parameters).collect();
    let Some(first) = lines.first() else { return Vec::new() };
    let mean = |i: usize| {
        let (means, sds): (Vec<f64>, Vec<f64>) =
            lines.iter().filter_map(|run| run.get(i)).map(|line| (line.mean, line.sd)).unzip();
        let (mean, sd) = Mean::of(&means).zip(Mean::of(&sds))?;
        Some(ParameterMean {
            name: first[i].name.clone(),
            mean: mean.mean,
            mean_sd: mean.sd,
            sd: sd.mean,
            sd_sd: sd.sd,
            truth: first[i].truth,
        })
    };
    (0..first.len()).filter_map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_run_has_no_spread_and_none_has_no_mean() {
        assert!(Mean::of(&[]).is_none());
        let one = Mean::of(&[2.0]).unwrap();
        assert_eq!((one.mean, one.sd), (2.0, None));
        // Squares about 3 of 1, 3 and 5: 4 + 0 + 4, of two degrees of freedom.
        let three = Mean::of(&[1.0, 3.0, 5.0]).unwrap();
        assert_eq!((three.mean, three.sd), (3.0, Some(2.0)));
    }
}
