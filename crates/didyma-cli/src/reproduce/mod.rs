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

pub use target::Target;

use crate::output::{print, tell};
use crate::terminal::{Stop, stop_on_interrupt};
use crate::{DONE, ExitCode, STOPPED};
use anyhow::{Context, bail};
use children::{Carried, Failure, carry_out};
use didyma::Named;
use didyma::run::DATABASE;
use didyma::storage::write_whole;
use plan::{Planned, TASKS};
use results::Results;
use std::collections::BTreeSet;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A result: words with tables, all numbers, pictures by name.
#[derive(Debug)]
pub struct Section {
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

impl Reproduction {
    /// Runs what is missing, then writes what was asked for.
    pub fn carry_out(&self) -> anyhow::Result<ExitCode> {
        std::fs::create_dir_all(&self.out).with_context(|| {
            format!("--out: could not make the folder {}: choose another", self.out.display())
        })?;
        let _lock = lock(&self.out)?;
        let (folder, mut planned) = (self.out.join("runs"), Vec::new());
        for target in &self.targets {
            planned.extend(plan::runs(*target, self)?);
        }
        let mut known = BTreeSet::new();
        planned.retain(|run: &Planned| known.insert(run.folder()));
        let stop = stop_on_interrupt();
        let Carried::Out(failures) = carry_out(&planned, &folder, self.jobs, &stop)? else {
            return Ok(stopped());
        };
        exit_when_stopped(stop);
        for &target in &self.targets {
            let section = section(target, self, &folder)?;
            write(&self.out, &section)?;
            print(&format!("{}: {}", target.name(), section.title))?;
        }
        let path = self.out.join("reproduction.md");
        write_whole(&path, page(self, &failures).as_bytes())?;
        print(&format!("page: {}", path.display()))?;
        if failures.is_empty() {
            return Ok(DONE);
        }
        let count = failures.len();
        tell(&format!(
            "{count} runs did not finish: give the same command again to go on with them"
        ));
        Ok(1)
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

/// From here on nothing is lost by ending at once: runs are finished, and files appear whole or not at all.
fn exit_when_stopped(stop: Stop) {
    std::thread::spawn(move || {
        while !stop.load(Ordering::Relaxed) {
            std::thread::sleep(Duration::from_millis(50));
        }
        stopped();
        std::process::exit(STOPPED.into());
    });
}

fn stopped() -> ExitCode {
    tell("stopped; everything so far is saved. To go on, give the same command again");
    STOPPED
}

fn section(target: Target, args: &Reproduction, folder: &Path) -> anyhow::Result<Section> {
    tell(&format!("{} ...", target.name()));
    let results = Results::read(plan::runs(target, args)?, folder.to_owned());
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
