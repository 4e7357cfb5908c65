//! What can be typed, checked as it is read.

mod bench;
mod cluster;
mod estimators;
mod init;
mod levels;
mod problem;
mod problems;
mod report;
mod reproduce;
mod runs;

pub use bench::{BenchCommand, BenchSimulateArgs, StepArgs};
pub use cluster::{CheckArgs, MergeArgs, ProposeArgs, TrainArgs};
pub use estimators::{AlphaArgs, EstimatorArgs};
pub use init::InitArgs;
pub use levels::LevelsArgs;
pub use problem::Loaded;
pub use problems::{AbcArgs, MetricsArgs, ReferenceArgs, RunArgs, SimulateArgs, TasksArgs};

pub use report::{PlotArgs, ReportArgs};
pub use reproduce::{ReproduceArgs, Target};
pub use runs::{
    ConfigArgs, EvaluateArgs, InferArgs, LogDensityArgs, ResumeArgs, SampleArgs, SettingsArgs,
    ShowArgs, WatchArgs,
};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Parser, Subcommand};
use didyma::estimator::Named;
use didyma::parallel;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

/// Simulation-based Bayesian inference: from a simulator, a prior and an observation to a posterior.
#[derive(Debug, Parser)]
#[command(name = "didyma", version, arg_required_else_help = true, subcommand_required = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Infer a task's posterior: propose, simulate and train, round after round.
    ///
    /// Everything is saved in a directory as it happens. Whatever ends the process (Ctrl-C, a kill, a full disk),
    /// `didyma resume DIR` goes on and ends with the same bytes. The result depends on the seed, not on the threads.
    #[command(after_help = "Examples:
  didyma infer two-moons
  didyma infer lotka-volterra --rounds 10 --simulations 1000 --seed 7 --out lv
  didyma infer mg1 --method tgrr --set estimator.m0=8
  didyma infer two-moons --method tgrr --profile paper --set estimator.coupling=planted --set flow.bound=3
  didyma infer two-moons --seeds 4 --out moons     (then: didyma show moons)
  didyma infer two-moons --json | jq .rounds[-1].c2st")]
    Infer(InferArgs),
    /// Make a folder with a problem file and a simulator that works, to change into your own.
    ///
    /// The simulator is exponential decay with noise, as a worker that Didyma starts once and asks for simulations. The
    /// problem file explains its fields.
    #[command(after_help = "Examples:
  didyma init decay
  didyma init decay --language julia
  didyma infer decay/problem.toml")]
    Init(InitArgs),
    /// Try a problem: a few simulations, and what they say of shapes, speed, failures, seeds and the observation.
    ///
    /// Exit code 1 if no run makes sense: every simulation fails, or the same seed does not give the same.
    #[command(after_help = "Examples:
  didyma check problem.toml
  didyma check problem.toml -n 500 --report check.html")]
    Check(CheckArgs),
    /// Go on with a run that was stopped, killed, or ran out of disk space; or with all unfinished runs of `infer --seeds`.
    Resume(ResumeArgs),
    /// Write the parameters that a run's next round is to simulate, for a cluster; begin the run if there is none.
    ///
    /// A round is then: propose, simulate its shards anywhere, merge them, train. The result is the same, to the byte, as
    /// that of `didyma infer` on one machine.
    #[command(after_help = "Example:
  didyma propose run problem.toml --rounds 5 -n 1000
  for i in 1 2 3 4; do
      didyma simulate problem.toml --proposal run/proposal-1.csv --shard $i/4 --out shard-$i.db
  done
  didyma merge run shard-*.db
  didyma train run
  didyma propose run     (and so on)")]
    Propose(ProposeArgs),
    /// Take simulations that were made elsewhere into a run.
    Merge(MergeArgs),
    /// Train the round of a run whose simulations are all merged.
    Train(TrainArgs),
    /// Show a run: rounds, and the posterior of each parameter; or the runs of `infer --seeds`, and how much they differ.
    Show(ShowArgs),
    /// Watch a run while it goes on: marginals, losses and rounds, drawn in the terminal.
    ///
    /// The run is only read, from another terminal than its own, and does not notice. The picture is drawn anew until
    /// the run is finished, and then stays; Ctrl-C ends the watching, not the run.
    #[command(after_help = "Examples:
  didyma watch runs/two-moons-tsnpe-1
  didyma watch runs/two-moons-tsnpe-1 --interval 5
  didyma watch runs/two-moons-tsnpe-1 --once > now.txt")]
    Watch(WatchArgs),
    /// Draw samples from a run's posterior.
    #[command(after_help = "Examples:
  didyma sample runs/two-moons-tsnpe-1 -n 5000 --out samples.csv
  didyma sample runs/two-moons-tsnpe-1 --observation other.csv")]
    Sample(SampleArgs),
    /// Score a run's posterior against reference samples: C2ST, MMD², LMD, NLOG.
    Evaluate(EvaluateArgs),
    /// Compute the log-density of a run's posterior at given parameters.
    #[command(name = "log-density")]
    LogDensity(LogDensityArgs),
    /// Write a page about a run, or about several of one task side by side: figures, tables, warnings.
    ///
    /// One HTML file that needs no other and no network. An unfinished run is drawn as far as it is.
    #[command(after_help = "Examples:
  didyma report runs/two-moons-tsnpe-1
  didyma report runs/two-moons-* --out compared.html --figures figures")]
    Report(ReportArgs),
    /// Draw one figure of a run, or of several of one task, as SVG or PNG.
    #[command(after_help = "Examples:
  didyma plot pairs runs/two-moons-tsnpe-1 --out posterior.png
  didyma plot metrics runs/mg1-* --out metrics.svg")]
    Plot(PlotArgs),
    /// List every setting of a profile, with its value and what it is.
    Settings(SettingsArgs),
    /// List the built-in problems.
    Tasks(TasksArgs),
    /// Simulate a task or a problem of your own: at given parameters, at draws of its prior, or one shard of a round.
    #[command(after_help = "Examples:
  didyma simulate problem.toml -n 100 --out rows.csv
  didyma simulate problem.toml --proposal run/proposal-1.csv --shard 3/20 --out shard-3.db
  didyma simulate two-moons -n 5 --theta 0.2,0.3
  didyma simulate lotka-volterra -n 100000 --seed 7 --out lv.csv")]
    Simulate(SimulateArgs),
    /// Write samples of a task's true posterior: exact, by a Markov chain, or stored.
    #[command(after_help = "Example:
  didyma reference two-moons -n 2000 --out reference.csv")]
    Reference(ReferenceArgs),
    /// Sample a task's posterior by approximate Bayesian computation (adaptive SMC with regression adjustment).
    #[command(after_help = "Example:
  didyma abc mg1 --simulations 4000000 --particles 4000 --out samples.csv")]
    Abc(AbcArgs),
    /// Compare samples with a reference: C2ST, MMD², sliced Wasserstein, and LMD with a task.
    #[command(after_help = "Examples:
  didyma metrics reference.csv samples.csv
  didyma metrics reference.csv samples.csv --task mg1 --json | jq .c2st")]
    Metrics(MetricsArgs),
    /// Choose how fast the probability of a level falls (α), for a rate r2 of the levels.
    ///
    /// A multilevel estimator draws a level L and takes blocks of M₀·2^l inner samples up to it. Rare
    /// high levels cost little but weigh much: alpha balances variance against cost. The paper's value
    /// is shown beside the recipe's: α = (r2 + 1)/2 with tails P(L ≥ j) = min(1, κ·2^(−α(j − base))),
    /// whose κ follows from the variance of the base term. Cross terms are left out, so larger tails are
    /// worth trying. `didyma levels` measures r2 and the base variance.
    #[command(after_help = "Examples:
  didyma alpha --method tgrr --r2 1.8
  didyma alpha --method grr --r2 1.4 --base 1 --base-variance 0.5
  didyma alpha --method ru --r2 1.8 --json | jq .cost_paper")]
    Alpha(AlphaArgs),
    /// Measure the levels of a multilevel estimator: moments, kurtosis, cost, and the rates r1 and r2.
    ///
    /// They are measured on the flow of a run with its simulations as outer and inner samples, and with its settings
    /// unless others are given; a block cannot be larger than the number of simulations. Or on a toy whose loss is
    /// known exactly, all Gaussian: `benign` has every moment one could wish for, `mild` some, `sharp` has a posterior
    /// sharper than the proposal, `four-d` is four-dimensional. Every level gets the same number of evaluations; rates
    /// are fitted to levels 1 to 6.
    #[command(after_help = "Examples:
  didyma levels runs/two-moons-tgrr-1
  didyma levels runs/two-moons-tgrr-1 --coupling excluded --plot levels.svg
  didyma levels --toy benign
  didyma levels --toy sharp --coupling inclusive --plot levels.svg
  didyma levels --toy four-d --method grr --json | jq .r2")]
    Levels(LevelsArgs),
    /// Reproduce the paper: each table and figure, and studies that it lacks, beside what it prints.
    ///
    /// Runs what is missing in the folder, goes on with what was interrupted, then writes for each result a page in
    /// Markdown, all numbers as CSV, and figures as SVG; reproduction.md has them all. Results share their runs.
    #[command(after_help = "Examples:
  didyma reproduce all --quick --out try
  didyma reproduce table-1 complexity --out paper
  didyma reproduce table-2 figure-3 --seeds 3 --jobs 16 --out paper")]
    Reproduce(ReproduceArgs),
    /// List what flows can be trained on here: the CPU, and GPUs, or why none can be used.
    Devices(DevicesArgs),
    /// Measure how fast this machine is at the work of training.
    #[command(arg_required_else_help = true)]
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
}

