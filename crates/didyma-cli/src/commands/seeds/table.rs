//! Runs of several seeds in short: a line for each, and how much they differ.

use super::spread::{
    COLUMNS, Mean, NUMBERS, ParameterMean, c2st_error, means, numbers, parameters,
};
use crate::commands::show::Shown;
use crate::output::pasted;
use crate::wording::sentence;
use didyma::parallel;
use didyma::run::SeedSweep;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

/// All runs; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Table {
    dir: PathBuf,
    task: String,
    method: String,
    /// True once all runs are finished.
    finished: bool,
    finished_runs: usize,
    runs: Vec<Run>,
    /// Runs that could not be made, or read.
    pub failed: Vec<Failed>,
    /// Means over the finished runs.
    means: BTreeMap<&'static str, Mean>,
    /// Means of the posterior over the finished runs.
    parameters: Vec<ParameterMean>,
    #[serde(skip)]
    rounds: u32,
    /// True while a process works on the runs.
    pub running: bool,
}

/// Why a run is not finished.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    pub seed: u64,
    pub error: String,
}

/// The run of a seed.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Run {
    Begun(Box<Shown>),
    /// It has not begun, or cannot be read.
    Nothing {
        dir: PathBuf,
        seed: u64,
        finished: bool,
    },
}

impl Table {
    /// Runs from the disk, with what is known of those that failed.
    pub fn read(group: &SeedSweep, mut failed: Vec<Failed>, threads: usize) -> Self {
        let seeds: Vec<u64> = group.seeds().collect();
        let read = |i: usize| {
            let run = group.look(seeds[i])?;
            run.map(|run| Shown::read(run, 1)).transpose()
        };
        let mut runs = Vec::with_capacity(seeds.len());
        for (&seed, found) in seeds.iter().zip(parallel::map(seeds.len(), threads, read)) {
            let nothing = || Run::Nothing { dir: group.directory(seed), seed, finished: false };
            let known = failed.iter().any(|failed| failed.seed == seed);
            if let (Err(error), false) = (&found, known) {
                failed.push(Failed { seed, error: sentence(error) });
            }
            let shown = found.ok().flatten();
            runs.push(shown.map_or_else(nothing, |shown| Run::Begun(Box::new(shown))));
        }
        let manifest = group.manifest(group.seeds().start);
        let finished: Vec<&Shown> = runs.iter().filter_map(Run::finished).collect();
        Self {
            dir: group.path().to_owned(),
            method: manifest.config.method_name().to_owned(),
            task: manifest.task,
            finished: finished.len() == runs.len(),
            finished_runs: finished.len(),
            means: means(&finished),
            parameters: parameters(&finished),
            rounds: manifest.config.rounds,
            running: false,
            runs,
            failed,
        }
    }

    /// Tells if all runs are finished.
    pub fn is_finished(&self) -> bool {
        self.finished
    }

    fn has_failed(&self, seed: u64) -> bool {
        self.failed.iter().any(|failed| failed.seed == seed)
    }

    /// How far a run is that is not finished.
    fn state(&self, run: &Run) -> String {
        let (failed, rounds) = (self.has_failed(run.seed()), self.rounds);
        match run {
            Run::Begun(shown) if shown.is_finished() => String::new(),
            Run::Begun(shown) => {
                let how = match (failed, shown.is_running()) {
                    (true, _) => ", failed",
                    (false, true) => ", running",
                    (false, false) => "",
                };
                format!("{} of {rounds} rounds{how}", shown.rounds())
            }
            Run::Nothing { .. } if failed => "failed".to_owned(),
            Run::Nothing { .. } => "not begun".to_owned(),
        }
    }
}

impl Run {
    fn seed(&self) -> u64 {
        match self {
            Self::Begun(shown) => shown.overview().summary.seed,
            Self::Nothing { seed, .. } => *seed,
        }
    }

    fn finished(&self) -> Option<&Shown> {
        match self {
            Self::Begun(shown) => Some(&**shown).filter(|shown| shown.is_finished()),
            Self::Nothing { .. } => None,
        }
    }
}

/// A cell of the table, empty where nothing is known.
fn cell(value: Option<f64>, digits: usize, width: usize) -> String {
    value.map_or_else(|| " ".repeat(width), |value| format!("{value:>width$.digits$}"))
}

/// Columns of the error beside a C2ST, ` ± 0.004`.
const ERROR: usize = 8;

impl Table {
    /// A line of the table: what it is of, its numbers, the error of the first, and words at its end.
    fn line(
        &self,
        of: &str,
        numbers: [Option<f64>; COLUMNS],
        error: Option<f64>,
        words: &str,
    ) -> String {
        let mut text = format!("\n{of:>5}");
        let cells = NUMBERS.iter().zip(numbers).zip(self.columns()).enumerate();
        for (i, (((name, _, digits), number), _)) in cells.filter(|(_, (_, there))| *there) {
            text.push_str(&format!("  {}", cell(number, *digits, name.len().max(8))));
            if i == 0 && self.has_errors() {
                let error = error.map_or(String::new(), |error| format!(" ± {error:.digits$}"));
                text.push_str(&format!("{error:<ERROR$}"));
            }
        }
        format!("{text}  {words}").trim_end().to_owned()
    }

