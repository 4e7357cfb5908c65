//! What the runs gave: means over seeds, and comparisons of means.

use super::plan::Planned;
use crate::tell;
use didyma::report::{Comparison, RunData};
use didyma::rounds::RoundReport;
use didyma::run::{RunDir, Summary};
use std::fmt;
use std::path::PathBuf;

/// The runs of a result, as far as they are finished.
pub struct Results {
    pub folder: PathBuf,
    pub runs: Vec<(Planned, Summary)>,
}

/// A mean over seeds with its standard error, which a single seed does not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    pub error: Option<f64>,
    pub seeds: usize,
}

impl Results {
    /// Reads the summaries of all planned runs that are finished.
    pub fn read(planned: Vec<Planned>, folder: PathBuf) -> Self {
        let finished = |run: Planned| {
            let dir = RunDir::read(&folder.join(run.folder())).ok()?;
            let summary = Summary::read(&dir).ok().filter(|summary| summary.finished)?;
            Some((run, summary))
        };
        let runs = planned.into_iter().filter_map(finished).collect();
        Self { folder, runs }
    }

    /// The runs of a variant on a task.
    pub fn of<'a>(
        &'a self,
        variant: &'a str,
        task: &'a str,
    ) -> impl Iterator<Item = &'a Summary> + 'a {
        let wanted = move |run: &Planned| run.variant.name == variant && run.task == task;
        self.runs.iter().filter(move |(run, _)| wanted(run)).map(|(_, summary)| summary)
    }

    /// The mean of a number over the seeds.
    pub fn mean(
        &self,
        variant: &str,
        task: &str,
        of: impl Fn(&Summary) -> Option<f64>,
    ) -> Option<Mean> {
        Mean::of(&self.of(variant, task).filter_map(of).collect::<Vec<_>>())
    }

    /// The mean of a score of the last round.
    pub fn last(
        &self,
        variant: &str,
        task: &str,
        of: impl Fn(&RoundReport) -> Option<f64>,
    ) -> Option<Mean> {
        self.mean(variant, task, |summary| summary.rounds.last().and_then(&of))
    }

    /// The runs of some variants on a task, to be drawn; only the first seed if one is enough.
    pub fn compared(&self, variants: &[&str], task: &str, one_seed: bool) -> Option<Comparison> {
        let wanted = |run: &Planned| variants.contains(&run.variant.name) && run.task == task;
        let wanted = |run: &Planned| wanted(run) && (!one_seed || run.config.seed == 1);
        let runs = self.runs.iter().filter(|(run, _)| wanted(run));
        let read = |(run, _): &(Planned, Summary)| {
            let path = self.folder.join(run.folder());
            RunData::read(&path, false, didyma::parallel::cores())
        };
        let compared = runs.map(read).collect::<didyma::Result<_>>().and_then(Comparison::new);
        match compared {
            Ok(compared) => Some(compared),
            Err(error) => {
                tell(&format!("note: {task} is not drawn: {error}"));
                None
            }
        }
    }

    /// All rounds of all runs as a table.
    pub fn csv(&self) -> String {
        let mut text = "variant,task,seed,round,c2st,mmd2,lmd,nlog,outside_prior,seconds_simulate,\
                        seconds_train,seconds_score,peak_rss_mb\n"
            .to_owned();
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        for (run, summary) in &self.runs {
            for round in &summary.rounds {
                let RoundReport { scores, outside_prior, seconds_simulate, .. } = round;
                let [c2st, mmd2, lmd, nlog] =
                    [scores.c2st, scores.mmd2, scores.lmd, scores.nlog].map(number);
                text.push_str(&format!(
                    "{},{},{},{},{c2st},{mmd2},{lmd},{nlog},{outside_prior},{seconds_simulate},{},{},{}\n",
                    run.variant.name,
                    run.task,
                    run.config.seed,
                    round.round,
                    round.seconds_train,
                    round.seconds_score,
                    number(summary.peak_rss_mb),
                ));
            }
        }
        text
    }
}

impl Mean {
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (values.len() > 1).then(|| (variance / n).sqrt());
        (!values.is_empty()).then_some(Self { mean, error, seeds: values.len() })
    }

    /// Whether this is below another one, beyond two standard errors of the difference; with the difference.
    pub fn below(&self, other: &Self) -> String {
        let difference = self.mean - other.mean;
        let errors = self.error.zip(other.error);
        let Some(error) = errors.map(|(a, b)| a.hypot(b)) else {
            let word = if difference < 0.0 { "lower" } else { "not lower" };
            return format!("{word} by {:.3} with a single seed", difference.abs());
        };
        let verdict = match difference {
            d if d < -2.0 * error => "**holds**",
            d if d > 2.0 * error => "**does not hold**",
            _ => "**undecided**, within two standard errors",
        };
        format!("{verdict} (difference {difference:+.3} ± {error:.3})")
    }
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$}", self.mean)?;
        self.error.map_or(Ok(()), |error| write!(f, " ± {error:.digits$}"))
    }
}

/// A mean, or a dash where there is none.
pub fn cell(mean: Option<Mean>, digits: usize) -> String {
    mean.map_or("–".to_owned(), |mean| format!("{mean:.digits$}"))
}

/// A table in Markdown.
pub fn table(head: &[String], rows: &[Vec<String>]) -> String {
    let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
    let mut text = line(head);
    text.push_str(&line(&vec!["---".to_owned(); head.len()]));
    rows.iter().for_each(|row| text.push_str(&line(row)));
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn means_tell_what_is_certain() {
        let near = Mean::of(&[0.50, 0.52, 0.51]).unwrap();
        assert!((near.mean - 0.51).abs() < 1e-12 && (near.error.unwrap() - 0.00577).abs() < 1e-4);
        assert_eq!(format!("{near:.2}"), "0.51 ± 0.01");
        let far = Mean::of(&[0.9, 0.91, 0.92]).unwrap();
        assert!(near.below(&far).contains("**holds**") && far.below(&near).contains("not hold"));
        assert!(near.below(&near).contains("undecided"));
        let single = Mean::of(&[0.6]).unwrap();
        assert!(single.below(&far).contains("single seed") && Mean::of(&[]).is_none());
        assert_eq!(cell(Some(single), 3), "0.600");
    }
}