/// On how many threads to work.
#[derive(Debug, Parser)]
pub struct ThreadsArgs {
    /// Threads [default: all cores]. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,
}

impl ThreadsArgs {
    pub fn count(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }
}

/// Where flows are trained and evaluated.
#[derive(Debug, Parser)]
pub struct DeviceArgs {
    /// Where flows are trained and evaluated: auto takes a GPU that `didyma devices` finds usable, else the CPU. The result
    /// is the same bytes on the same kind of device, and the same within noise on another.
    #[arg(long, value_name = "NAME", default_value = "auto", value_parser = named::<DeviceChoice>())]
    pub device: DeviceChoice,
}

/// A device, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if there is one that works, else the CPU.
    Auto,
    /// The cores of this machine.
    Cpu,
    /// A GPU, or an error that says why not.
    Cuda,
}

impl Named for DeviceChoice {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("cpu", Self::Cpu), ("cuda", Self::Cuda)];
}

#[derive(Debug, Parser)]
pub struct DevicesArgs {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "give a whole number, 0 or above".to_owned())
}

/// One of the names of a choice.
fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let names = T::ALL.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names)
        .map(|name| T::named(&name).expect("only known names are accepted"))
}

fn threads(text: &str) -> Result<usize, String> {
    between(text, "a whole number of threads", 1..=1024)
}

fn seeds(text: &str) -> Result<u64, String> {
    between(text, "a whole number", 1..=1000)
}

/// A number inside of its range; `what` is asked for where it is not.
fn between<T>(text: &str, what: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let found = text.parse().ok().filter(|value| range.contains(value));
    found.ok_or_else(|| format!("give {what} between {} and {}", range.start(), range.end()))
}
