//! What is told of a run in words and tables.

use crate::math::mean_and_deviation;
use crate::problem::prior::{Marginal, Prior};
use crate::report::data::RunData;
use didyma_plot::quantile;
use serde::Serialize;

/// A parameter's posterior in numbers.
#[derive(Clone, Debug, Serialize)]
pub struct ParameterLine {
    /// Its name.
    pub name: String,
    /// Its mean.
    pub mean: f64,
    /// Its standard deviation.
    pub sd: f64,
    /// Its quantiles, at [`QUANTILES`].
    pub quantiles: [f64; 5],
    /// Its true value, where that is known.
    pub truth: Option<f64>,
    /// Its prior.
    pub prior: String,
}

/// The quantiles of a [`ParameterLine`].
pub const QUANTILES: [f64; 5] = [0.025, 0.25, 0.5, 0.75, 0.975];

/// One line for each parameter of the prior, from samples by column.
pub fn parameter_lines(
    prior: &Prior,
    samples: &[Vec<f64>],
    truth: Option<&[f64]>,
) -> Vec<ParameterLine> {
    let line = |(i, column): (usize, &Vec<f64>)| {
        let mut sorted = column.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mean, sd) = mean_and_deviation(&sorted);
        let parameter = &prior.parameters()[i];
        ParameterLine {
            name: parameter.name.clone(),
            mean,
            sd,
            quantiles: QUANTILES.map(|share| quantile(&sorted, share)),
            truth: truth.map(|truth| truth[i]),
            prior: parameter.marginal.to_string(),
        }
    };
    samples.iter().enumerate().map(line).collect()
}

/// p-value below which all summaries together count as not reproduced, or one of them by itself, divided by their number: of
/// right posteriors at most one in twenty has the one warning, one in twenty the other, and one in ten any.
pub(super) const SURPRISING: f64 = 0.05;
/// Share of samples within a hundredth of the prior's range at one end that means the prior cuts the posterior.
const CUT: f64 = 0.05;

/// Simulations that a predictive check of so many summaries needs: with fewer, no p-value could be small enough.
pub fn least_predictive(summaries: usize) -> usize {
    (2.0 * summaries as f64 / SURPRISING).ceil() as usize
}

/// What a reader should know beside the verdict.
pub fn advice(run: &RunData) -> Vec<String> {
    let mut found: Vec<String> = run.notes.iter().map(|note| sentence(note)).collect();
    found.extend(
        run.failure.iter().map(|why| format!("The commonest failure of simulations: {why}")),
    );
    let samples = run.samples.iter();
    found.extend(samples.filter_map(|samples| cut_by_prior(&run.prior, samples)));
    found
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map_or(String::new(), |c| c.to_uppercase().to_string());
    let end = if words.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Parameters whose posterior leans on an end of a uniform prior, in a sentence.
pub fn cut_by_prior(prior: &Prior, samples: &[Vec<f64>]) -> Option<String> {
    let leaning = |(i, column): (usize, &Vec<f64>)| {
        let parameter = &prior.parameters()[i];
        let Marginal::Uniform { low, high } = parameter.marginal else { return None };
        let margin = 0.01 * (high - low);
        let n = column.len() as f64;
        let below = column.iter().filter(|&&t| t < low + margin).count() as f64 / n;
        let above = column.iter().filter(|&&t| t > high - margin).count() as f64 / n;
        let end = if below >= above { low } else { high };
        (below.max(above) > CUT).then(|| format!("{} (at {end})", parameter.name))
    };
    let names: Vec<String> = samples.iter().enumerate().filter_map(leaning).collect();
    (!names.is_empty()).then(|| {
        format!(
            "The posterior leans on the end of the prior: {}. If values beyond are possible, widen the prior.",
            names.join(", ")
        )
    })
}
