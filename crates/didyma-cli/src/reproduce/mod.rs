//! `didyma reproduce`: every table and figure of the paper, and what it lacks, beside what it prints.

mod children;
mod figures;
mod paper;
mod plan;
mod results;
mod studies;
mod tables;

use crate::args::{ReproduceArgs, Target};
use crate::{print, tell};
use anyhow::Context;
use children::{Failure, carry_out};
use didyma::files::write_whole;
use plan::{Planned, TASKS};
use results::Results;
use std::collections::BTreeSet;
use std::path::Path;

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

/// Runs what is missing, then writes what was asked for. Returns whether every run finished.
pub fn reproduce(args: &ReproduceArgs) -> anyhow::Result<bool> {
    let targets = args.targets();
    std::fs::create_dir_all(&args.out).with_context(|| {
        format!("--out: could not make the folder {}: choose another", args.out.display())
    })?;
    let (folder, mut planned) = (args.out.join("runs"), Vec::new());
    for target in &targets {
        planned.extend(plan::runs(*target, args)?);
    }
    let mut known = BTreeSet::new();
    planned.retain(|run: &Planned| known.insert(run.folder()));
    let failures = carry_out(&planned, &folder, args.jobs)?;
    let mut page = introduction(args, &failures);
    for target in targets {
        let section = section(target, args, &folder)?;
        write(&args.out, &section)?;
        page.push_str(&format!("\n{}", section.markdown()));
        print(&format!("{}: {}", target.name(), section.title))?;
    }
    let path = args.out.join("reproduction.md");
    write_whole(&path, page.as_bytes())?;
    print(&format!("page: {}", path.display()))?;
    Ok(failures.is_empty())
}

fn section(target: Target, args: &ReproduceArgs, folder: &Path) -> anyhow::Result<Section> {
    tell(&format!("{} ...", target.name()));
    let results = Results::read(plan::runs(target, args)?, folder.to_owned());
    let tasks = plan::tasks(args);
    Ok(match target {
        Target::Table1 => tables::table_1(&results, tasks, args)?,
        Target::Table2 => tables::table_2(&results, tasks),
        Target::Table3 => tables::table_3(&results, tasks),
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
    })
}

fn introduction(args: &ReproduceArgs, failures: &[Failure]) -> String {
    let (seeds, rounds, jobs) = (args.seeds, args.rounds, args.jobs);
    let threads = if jobs == 1 { didyma::parallel::cores() } else { 1 };
    let mut text = format!(
        "# The paper reproduced\n\nMade by Didyma {}: {rounds} rounds, seeds 1 to {seeds}; {jobs} at a time, with {threads} \
         thread{} each.\n",
        env!("CARGO_PKG_VERSION"),
        if threads == 1 { "" } else { "s" }
    );
    if args.quick {
        text.push_str("\n**This is the small version (`--quick`): its numbers mean nothing.**\n");
    }
    for Failure { folder, reason } in failures {
        text.push_str(&format!("\n- {folder} did not finish: {reason}\n"));
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
