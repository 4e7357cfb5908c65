//! What is read of a run: show, sample, evaluate, log-density.

use crate::args::{EvaluateArgs, LogDensityArgs, SampleArgs, ShowArgs};
use crate::pasted;
use crate::problems::{check_out, write};
use crate::{print, tell};
use anyhow::{Context, bail};
use didyma::judge::TaskJudge;
use didyma::posterior::SampleStreams;
use didyma::problem::Source;
use didyma::report::{Overview, Summaries};
use didyma::rng::{Purpose, Streams};
use didyma::rounds::{Judge, Scores};
use didyma::run::{Manifest, POSTERIOR_CSV, REPORT, RunDir, posterior, reports};
use didyma::table::Table;
use didyma::tasks::Task;
use didyma::{Rows, parallel};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// A run in short, with its files; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Shown {
    dir: PathBuf,
    #[serde(flatten)]
    overview: Overview,
    /// The page about it, if there is one.
    report: Option<PathBuf>,
    /// Whether a process works on it.
    running: bool,
    /// Whether its simulator is a Python function, with which alone it can go on.
    #[serde(skip)]
    of_python: bool,
}

pub fn show(args: &ShowArgs) -> anyhow::Result<Shown> {
    Ok(Shown::read(&RunDir::read(&args.dir)?, parallel::cores())?)
}

impl Shown {
    /// A run from the disk.
    pub fn read(run: &RunDir, threads: usize) -> didyma::Result<Self> {
        let shown = Self::new(run.path(), Overview::read(run, threads)?);
        let source = Manifest::of(run)?.problem.map(|problem| problem.source);
        let of_python = matches!(source, Some(Source::Function { .. }));
        Ok(Self { running: run.is_worked_on()?, of_python, ..shown })
    }

    pub fn new(dir: &Path, overview: Overview) -> Self {
        let report = Some(dir.join(REPORT)).filter(|page| page.is_file());
        let (running, of_python) = (false, false);
        Self { dir: dir.to_owned(), overview, report, running, of_python }
    }

    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// Whether a process works on it.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Rounds that are done.
    pub fn rounds(&self) -> usize {
        self.overview.summary.rounds.len()
    }

    /// Whether all rounds are done.
    pub fn is_finished(&self) -> bool {
        self.overview.summary.finished
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { dir, overview, report, running, of_python } = self;
        writeln!(f, "{overview}")?;
        match overview.summary.finished {
            true => {
                write!(f, "samples: {}", dir.join(POSTERIOR_CSV).display())?;
                report.iter().try_for_each(|page| write!(f, "\nreport: {}", page.display()))
            }
            false if *running => write!(f, "running; to look on: didyma watch {}", dir.display()),
            false if *of_python => {
                let dir = dir.display();
                write!(f, "unfinished; to go on, in Python: didyma.resume(\"{dir}\", simulator)")
            }
            false => write!(f, "unfinished; to go on: didyma resume {}", pasted(dir)),
        }
    }
}

/// Writes samples of the run's posterior.
pub fn sample(args: &SampleArgs) -> anyhow::Result<()> {
    check_out(args.out.as_deref())?;
    let run = RunDir::read(&args.dir)?;
    let posterior = posterior(&run)?;
    let x = match &args.observation {
        Some(path) => {
            let x = observation(path, &Manifest::of(&run)?.problem()?)?;
            warn_if_far(&run, &x)?;
            x
        }
        None => posterior.observation().to_vec(),
    };
    // Other numbers than those of posterior.csv, which are round 0.
    let streams = Streams::new(args.run.seed);
    let from = SampleStreams::new(streams, Purpose::Posterior, 1);
    let found = posterior.sample_at(&x, args.count, from, args.run.threads.count())?;
    let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
    write(Table { columns: names.len(), names, data: found.theta }, args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} samples written to {}", args.count, out.display())),
        None => Ok(()),
    }
}

/// The columns of these names in a file, or all of them in order if it has no header.
fn columns_of(option: &str, path: &Path, names: &[&str]) -> anyhow::Result<Vec<f32>> {
    let table = Table::read(path, false)?;
    match table.names.is_empty() {
        true if table.columns == names.len() => Ok(table.data),
        true => bail!(
            "{option}: {} has {} numbers on a line, but {} are needed: {}",
            path.display(),
            table.columns,
            names.len(),
            names.join(", ")
        ),
        false => table.select(names).with_context(|| {
            format!("{option}: {} needs the columns {}", path.display(), names.join(", "))
        }),
    }
}

