//! `didyma report` and `didyma plot`: runs as a page, and as single figures.

use crate::args::{PlotArgs, ReportArgs};
use crate::print;
use crate::problems::check_out;
use anyhow::{Context, anyhow, bail};
use didyma::files::write_whole;
use didyma::report::{Comparison, Figure, Kind, Place, RunData, least_predictive, page, png};
use didyma::run::{Group, REPORT};
use std::path::{Path, PathBuf};

/// Writes the page, and every figure by itself if that was asked for. All is drawn before anything is written.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    check_out(args.out.as_deref())?;
    let runs = read(&each_run(&args.dirs)?, args.predictive, args.threads.count())?;
    let html = page(&runs);
    if let Some(folder) = &args.figures {
        let files = figures(&runs, folder);
        std::fs::create_dir_all(folder).with_context(|| {
            format!("--figures: could not make the folder {}: choose another", folder.display())
        })?;
        files.iter().try_for_each(|(path, bytes)| place(path, bytes))?;
        print(&format!("{} figures in {}, as SVG and PNG", files.len() / 2, folder.display()))?;
    }
    let out = args.out.clone().unwrap_or_else(|| match args.dirs.as_slice() {
        [dir] => dir.join(REPORT),
        _ => PathBuf::from(REPORT),
    });
    place(&out, html.as_bytes())?;
    print(&format!("report: {}", out.display()))
}

/// Writes a file whole, or not at all.
fn place(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    write_whole(path, bytes)
        .map_err(|error| anyhow!("{error}: choose another place, or permit writing"))
}

/// Writes one figure, as SVG or PNG by the name of the file.
pub fn plot(args: &PlotArgs) -> anyhow::Result<()> {
    check_out(Some(&args.out))?;
    let bitmap = match args.out.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => false,
        Some("png") => true,
        _ => bail!("--out is {}: give a file name that ends in .svg or .png", args.out.display()),
    };
    let runs = read(&each_run(&args.dirs)?, None, args.threads.count())?;
    let kind = args.kind();
    let figure = kind.draw(&runs, Place::Alone).with_context(|| {
        let first = args.dirs[0].display();
        format!("there is nothing to draw of {first}: {} needs {}", kind.name(), kind.needs())
    })?;
    let bytes = if bitmap { png(&figure.svg) } else { figure.svg.into_bytes() };
    place(&args.out, &bytes)?;
    print(&format!("figure: {}", args.out.display()))
}

/// The runs of several seeds in place of the directory that holds them, as far as they have begun.
fn each_run(dirs: &[PathBuf]) -> anyhow::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    for dir in dirs {
        if !Group::is_at(dir) {
            runs.push(dir.clone());
            continue;
        }
        let group = Group::read(dir)?;
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

fn read(dirs: &[PathBuf], predictive: Option<usize>, threads: usize) -> anyhow::Result<Comparison> {
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
fn figures(runs: &Comparison, folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let drawn = Kind::ALL.iter().filter_map(|(_, kind)| kind.draw(runs, Place::Alone));
    drawn
        .flat_map(|Figure { kind, svg, .. }| {
            let path = |ending: &str| folder.join(format!("{}.{ending}", kind.name()));
            [(path("png"), png(&svg)), (path("svg"), svg.into_bytes())]
        })
        .collect()
}
