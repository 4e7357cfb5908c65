//! Arguments of the commands that make a run and read it: infer, resume, show, watch, sample, evaluate, log-density, settings.

use super::problems::{RunArgs, count, task};
use super::{threads, whole};
use clap::Parser;
use didyma::config::{Algorithm, Config, Profile};
use didyma::parallel;
use didyma::tasks::Task;
use std::path::PathBuf;
use std::time::Duration;

/// Where settings start from, and single changes.
#[derive(Debug, Parser)]
pub struct ConfigArgs {
    /// How to learn. Parameters of later rounds come from a part of the prior, which needs no correction: tsnpe, or snse,
    /// which learns a score instead of a flow. Or from the posterior so far, and the loss corrects for it: multilevel
    /// (tgrr, grr, ru, tru, rr), nested or atomic APT. Or all from the prior: npe.
    #[arg(long, default_value = "tsnpe", value_name = "NAME", value_parser = super::named::<Algorithm>())]
    method: Algorithm,

    /// All settings at once: what works best, or the paper's protocol.
    #[arg(long, default_value = "default", value_name = "NAME", value_parser = super::named::<Profile>())]
    profile: Profile,

    /// Rounds [default: 10, with the paper's profile 20].
    #[arg(long, value_name = "COUNT", value_parser = whole::<u32>, allow_negative_numbers = true)]
    rounds: Option<u32>,

    /// Simulations of a round [default: 1000].
    #[arg(long, value_name = "COUNT", value_parser = whole::<usize>, allow_negative_numbers = true)]
    simulations: Option<usize>,

    /// Change a setting that `didyma settings` lists; may be given many times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    set: Vec<(String, String)>,
}

impl ConfigArgs {
    /// The settings, all checked.
    pub fn config(&self, seed: u64) -> didyma::Result<Config> {
        let mut config = Config::new(self.profile, self.method);
        config.rounds = self.rounds.unwrap_or(config.rounds);
        config.simulations = self.simulations.unwrap_or(config.simulations);
        config.seed = seed;
        for (key, value) in &self.set {
            config.set(key, value)?;
        }
        config.check()?;
        Ok(config)
    }
}

#[derive(Debug, Parser)]
pub struct InferArgs {
    /// Task.
    #[arg(value_name = "TASK", value_parser = task())]
    task: String,

    #[command(flatten)]
    pub config: ConfigArgs,

    #[command(flatten)]
    pub run: RunArgs,

    /// Directory of the run, made new [default: runs/TASK-METHOD-SEED, with a number if that is taken].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl InferArgs {
    pub fn task(&self) -> Task {
        super::problems::named(&self.task)
    }
}

#[derive(Debug, Parser)]
pub struct ResumeArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Threads [default: all cores]. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl ResumeArgs {
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }
}

#[derive(Debug, Parser)]
pub struct ShowArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct WatchArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// How often to look again.
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    #[arg(allow_negative_numbers = true)]
    interval: f64,

    /// Print one picture as plain text, 80 columns wide, and end; so it is where the output is no terminal.
    #[arg(long)]
    pub once: bool,
}

impl WatchArgs {
    pub fn interval(&self) -> Duration {
        Duration::from_secs_f64(self.interval)
    }
}

fn interval(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(value) if (0.1..=3600.0).contains(&value) => Ok(value),
        _ => Err("give a number of seconds between 0.1 and 3600".to_owned()),
    }
}

#[derive(Debug, Parser)]
pub struct SampleArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// Number of samples.
    #[arg(short = 'n', long = "samples", default_value = "1000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file with one row of summaries, another observation than the run's. Only near that one is the flow trained
    /// well: a warning tells if it is far.
    #[arg(long, value_name = "FILE")]
    pub observation: Option<PathBuf>,

    /// CSV file to write [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunArgs,
}

#[derive(Debug, Parser)]
pub struct EvaluateArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// CSV file with samples of the true posterior [default: the task's own].
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct LogDensityArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// CSV file with parameters, one set on each line.
    #[arg(long, value_name = "FILE")]
    pub theta: PathBuf,

    /// CSV file to write: the parameters and their log-density [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl LogDensityArgs {
    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }
}

#[derive(Debug, Parser)]
pub struct SettingsArgs {
    #[command(flatten)]
    pub config: ConfigArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) => Ok((key.trim().to_owned(), value.trim().to_owned())),
        None => Err("give a setting and its value, as train.batch=200".to_owned()),
    }
}