/// One row of the task's summaries.
fn observation(path: &Path, task: &Task) -> anyhow::Result<Vec<f64>> {
    let names: Vec<&str> = task.summaries.iter().map(String::as_str).collect();
    let x = columns_of("--observation", path, &names)?;
    let rows = x.len() / task.summaries.len();
    if rows != 1 {
        bail!("--observation: {} has {rows} rows, but one is needed", path.display());
    }
    Ok(x.iter().map(|&x| f64::from(x)).collect())
}

/// q is trained where simulations fell, which in later rounds is near x_o.
fn warn_if_far(run: &RunDir, x: &[f64]) -> anyhow::Result<()> {
    let last = reports(run)?.len() as u32;
    if let Some(words) = Summaries::of_round(run, last)?.untrained(x) {
        tell(&format!("warning: {words}"));
    }
    Ok(())
}

/// Scores of a run's posterior.
#[derive(Debug, Serialize)]
pub struct Evaluation {
    task: String,
    rounds: usize,
    reference: String,
    #[serde(flatten)]
    scores: Scores,
}

pub fn evaluate(args: &EvaluateArgs) -> anyhow::Result<Evaluation> {
    let run = RunDir::read(&args.dir)?;
    let manifest = Manifest::of(&run)?;
    let posterior = posterior(&run)?;
    let task = manifest.problem()?;
    let threads = args.run.threads.count();
    let mut judge = TaskJudge::new(&task, Streams::new(args.run.seed), threads)?;
    let mut reference = "the task's own".to_owned();
    if let Some(path) = &args.reference {
        let names: Vec<&str> = task.prior.names().collect();
        let rows = columns_of("--reference", path, &names)?;
        Rows::new("reference", &rows, names.len())?.expect_rows_from(20, "to tell anything")?;
        judge = judge.with_reference(rows);
        reference = path.display().to_string();
    }
    let rounds = reports(&run)?.len();
    let scores = judge.score(&posterior, rounds as u32)?;
    if scores.c2st.is_none() {
        reference = "none, since this task has none (give one with --reference)".to_owned();
    }
    Ok(Evaluation { task: manifest.task, rounds, reference, scores })
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, rounds, reference, scores } = self;
        write!(f, "{task} after {rounds} rounds, reference: {reference}")?;
        for (name, value, about) in [
            ("C2ST", scores.c2st, "0.5: cannot be told from the reference, 1: always"),
            ("MMD^2", scores.mmd2, "0: the same law"),
            ("LMD", scores.lmd, "log of the median distance of simulations to the observation"),
            ("NLOG", scores.nlog, "-log of the posterior's density at the true parameters"),
        ] {
            match value {
                Some(value) => write!(f, "\n  {name:<5}  {value:>9.4}   {about}")?,
                None => write!(f, "\n  {name:<5}  {:>9}   no reference samples", "-")?,
            }
        }
        Ok(())
    }
}

/// Writes log-densities of given parameters.
pub fn log_density(args: &LogDensityArgs) -> anyhow::Result<()> {
    check_out(args.out.as_deref())?;
    let posterior = posterior(&RunDir::read(&args.dir)?)?;
    let mut names: Vec<&str> = posterior.prior().names().collect();
    let theta = columns_of("--theta", &args.theta, &names)?;
    let rows = Rows::new("theta", &theta, names.len())?;
    let found = posterior.log_density(rows, args.threads.count())?;
    let inside = |row: &[f32]| {
        let theta: Vec<f64> = row.iter().map(|&t| f64::from(t)).collect();
        posterior.prior().contains(&theta)
    };
    let outside = rows.iter().filter(|row| !inside(row)).count();
    if outside > 0 {
        tell(&format!("note: {outside} rows lie outside the prior; their log-density is -inf"));
    }
    let data = rows.iter().zip(&found).flat_map(|(row, l)| row.iter().copied().chain([*l as f32]));
    let data = data.collect();
    names.push("log_density");
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    write(Table { columns: names.len(), names, data }, args.out.as_deref())?;
    match &args.out {
        Some(out) => print(&format!("{} rows written to {}", found.len(), out.display())),
        None => Ok(()),
    }
}
