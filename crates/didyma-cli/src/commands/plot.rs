//! `didyma plot`: one figure of runs, as SVG or PNG.

use super::report::{each_run, place, read};
use crate::ExitCode;
use crate::arguments::ThreadsArgs;
use crate::output::{check_out, print};
use crate::wording::word;
use anyhow::{Context, bail};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use didyma::report::{Kind, Place, png};
use std::path::PathBuf;

/// Draw one figure of a run, or of several of one task, as SVG or PNG.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma plot pairs runs/two-moons-tgrr-1 --out posterior.png
  didyma plot metrics runs/mg1-* --out metrics.svg")]
pub struct PlotArgs {
    /// What to draw.
    #[arg(value_name = "FIGURE", value_parser = PossibleValuesParser::new(Kind::ALL.map(|(name, _)| name)))]
    figure: String,

    /// Directories of runs of one task, or of the runs of several seeds. Those that differ only in their seed are drawn
    /// together.
    #[arg(value_name = "DIR", required = true)]
    pub dirs: Vec<PathBuf>,

    /// File to write, with the ending .svg or .png.
    #[arg(long, value_name = "FILE")]
    pub out: PathBuf,

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

impl PlotArgs {
    fn kind(&self) -> Kind {
        let known = Kind::ALL.iter().find(|(name, _)| *name == self.figure);
        known.map(|(_, kind)| *kind).expect("only known names are accepted")
    }
}

/// Writes one figure, as SVG or PNG by the name of the file.
pub fn run(args: &PlotArgs) -> anyhow::Result<ExitCode> {
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
        let needs = kind.needs().sentence(&word);
        format!("there is nothing to draw of {first}: {} needs {needs}", kind.name())
    })?;
    let bytes = if bitmap { png(&figure.svg)? } else { figure.svg.into_bytes() };
    place(&args.out, &bytes)?;
    print(&format!("figure: {}", args.out.display()))
}
