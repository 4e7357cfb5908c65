//! What the runs gave: means over seeds, and comparisons of means.

use super::Console;
use super::plan::Planned;
use didyma::RoundReport;
use didyma::report::{Comparison, RunData};
use didyma::run::{RunDir, Summary};
use std::fmt;
use std::path::PathBuf;

/// The runs of a result, as far as they are finished.
pub struct Results<'a> {
    pub console: &'a dyn Console,
    pub folder: PathBuf,
    pub runs: Vec<(Planned, Summary)>,
    /// Runs that are not there: failed, or not asked for to the end.
    pub missing: Vec<String>,
}

/// A mean over seeds with its standard error, which a single seed does not have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Mean {
    pub mean: f64,
    pub error: Option<f64>,
    /// Seeds with a value, and all seeds that were finished.
    pub seeds: (usize, usize),
}

impl<'c> Results<'c> {
    /// Reads the summaries of all planned runs that are finished.
    pub fn read(planned: Vec<Planned>, folder: PathBuf, console: &'c dyn Console) -> Self {
        let (mut runs, mut missing) = (Vec::new(), Vec::new());
        for run in planned {
            let found = RunDir::read(&folder.join(run.folder()));
            let found = found.and_then(|dir| Summary::read(&dir)).ok().filter(|s| s.finished);
            match found {
                Some(summary) => runs.push((run, summary)),
                None => missing.push(run.folder()),
            }
        }
        Self { console, folder, runs, missing }
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
        let values: Vec<f64> = self.of(variant, task).filter_map(of).collect();
        let mean = Mean::of(&values)?;
        Some(Mean { seeds: (values.len(), self.of(variant, task).count()), ..mean })
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
                let why = self.console.sentence(&error.into());
                self.console.tell(&format!("note: {task} is not drawn: {why}"));
                None
            }
        }
    }

    /// All rounds of all runs as a table.
    pub fn csv(&self) -> String {
        let mut text =
            "variant,task,seed,round,c2st,c2st_error,mmd2,lmd,nlog,outside_prior,seconds_simulate,\
                        seconds_train,seconds_score,peak_rss_mb\n"
                .to_owned();
        let number = |value: Option<f64>| value.map_or(String::new(), |v| v.to_string());
        for (run, summary) in &self.runs {
            for round in &summary.rounds {
                let RoundReport { scores, outside_prior, seconds_simulate, .. } = round;
                let [c2st, error, mmd2, lmd, nlog] =
                    [scores.c2st, scores.c2st_error, scores.mmd2, scores.lmd, scores.nlog]
                        .map(number);
                text.push_str(&format!(
                    "{},{},{},{},{c2st},{error},{mmd2},{lmd},{nlog},{outside_prior},{seconds_simulate},{},{},{}\n",
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

/// Quantiles at 97.5 % of Student's t with 1, 2, … degrees of freedom.
const STUDENT: [f64; 12] =
    [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26, 2.23, 2.20, 2.18];

impl Mean {
    pub fn of(values: &[f64]) -> Option<Self> {
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / (n - 1.0);
        let error = (values.len() > 1).then(|| (variance / n).sqrt());
        let seeds = (values.len(), values.len());
        (!values.is_empty()).then_some(Self { mean, error, seeds })
    }

    /// Whether this is below another one, by Welch's test at 5 %; with the difference and its standard error.
    pub fn below(&self, other: &Self) -> String {
        let difference = self.mean - other.mean;
        let Some((a, b)) = self.error.zip(other.error) else {
            let word = if difference < 0.0 { "lower" } else { "higher" };
            return format!(
                "{word} by {:.3} with a single seed, which decides nothing",
                difference.abs()
            );
        };
        let error = a.hypot(b);
        let limit = error * student(a, self.seeds.0, b, other.seeds.0);
        let verdict = match difference {
            d if error > 0.0 && d < -limit => "**holds**",
            d if error > 0.0 && d > limit => "**does not hold**",
            _ => "**undecided**",
        };
        format!("{verdict} (difference {difference:+.3} ± {error:.3}, certain beyond {limit:.3})")
    }
}

/// The quantile for a difference of means with these standard errors of so many values each.
fn student(a: f64, n: usize, b: f64, m: usize) -> f64 {
    let part = |error: f64, n: usize| error.powi(4) / (n as f64 - 1.0);
    // Welch and Satterthwaite: between the smaller number of degrees of freedom and their sum.
    let freedom = (a * a + b * b).powi(2) / (part(a, n) + part(b, m));
    let place = if freedom.is_finite() { (freedom.floor() as usize).max(1) } else { 1 };
    STUDENT.get(place - 1).copied().unwrap_or(2.0)
}

impl fmt::Display for Mean {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$}", self.mean)?;
        self.error.map_or(Ok(()), |error| write!(f, " ± {error:.digits$}"))?;
        match self.seeds {
            (some, all) if some < all => write!(f, " ({some} of {all} seeds)"),
            _ => Ok(()),
        }
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
        assert_eq!(format!("{:.2}", Mean { seeds: (3, 5), ..near }), "0.51 ± 0.01 (3 of 5 seeds)");
        let far = Mean::of(&[0.9, 0.91, 0.92]).unwrap();
        assert!(near.below(&far).contains("**holds**") && far.below(&near).contains("not hold"));
        assert!(near.below(&near).contains("undecided"));
        // Equal spreads of three values each: four degrees of freedom, 2.78 · 0.00816 = 0.0227.
        let beside = |shift: f64| Mean { mean: near.mean + shift, ..near };
        assert!(near.below(&beside(0.022)).contains("undecided"));
        assert!(near.below(&beside(0.024)).contains("holds"));
        let single = Mean::of(&[0.6]).unwrap();
        assert!(single.below(&far).contains("single seed") && Mean::of(&[]).is_none());
        // Two equal values tell nothing of the spread.
        let equal = Mean::of(&[0.6, 0.6]).unwrap();
        assert!(equal.below(&Mean::of(&[0.7, 0.7]).unwrap()).contains("undecided"));
        assert_eq!(cell(Some(single), 3), "0.600");
    }
}
