//! The parameters of a round in a file, to be simulated elsewhere.

use crate::error::{Advice, Error, Remedy, Result};
use crate::inference::config::Config;
use crate::problem::tasks::Task;
use crate::rng::{Purpose, SimulationStreams, Streams};
use crate::storage::cells::{cells, header};
use crate::storage::files::{read_inside, write_inside};
use crate::storage::table::digits;
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Which simulations these are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Origin {
    /// What tells the run from all others; none of simulations that were made before there was one.
    pub run: Option<String>,
    /// The round.
    pub round: u32,
    /// The seed of the run.
    pub seed: u64,
    /// Simulations of the round.
    pub simulations: usize,
    /// Numbers that a simulation gives.
    pub summaries: usize,
    /// Failures one after another that end it; 0 for never.
    pub in_a_row: usize,
}

/// The parameters that a round is to simulate.
#[derive(Clone, Debug, PartialEq)]
pub struct ProposalFile {
    /// Which they are of.
    pub origin: Origin,
    /// Names of the parameters.
    pub names: Vec<String>,
    /// θ, row after row.
    pub theta: Vec<f64>,
}

impl Origin {
    /// The simulations of a round.
    pub fn new(run: Option<String>, round: u32, task: &Task, config: &Config) -> Self {
        let Config { seed, simulations, failures, .. } = *config;
        let (summaries, in_a_row) = (task.problem.observation().len(), failures.in_a_row);
        Self { run, round, seed, simulations, summaries, in_a_row }
    }

    /// The random streams of the simulations.
    pub fn streams(&self) -> SimulationStreams {
        Streams::new(self.seed).simulations(Purpose::Simulation, self.round.into())
    }
}

impl ProposalFile {
    /// Where the file of a round is.
    pub fn path(dir: &Path, round: u32) -> PathBuf {
        dir.join(format!("proposal-{round}.csv"))
    }

    /// The parameters of a run's first round, which need no run.
    pub fn first(task: &Task, config: &Config, threads: usize) -> Self {
        let origin = Origin::new(None, 1, task, config);
        let streams = Streams::new(config.seed).simulations(Purpose::Parameters, 1);
        let theta = task.problem.prior().sample_rows(config.simulations, &streams, threads);
        Self { origin, names: task.problem.prior().names().map(str::to_owned).collect(), theta }
    }

    /// θ of a row.
    pub fn row(&self, index: usize) -> &[f64] {
        &self.theta[index * self.names.len()..][..self.names.len()]
    }

    /// Writes the file into the directory of a run, whole or not at all: comments that say what it is, then a line for
    /// each simulation with its number, the seed that a program is given, and its parameters.
    pub fn write(&self, path: &Path) -> Result<()> {
        let Origin { run, round, seed, simulations, summaries, in_a_row } = &self.origin;
        let table = self.table();
        let mut text = String::from("# didyma proposal\n");
        if let Some(run) = run {
            text += &format!("# run = {run}\n");
        }
        text += &format!("# round = {round}\n# seed = {seed}\n# simulations = {simulations}\n");
        text += &format!("# summaries = {summaries}\n# failures in a row = {in_a_row}\n");
        text += &format!("# checksum = {}\n{table}", crc32fast::hash(table.as_bytes()));
        write_inside(path, text.as_bytes())
    }

    /// Header and rows.
    fn table(&self) -> String {
        let mut text = format!("index,seed,{}\n", header(self.names.iter().map(String::as_str)));
        let streams = self.origin.streams();
        for index in 0..self.origin.simulations {
            let seed = streams.stream(index as u64).seed();
            let numbers = self.row(index).iter().map(|&t| digits(t)).collect::<Vec<_>>().join(",");
            writeln!(text, "{index},{seed},{numbers}").expect("a string takes all");
        }
        text
    }

    /// Reads the file.
    pub fn read(path: &Path) -> Result<Self> {
        let text = String::from_utf8(read_inside(path)?);
        let text = text.map_err(|_| (1, "it is no text".to_owned()));
        text.and_then(|text| parse(&text)).map_err(|(line, why)| Error::Table {
            path: path.to_owned(),
            line,
            fault: Advice::new(format!("{why}:"), Remedy::ProposeAgain),
        })
    }
}

type Parsed<T> = std::result::Result<T, (u64, String)>;

fn parse(text: &str) -> Parsed<ProposalFile> {
    let mut lines = text.lines().zip(1u64..).peekable();
    let mut facts = Vec::new();
    while let Some((line, _)) = lines.next_if(|(line, _)| line.starts_with('#')) {
        facts.extend(line.trim_start_matches('#').split_once('='));
    }
    let origin = origin(&facts)?;
    let (heads, at) = lines.next().ok_or((1, "it has no header".to_owned()))?;
    let names = heads.strip_prefix("index,seed,").ok_or((at, "it has no header".to_owned()))?;
    let names: Vec<String> =
        cells(names, &[',']).into_iter().map(|cell| cell.text.into_owned()).collect();
    let (streams, mut theta, mut rows) = (origin.streams(), Vec::new(), 0);
    for (line, at) in lines {
        let row = numbers(line, rows, streams.stream(rows).seed(), names.len());
        theta.extend(row.ok_or((at, format!("it is not the line of simulation {rows}")))?);
        rows += 1;
    }
    if rows != origin.simulations as u64 {
        return Err((1, format!("it has {rows} rows of {}", origin.simulations)));
    }
    let found = ProposalFile { origin, names, theta };
    // Of what it says, not of its bytes: line ends may change on the way.
    let checksum = crc32fast::hash(found.table().as_bytes()).to_string();
    match facts.iter().find(|(key, _)| key.trim() == "checksum") {
        Some((_, said)) if said.trim() == checksum => Ok(found),
        _ => Err((1, "its numbers are not those that were written".to_owned())),
    }
}

/// What the comments say.
fn origin(facts: &[(&str, &str)]) -> Parsed<Origin> {
    let fact = |name: &str| facts.iter().find(|(key, _)| key.trim() == name).map(|(_, v)| v.trim());
    let missing = |name: &str| (1, format!("it does not say its {name}"));
    let number = |name: &str| -> Parsed<u64> {
        fact(name).and_then(|value| value.parse().ok()).ok_or_else(|| missing(name))
    };
    Ok(Origin {
        run: fact("run").map(str::to_owned),
        round: u32::try_from(number("round")?).map_err(|_| missing("round"))?,
        seed: number("seed")?,
        simulations: number("simulations")? as usize,
        summaries: number("summaries")? as usize,
        in_a_row: number("failures in a row")? as usize,
    })
}

/// θ of a line, if it is that of this simulation.
fn numbers(line: &str, index: u64, seed: u64, columns: usize) -> Option<Vec<f64>> {
    let rest = line.strip_prefix(&format!("{index},{seed},"))?;
    let theta: Vec<f64> = rest.split(',').map(|field| field.parse().ok()).collect::<Option<_>>()?;
    (theta.len() == columns && theta.iter().all(|t| t.is_finite())).then_some(theta)
}