    /// Tells if some run knows the error of its C2ST.
    fn has_errors(&self) -> bool {
        let error = |run: &Run| matches!(run, Run::Begun(shown) if c2st_error(shown).is_some());
        self.runs.iter().any(error)
    }

    /// Marks the numbers that some run knows.
    fn columns(&self) -> [bool; COLUMNS] {
        let mut there = [false; COLUMNS];
        for run in &self.runs {
            let Run::Begun(shown) = run else { continue };
            numbers(shown).iter().zip(&mut there).for_each(|(number, t)| *t |= number.is_some());
        }
        there
    }

    fn heading(&self) -> String {
        let [first, last] =
            [self.runs.first(), self.runs.last()].map(|run| run.map_or(0, Run::seed));
        let Self { task, method, finished_runs, .. } = self;
        format!(
            "{task} by {method}, seeds {first} to {last}: {finished_runs} of {} runs finished",
            self.runs.len()
        )
    }

    /// A line for each run, then their mean and standard deviation.
    fn write_runs(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{:>5}", "seed")?;
        let names = NUMBERS.iter().zip(self.columns()).enumerate();
        for (i, ((name, _, _), _)) in names.filter(|(_, (_, there))| *there) {
            let beside = if i == 0 && self.has_errors() { ERROR } else { 0 };
            write!(f, "  {name:>width$}{:beside$}", "", width = name.len().max(8))?;
        }
        for run in &self.runs {
            let (numbers, error) = match run {
                Run::Begun(shown) => (numbers(shown), c2st_error(shown)),
                Run::Nothing { .. } => ([None; COLUMNS], None),
            };
            f.write_str(&self.line(&run.seed().to_string(), numbers, error, &self.state(run)))?;
        }
        if self.finished_runs < 2 {
            return Ok(());
        }
        let of = |value: fn(&Mean) -> Option<f64>| {
            NUMBERS.map(|(_, name, _)| self.means.get(name).and_then(value))
        };
        let words = match self.is_finished() {
            true => String::new(),
            false => format!("of {} finished runs", self.finished_runs),
        };
        f.write_str(&self.line("mean", of(|mean| Some(mean.mean)), None, &words))?;
        f.write_str(&self.line("sd", of(|mean| mean.sd), None, ""))
    }

    /// The posterior of each seed: agreement matters more than scores, and is known of every problem.
    fn write_parameters(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.finished_runs < 2 {
            return Ok(());
        }
        let width = self.parameters.iter().map(|p| p.name.len()).max().unwrap_or(0).max(9);
        write!(
            f,
            "\n{:<width$}  {:>10}  {:>10}  {:>10}  {:>10}  {:>10}",
            "parameter", "mean", "± seeds", "sd", "± seeds", "true"
        )?;
        for ParameterMean { name, mean, mean_sd, sd, sd_sd, truth } in &self.parameters {
            let cells = [Some(*mean), *mean_sd, Some(*sd), *sd_sd, *truth];
            let cells = cells.map(|value| cell(value, 4, 10)).join("  ");
            write!(f, "\n{}", format!("{name:<width$}  {cells}").trim_end())?;
        }
        Ok(())
    }

    /// Warnings of all runs, each kind once with its seeds and the first seed's words.
    fn write_warnings(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut kinds: Vec<(String, &str, Vec<String>)> = Vec::new();
        for summary in self.runs.iter().filter_map(Run::finished).map(|run| &run.overview().summary)
        {
            for words in &summary.warnings {
                // Warnings of one kind differ in their numbers.
                let kind = words.replace(|c: char| c.is_ascii_digit(), "");
                match kinds.iter_mut().find(|(known, ..)| *known == kind) {
                    Some((_, _, seeds)) => seeds.push(summary.seed.to_string()),
                    None => kinds.push((kind, words, vec![summary.seed.to_string()])),
                }
            }
        }
        for (_, words, seeds) in kinds {
            let of = if seeds.len() > 1 { "seeds" } else { "seed" };
            write!(f, "\nwarning of {of} {}: {words}", seeds.join(", "))?;
        }
        Ok(())
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.heading())?;
        self.write_runs(f)?;
        self.write_parameters(f)?;
        self.write_warnings(f)?;
        let dir = pasted(&self.dir);
        if let Some(Run::Begun(first)) = self.runs.first() {
            let seed = first.overview().summary.seed;
            let one = pasted(&self.dir.join(format!("seed-{seed}")));
            write!(f, "\none run: didyma show {one}\na page of all: didyma report {dir}")?;
        }
        match (self.is_finished(), self.running) {
            (true, _) => Ok(()),
            (false, true) => write!(f, "\nrunning"),
            (false, false) => write!(f, "\nunfinished; to go on: didyma resume {dir}"),
        }
    }
}
