//! What is told of a run in words and tables.

use super::data::RunData;
use super::predictive::checks;
use crate::config::{Config, Profile};
use crate::estimator::Named;
use crate::prior::{Marginal, Prior};
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

/// Mean and standard deviation.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt())
}

/// One line for each parameter of the prior, from samples by column.
pub fn parameter_lines(
    prior: &Prior,
    samples: &[Vec<f64>],
    truth: Option<&[f64]>,
) -> Vec<ParameterLine> {
    let line = |(i, column): (usize, &Vec<f64>)| {
        let mut sorted = column.clone();
        sorted.sort_unstable_by(f64::total_cmp);
        let (mean, sd) = moments(&sorted);
        let last = (sorted.len() - 1) as f64;
        let parameter = &prior.parameters()[i];
        ParameterLine {
            name: parameter.name.clone(),
            mean,
            sd,
            quantiles: QUANTILES.map(|q| sorted[(last * q).round() as usize]),
            truth: truth.map(|truth| truth[i]),
            prior: parameter.marginal.to_string(),
        }
    };
    samples.iter().enumerate().map(line).collect()
}

/// Share of simulations below which a summary counts as not reproduced. Of 30 summaries of a right posterior about
/// one in ten pages would show one.
const SURPRISING: f64 = 0.004;
/// C2ST from which a posterior is visibly not the reference.
const VISIBLE: f64 = 0.65;
/// Share of samples within a hundredth of the prior's range at one end that means the prior cuts the posterior.
const CUT: f64 = 0.05;

/// What a reader should know before trusting the posterior.
pub fn advice(run: &RunData) -> Vec<String> {
    let mut found = Vec::new();
    let (done, all) = (run.summary.rounds.len(), run.manifest.config.rounds);
    if !run.summary.finished {
        found.push(format!("The run is unfinished: {done} of {all} rounds are done."));
    }
    found.extend(run.summary.warnings.iter().map(|warning| sentence(warning)));
    found.extend(
        run.failure.iter().map(|why| format!("The commonest failure of simulations: {why}")),
    );
    if let Some(c2st) =
        run.summary.rounds.last().and_then(|r| r.scores.c2st).filter(|c| *c > VISIBLE)
    {
        found.push(format!(
            "A classifier tells the posterior from the reference in {:.0} % of cases (50 % would be perfect).",
            100.0 * c2st
        ));
    }
    found.extend(cut_by_prior(run));
    let missed: Vec<String> =
        checks(run).into_iter().filter(|check| check.tail < SURPRISING).map(|c| c.name).collect();
    if !missed.is_empty() {
        found.push(format!(
            "Simulations at the posterior do not reproduce the observed {}: the model may be wrong there, or the \
             posterior not yet good.",
            missed.join(", ")
        ));
    }
    found
}

fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map_or(String::new(), |c| c.to_uppercase().to_string());
    let end = if words.ends_with('.') { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}

/// Parameters whose posterior leans on an end of a uniform prior.
fn cut_by_prior(run: &RunData) -> Option<String> {
    let samples = run.samples.as_ref()?;
    let leaning = |(i, column): (usize, &Vec<f64>)| {
        let parameter = &run.prior.parameters()[i];
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

/// The command that makes this run again.
pub fn command(run: &RunData) -> String {
    let config = &run.manifest.config;
    let usual = Config::new(config.profile, config.estimator.method);
    let mut words = format!("didyma infer {} --method {}", run.manifest.task, config.method_name());
    if config.profile != Profile::Default {
        words.push_str(&format!(" --profile {}", config.profile.name()));
    }
    let own = ["profile", "seed", "rounds", "simulations", "estimator.method"];
    words.push_str(&format!(
        " --rounds {} --simulations {} --seed {}",
        config.rounds, config.simulations, config.seed
    ));
    for ((key, value, _), (_, before, _)) in config.list().into_iter().zip(usual.list()) {
        if value != before && !own.contains(&key) {
            let quoted = if value.contains(' ') {
                format!("\"{key}={value}\"")
            } else {
                format!("{key}={value}")
            };
            words.push_str(&format!(" --set {quoted}"));
        }
    }
    words
}
