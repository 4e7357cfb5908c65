//! Arguments of `didyma report` and `didyma plot`.

use super::ThreadsArgs;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use didyma::report::Kind;
use std::path::PathBuf;

#[derive(Debug, Parser)]
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
    match text.parse() {
        Ok(count) if (10..=10_000).contains(&count) => Ok(count),
        _ => Err("give a whole number between 10 and 10000".to_owned()),
    }
}

#[derive(Debug, Parser)]
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
    pub fn kind(&self) -> Kind {
        let known = Kind::ALL.iter().find(|(name, _)| *name == self.figure);
        known.map(|(_, kind)| *kind).expect("only known names are accepted")
    }
}
