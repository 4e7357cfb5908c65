//! Arguments of the commands that make a run and read it: infer, resume, show, watch, sample, evaluate, log-density, settings.

use super::problem::ProblemArgs;
use super::problems::{RunArgs, count};
use super::{DeviceArgs, ThreadsArgs, seeds, threads, whole};
use anyhow::bail;
use clap::Parser;
use didyma::config::{Algorithm, Config, Profile};
use didyma::problem::{FileSettings, Problem, Source};
use std::path::PathBuf;
use std::time::Duration;

/// Where settings start from, and single changes.
#[derive(Debug, Default, Parser)]
pub struct ConfigArgs {
    /// How to learn. Parameters of later rounds come from a part of the prior, which needs no correction: tsnpe, or snse,
    /// which learns a score instead of a flow. Or from the posterior so far, and the loss corrects for it: multilevel
    /// (tgrr, grr, ru, tru, rr), nested or atomic APT. Or all from the prior: npe.
    /// [default: tsnpe, or what the problem file says]
    #[arg(long, value_name = "NAME", value_parser = super::named::<Algorithm>())]
    method: Option<Algorithm>,

    /// All settings at once: what works best, or the paper's protocol.
    /// [default: default, or what the problem file says]
    #[arg(long, value_name = "NAME", value_parser = super::named::<Profile>())]
    profile: Option<Profile>,

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
    /// The settings, all checked: those of the problem file, if there is one, then those of the command line.
    pub fn config(&self, seed: Option<u64>, file: Option<&FileSettings>) -> didyma::Result<Config> {
        let mut config = match file {
            Some(file) => file.config(self.profile, self.method)?,
            None => Config::new(
                self.profile.unwrap_or(Profile::Default),
                self.method.unwrap_or(Algorithm::Tsnpe),
            ),
        };
        config.rounds = self.rounds.unwrap_or(config.rounds);
        config.simulations = self.simulations.unwrap_or(config.simulations);
        config.seed = seed.unwrap_or(config.seed);
        for (key, value) in &self.set {
            config.set(key, value)?;
        }
        config.check().map_err(|error| match file {
            Some(file) if !self.sets(&error) => file.located(error),
            _ => error,
        })?;
        Ok(config)
    }

    /// Whether an error is about something that was given here.
    fn sets(&self, error: &didyma::Error) -> bool {
        let didyma::Error::Setting { name, .. } = error else { return false };
        let given = self.set.iter().map(|(key, _)| key.as_str());
        let rounds = self.rounds.map(|_| "rounds");
        given.chain(rounds).chain(self.simulations.map(|_| "simulations")).any(|key| key == name)
    }
}

#[derive(Debug, Parser)]
pub struct InferArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    /// Make so many runs side by side, with the seeds SEED, SEED + 1, …; how much they differ tells how far one of them can
    /// be trusted. Each is a run of its own in DIR/seed-SEED, the same to the byte as if it were made alone, and
    /// `didyma show DIR` and `didyma resume DIR` take all of them. Threads, and --workers, are shared out.
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = seeds, allow_negative_numbers = true)]
    pub seeds: u64,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Directory of the run, made new [default: runs/TASK-METHOD-SEED, or runs/TASK-METHOD-seeds for several, with a number
    /// if that is taken].
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

/// How a user's program is run, which does not change what it gives.
#[derive(Debug, Clone, Parser)]
pub struct ProgramArgs {
    /// Simulations under way at once, of a problem file's program [default: one a thread, or what the file says].
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    pub workers: Option<usize>,

    /// Words to put before the program of a problem file, as "srun -n1 --mem=2G".
    #[arg(long, value_name = "WORDS", allow_hyphen_values = true, value_parser = words)]
    launcher: Option<Words>,
}

#[derive(Debug, Clone)]
struct Words(Vec<String>);

impl ProgramArgs {
    /// Changes the problem's program accordingly.
    pub fn apply(&self, problem: &mut Problem) {
        if let Source::Program(program) = &mut problem.source {
            program.workers = self.workers.or(program.workers);
            if let Some(Words(launcher)) = &self.launcher {
                program.launcher.clone_from(launcher);
            }
        }
    }

    /// An error if something is asked of a program that is not there.
    pub fn check(&self, problem: Option<&Problem>) -> anyhow::Result<()> {
        let program = problem.is_some_and(|p| matches!(p.source, Source::Program(_)));
        match (self.workers.is_some(), self.launcher.is_some()) {
            (true, _) if !program => {
                bail!(
                    "--workers is for programs of problem files, and built-in tasks run on --threads"
                )
            }
            (_, true) if !program => {
                bail!("--launcher is for programs of problem files: a built-in task starts none")
            }
            _ => Ok(()),
        }
    }
}

fn words(text: &str) -> Result<Words, String> {
    match shell_words::split(text) {
        Ok(words) if !words.is_empty() => Ok(Words(words)),
        Ok(_) => Err("it is empty: give a command, as \"srun -n1\"".to_owned()),
        Err(_) => Err("a quotation mark is left open".to_owned()),
    }
}

#[derive(Debug, Parser)]
pub struct ResumeArgs {
    /// Directory of the run, or of the runs of several seeds.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub device: DeviceArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Take the simulator from this problem file, which has moved or was repaired; parameters, priors and observation must
    /// be those of the run.
    #[arg(long, value_name = "FILE.toml")]
    pub problem: Option<PathBuf>,

    /// Simulate those again that failed in the unfinished round, after the simulator was repaired.
    #[arg(long)]
    pub retry_failed: bool,

    /// Print the summary as one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Parser)]
pub struct ShowArgs {
    /// Directory of the run, or of the runs of several seeds.
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

    #[command(flatten)]
    pub threads: ThreadsArgs,
}

#[derive(Debug, Parser)]
pub struct SettingsArgs {
    #[command(flatten)]
    pub config: ConfigArgs,

    /// List the fields of a problem file instead.
    #[arg(long)]
    pub problem: bool,

    /// Print the JSON schema of problem files, for editors that check and complete.
    #[arg(long, requires = "problem", conflicts_with = "json")]
    pub schema: bool,

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
