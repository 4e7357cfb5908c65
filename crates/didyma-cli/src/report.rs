//! `didyma report` and `didyma plot`: runs as a page, and as single figures.

use crate::args::{PlotArgs, ReportArgs};
use crate::print;
use crate::problems::check_out;
use anyhow::{Context, bail};
use didyma::files::write_whole;
use didyma::report::{Comparison, Figure, Kind, Place, RunData, page, png};
use didyma::run::REPORT;
use std::path::{Path, PathBuf};

/// Writes the page, and every figure by itself if that was asked for.
pub fn report(args: &ReportArgs) -> anyhow::Result<()> {
    let out = args.out.clone().unwrap_or_else(|| match args.dirs.as_slice() {
        [dir] => dir.join(REPORT),
        _ => PathBuf::from(REPORT),
    });
    check_out(Some(&out))?;
    let runs = read(&args.dirs, args.threads())?;
    // All is drawn before anything is written.
    let figures = match &args.figures {
        Some(folder) => figures(&runs, folder)?,
        None => Vec::new(),
    };
    write_whole(&out, page(&runs).as_bytes())?;
    for (path, bytes) in &figures {
        write_whole(path, bytes)?;
    }
    print(&format!("report: {}", out.display()))?;
    match &args.figures {
        Some(folder) => print(&format!("{} figures in {}", figures.len(), folder.display())),
        None => Ok(()),
    }
}

/// Writes one figure, as SVG or PNG by the name of the file.
pub fn plot(args: &PlotArgs) -> anyhow::Result<()> {
    check_out(Some(&args.out))?;
    let bitmap = match args.out.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => false,
        Some("png") => true,
        _ => bail!("--out is {}: give a file name that ends in .svg or .png", args.out.display()),
    };
    let runs = read(&args.dirs, args.threads())?;
    let kind = args.kind();
    let figure = kind.draw(&runs, Place::Alone).with_context(|| {
        let first = args.dirs[0].display();
        format!("there is nothing to draw of {first}: {} needs {}", kind.name(), kind.needs())
    })?;
    let bytes = if bitmap { png(&figure.svg) } else { figure.svg.into_bytes() };
    write_whole(&args.out, &bytes)?;
    print(&format!("figure: {}", args.out.display()))
}

/// Writes the page of a single run into its directory, and returns where it is.
pub fn of_run(dir: &Path, threads: usize) -> anyhow::Result<PathBuf> {
    let out = dir.join(REPORT);
    let runs = read(&[dir.to_owned()], threads)?;
    write_whole(&out, page(&runs).as_bytes())?;
    Ok(out)
}

fn read(dirs: &[PathBuf], threads: usize) -> anyhow::Result<Comparison> {
    let runs: didyma::Result<Vec<_>> = dirs.iter().map(|dir| RunData::read(dir, threads)).collect();
    Ok(Comparison::new(runs?)?)
}

/// Every figure there is, twice: where it goes, and its bytes.
fn figures(runs: &Comparison, folder: &Path) -> anyhow::Result<Vec<(PathBuf, Vec<u8>)>> {
    std::fs::create_dir_all(folder).with_context(|| {
        format!("--figures: could not make the folder {}: choose another", folder.display())
    })?;
    let drawn = Kind::ALL.iter().filter_map(|(_, kind)| kind.draw(runs, Place::Alone));
    Ok(drawn
        .flat_map(|Figure { kind, svg, .. }| {
            let path = |ending: &str| folder.join(format!("{}.{ending}", kind.name()));
            [(path("png"), png(&svg)), (path("svg"), svg.into_bytes())]
        })
        .collect())
}
