//! `didyma report`: runs as a page.

use crate::ExitCode;
use crate::arguments::{ThreadsArgs, between};
use crate::output::{check_out, print};
use anyhow::{Context, anyhow, bail};
use clap::Parser;
use didyma::Error;
use didyma::report::{Comparison, Figure, Kind, Place, RunData, least_predictive, page, png};
use didyma::run::{REPORT, SeedSweep};
use didyma::storage::{write_inside, write_whole};
use std::path::{Path, PathBuf};

/// Write a page about a run, or about several of one task side by side: figures, tables, warnings.
///
/// One HTML file that needs no other and no network. An unfinished run is drawn as far as it is.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma report runs/two-moons-tgrr-1
  didyma report runs/two-moons-* --out compared.html --figures figures")]
pub struct ReportArgs {
    /// Directories of runs of one task, or of the runs of several seeds. Those that differ only in their seed are drawn
    /// together.
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,

    /// HTML file to write [default: report.html in the directory, if one is given; here for several].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Also write every figure by itself into this folder, as SVG and PNG.
    #[arg(long, value_name = "DIR")]
    pub figures: Option<PathBuf>,

    /// Simulate so many times at draws of the posterior, for the predictive check of a problem of your own; built-in tasks
    /// always do.
    #[arg(long, value_name = "COUNT", value_parser = predictive, allow_negative_numbers = true)]
    pub predictive: Option<usize>,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

fn predictive(text: &str) -> Result<usize, String> {
    between(text, "a whole number", 10..=10_000)
}

/// Writes the page, and every figure by itself if that was asked for. All is drawn before anything is written.
pub fn run(args: &ReportArgs) -> anyhow::Result<ExitCode> {
    check_out(args.out.as_deref())?;
    let runs = read(&each_run(&args.dirs)?, args.predictive, args.threads.count())?;
    let html = page(&runs);
    if let Some(folder) = &args.figures {
        let files = figures(&runs, folder)?;
        std::fs::create_dir_all(folder).with_context(|| {
            format!("--figures: could not make the folder {}: choose another", folder.display())
        })?;
        files.iter().try_for_each(|(path, bytes)| place(path, bytes))?;
        print(&format!("{} figures in {}, as SVG and PNG", files.len() / 2, folder.display()))?;
    }
    let out = match (&args.out, args.dirs.as_slice()) {
        (None, [dir]) => {
            let out = dir.join(REPORT);
            write_inside(&out, html.as_bytes()).map_err(|error| refused(&error))?;
            out
        }
        (out, _) => {
            let out = out.clone().unwrap_or_else(|| PathBuf::from(REPORT));
            place(&out, html.as_bytes())?;
            out
        }
    };
    print(&format!("report: {}", out.display()))
}

/// Writes a file whole, or not at all.
pub fn place(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_whole(path, bytes).map_err(|error| refused(&error))
}

fn refused(error: &Error) -> anyhow::Error {
    match error {
        // It says what to do.
        Error::NotAFile { .. } => anyhow!("{error}"),
        _ => anyhow!("{error}: choose another place, or permit writing"),
    }
}

/// The runs of several seeds in place of the directory that holds them, as far as they have begun.
pub fn each_run(dirs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for dir in dirs {
        if !SeedSweep::is_at(dir) {
            runs.push(dir.clone());
            continue;
        }
        let group = SeedSweep::read(dir)?;
        let before = runs.len();
        for seed in group.seeds() {
            runs.extend(group.look(seed)?.map(|run| run.path().to_owned()));
        }
        if runs.len() == before {
            let dir = dir.display();
            bail!("none of the runs in {dir} has begun: begin them with `didyma resume {dir}`");
        }
    }
    Ok(runs)
}

pub fn read(
    dirs: &[PathBuf],
    predictive: Option<usize>,
    threads: usize,
) -> anyhow::Result<Comparison> {
    let whole: Vec<_> = dirs.iter().map(|dir| dir.canonicalize().unwrap_or(dir.clone())).collect();
    if let Some(i) = (1..dirs.len()).find(|&i| whole[..i].contains(&whole[i])) {
        bail!("{} is given twice: give every run once", dirs[i].display());
    }
    let single = dirs.len() == 1;
    let runs = dirs.iter().map(|dir| {
        let run = RunData::read(dir, single, threads)?;
        match predictive {
            Some(count) => {
                let least = least_predictive(run.observation.len());
                if count < least {
                    bail!("--predictive is {count}, too few to tell anything of {} summaries: give at least {least}", run.observation.len());
                }
                Ok(run.with_predictive(count, threads)?)
            }
            None => Ok(run),
        }
    });
    Ok(Comparison::new(runs.collect::<anyhow::Result<_>>()?)?)
}

/// Every figure there is, twice: where it goes, and its bytes.
fn figures(runs: &Comparison, folder: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    let drawn = Kind::ALL.iter().filter_map(|(_, kind)| kind.draw(runs, Place::Alone));
    let mut files = Vec::new();
    for Figure { kind, svg, .. } in drawn {
        let path = |ending: &str| folder.join(format!("{}.{ending}", kind.name()));
        files.extend([(path("png"), png(&svg)?), (path("svg"), svg.into_bytes())]);
    }
    Ok(files)
}
