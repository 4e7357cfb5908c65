//! Reproduction of the paper: every table and figure of the paper, and what it lacks, beside what it prints.

mod children;
mod costs;
mod figures;
mod paper;
mod plan;
mod results;
mod studies;
mod tables;
mod target;

pub use children::Failure;
pub use target::Target;

use anyhow::{Context, bail};
use children::carry_out;
use didyma::Named;
use didyma::run::DATABASE;
use didyma::storage::write_whole;
use plan::{Planned, TASKS};
use results::Results;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;

/// The front end that a reproduction reports to.
pub trait Console {
    /// Shows a line of progress.
    fn tell(&self, line: &str);

    /// The message of an error, with its remedy in the front end's words.
    fn sentence(&self, error: &anyhow::Error) -> String;
}

/// A result: words with tables, all numbers, pictures by name.
#[derive(Debug)]
struct Section {
    target: Target,
    title: String,
    text: String,
    csv: String,
    figures: Vec<(String, String)>,
}

impl Section {
    fn new(target: Target, title: &str, text: String, csv: String) -> Self {
        Self { target, title: title.to_owned(), text, csv, figures: Vec::new() }
    }

    /// Its part of a page.
    fn markdown(&self) -> String {
        let mut text = format!("## {}\n\n{}\n", self.title, self.text.trim_end());
        for (name, _) in &self.figures {
            text.push_str(&format!("\n![{}: {name}]({name}.svg)\n", self.title));
        }
        text
    }
}

/// Results that are asked for, and how they are made.
#[derive(Debug)]
pub struct Reproduction {
    /// Each target once, in the order of the paper.
    pub targets: Vec<Target>,
    /// Runs of each kind, with the seeds from 1.
    pub seeds: u64,
    /// Rounds of the runs, where the figure does not ask for its own number.
    pub rounds: u32,
    /// A small version of everything.
    pub quick: bool,
    /// Runs side by side.
    pub jobs: usize,
    /// Folder for runs and results.
    pub out: PathBuf,
}

/// A reproduction under way in its folder, which other calls are kept away from.
#[derive(Debug)]
pub struct Work<'a> {
    asked: &'a Reproduction,
    planned: Vec<Planned>,
    _lock: File,
}

impl Reproduction {
    /// Makes the folder, locks it, and plans the runs.
    pub fn begin(&self) -> anyhow::Result<Work<'_>> {
        std::fs::create_dir_all(&self.out).with_context(|| {
            format!("--out: could not make the folder {}: choose another", self.out.display())
        })?;
        let (_lock, mut planned) = (lock(&self.out)?, Vec::new());
        for target in &self.targets {
            planned.extend(plan::runs(*target, self)?);
        }
        let mut known = BTreeSet::new();
        planned.retain(|run: &Planned| known.insert(run.folder()));
        Ok(Work { asked: self, planned, _lock })
    }
}

impl Work<'_> {
    /// Carries out the missing runs, each as a process that `program` starts: a file, and the words before those of
    /// `didyma`. Returns the runs that failed, or `None` if it was stopped; the same call continues then.
    pub fn carry_out(
        &self,
        program: &[OsString],
        stop: &AtomicBool,
        console: &dyn Console,
    ) -> anyhow::Result<Option<Vec<Failure>>> {
        carry_out(&self.planned, &self.folder(), self.asked.jobs, program, stop, console)
    }

    /// Writes a result: a page, its numbers and its figures. Returns its title.
    pub fn write(&self, target: Target, console: &dyn Console) -> anyhow::Result<String> {
        let section = section(target, self.asked, &self.folder(), console)?;
        write(&self.asked.out, &section)?;
        Ok(section.title)
    }

    /// Writes the page of all results; returns its path.
    pub fn write_page(&self, failures: &[Failure]) -> anyhow::Result<PathBuf> {
        let path = self.asked.out.join("reproduction.md");
        write_whole(&path, page(self.asked, failures).as_bytes())?;
        Ok(path)
    }

    fn folder(&self) -> PathBuf {
        self.asked.out.join("runs")
    }
}

/// Keeps other calls away from the folder until it is dropped.
fn lock(out: &Path) -> anyhow::Result<File> {
    if out.join(DATABASE).exists() {
        bail!("--out: {} is the directory of a run: choose another", out.display());
    }
    let path = out.join("lock");
    let file =
        File::create(&path).with_context(|| format!("could not write {}", path.display()))?;
    if file.try_lock().is_err() {
        bail!(
            "another `didyma reproduce` works in {}: wait for it, or choose another --out",
            out.display()
        );
    }
    Ok(file)
}

fn section(
    target: Target,
    args: &Reproduction,
    folder: &Path,
    console: &dyn Console,
) -> anyhow::Result<Section> {
    console.tell(&format!("{} ...", target.name()));
    let results = Results::read(plan::runs(target, args)?, folder.to_owned(), console);
    let tasks = plan::tasks(args);
    let mut section = match target {
        Target::Table1 => tables::table_1(&results, tasks, args)?,
        Target::Table2 => tables::table_2(&results, tasks),
        Target::Table3 => costs::table_3(&results, tasks),
        Target::Figure1 => figures::figure_1(&results),
        Target::Figure2 | Target::Figure4 => figures::posteriors(&results, tasks, target),
        Target::Figure3 => figures::figure_3(&results, tasks),
        Target::Figure5 => {
            figures::figure_5(&results, if args.quick { TASKS[0] } else { TASKS[1] })
        }
        Target::Figure6 => figures::figure_6(&results),
        Target::Complexity => studies::complexity(args.quick)?,
        Target::Convergence => studies::convergence(args.quick)?,
        Target::Ablation => tables::ablation(&results, tasks),
        Target::Snse => tables::published(&results, tasks),
    };
    if !results.missing.is_empty() {
        let missing = results.missing.join(", ");
        section.text.push_str(&format!("\nNot finished, and left out of all means: {missing}.\n"));
    }
    Ok(section)
}

/// All results that the folder has, also those of earlier calls.
fn page(args: &Reproduction, failures: &[Failure]) -> String {
    let (seeds, rounds, jobs) = (args.seeds, args.rounds, args.jobs);
    let threads = if jobs == 1 { didyma::parallel::cores() } else { 1 };
    let mut text = format!(
        "# The paper reproduced\n\nMade by Didyma {}. The last call: {rounds} rounds, seeds 1 to {seeds}, {jobs} at a time with \
         {threads} thread{} each; runs of earlier calls keep their own times.\n",
        env!("CARGO_PKG_VERSION"),
        if threads == 1 { "" } else { "s" }
    );
    if args.quick {
        text.push_str("\n**This is the small version (`--quick`): its numbers mean nothing.**\n");
    }
    for Failure { folder, reason } in failures {
        text.push_str(&format!("\n- {folder} did not finish: {reason}\n"));
    }
    for (name, _) in Target::ALL {
        if let Ok(section) = std::fs::read_to_string(args.out.join(format!("{name}.md"))) {
            text.push_str(&format!("\n{section}"));
        }
    }
    text
}

fn write(out: &Path, section: &Section) -> anyhow::Result<()> {
    let name = section.target.name();
    write_whole(&out.join(format!("{name}.md")), section.markdown().as_bytes())?;
    write_whole(&out.join(format!("{name}.csv")), section.csv.as_bytes())?;
    for (name, svg) in &section.figures {
        write_whole(&out.join(format!("{name}.svg")), svg.as_bytes())?;
    }
    Ok(())
}
