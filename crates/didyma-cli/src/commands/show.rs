//! `didyma show`: a run in short, or the runs of several seeds.

use super::seeds;
use crate::output::{self, pasted};
use crate::{DONE, ExitCode, STOPPED};
use clap::Parser;
use didyma::report::Overview;
use didyma::run::{Findings, POSTERIOR_CSV, REPORT, RunDir, SeedSweep};
use didyma::{Source, parallel};
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Show a run: rounds, and the posterior of each parameter; or the runs of `infer --seeds`, and how much they differ.
#[derive(Debug, Parser)]
pub struct ShowArgs {
    /// Directory of the run, or of the runs of several seeds.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &ShowArgs) -> anyhow::Result<ExitCode> {
    if SeedSweep::is_at(&args.dir) {
        return seeds::show(args);
    }
    output::show(&Shown::read(RunDir::read(&args.dir)?, parallel::cores())?, args.json)
}

/// A run in short, with its files; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Shown {
    dir: PathBuf,
    #[serde(flatten)]
    overview: Overview,
    /// The page about it, if there is one.
    report: Option<PathBuf>,
    /// True while a process works on the run.
    running: bool,
    /// True of a simulator that is a Python function, with which alone the run can go on.
    #[serde(skip)]
    of_python: bool,
}

impl Shown {
    /// A run from the disk.
    pub fn read(run: RunDir, threads: usize) -> didyma::Result<Self> {
        let findings = Findings::of(run, threads)?;
        let (run, overview) = (findings.run(), Overview::of(&findings)?);
        let source = run.manifest().problem.as_ref().map(|problem| &problem.source);
        let of_python = matches!(source, Some(Source::Function { .. }));
        let running = run.is_worked_on()?;
        Ok(Self { running, of_python, ..Self::new(run.path(), overview) })
    }

    pub fn new(dir: &Path, overview: Overview) -> Self {
        let report = Some(dir.join(REPORT)).filter(|page| page.is_file());
        let (running, of_python) = (false, false);
        Self { dir: dir.to_owned(), overview, report, running, of_python }
    }

    pub fn overview(&self) -> &Overview {
        &self.overview
    }

    /// Tells if a process works on the run.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Rounds that are done.
    pub fn rounds(&self) -> usize {
        self.overview.summary.rounds.len()
    }

    /// Tells if all rounds are done.
    pub fn is_finished(&self) -> bool {
        self.overview.summary.finished
    }

    /// Shows what a command made of the run; one that was stopped is no success, so that scripts do not go on.
    pub fn show(&self, json: bool) -> anyhow::Result<ExitCode> {
        output::show(self, json)?;
        Ok(if self.is_finished() { DONE } else { STOPPED })
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
