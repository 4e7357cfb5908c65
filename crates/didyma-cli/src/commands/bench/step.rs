//! Arguments of `didyma bench`.

use super::{DeviceArgs, EstimatorArgs, between, named, threads};
use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use didyma::estimator::{Method, Settings};
use didyma::parallel;
use didyma::tasks::Task;
use didyma::workload::{POOL, SHAPES, Shape};

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Time one training step: gather, log-density, loss, gradient, clipping and Adam.
    ///
    /// The step runs on synthetic data of a task's size with the paper's flow (8 layers, 2 blocks of 50
    /// units, 10 bins). The machine's best rate of matrix products (a GPU's of multiply-adds) is measured in
    /// the same run, so that the fraction reached is an honest one.
    #[command(after_help = "Examples:
  didyma bench step
  didyma bench step --device cuda --task two-moons
  didyma bench step --device cuda --seeds 16
  didyma bench step --device cpu --task hodgkin-huxley --method nested --threads 1
  didyma bench step --json | jq .fraction_of_peak
  DIDYMA_KERNELS=avx2 didyma bench step     (avx512, avx2, portable or scalar kernels)")]
    Step(StepArgs),
    /// Count simulations per second of each task at its true parameters.
    #[command(after_help = "Examples:
  didyma bench simulate
  didyma bench simulate --task mg1 --threads 1 --json")]
    Simulate(BenchSimulateArgs),
}

#[derive(Debug, Parser)]
pub struct StepArgs {
    /// Task whose numbers of parameters and summaries are used.
    #[arg(long, default_value = "lotka-volterra", value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(SHAPES.map(|shape| shape.name)))]
    task: String,

    /// Training method. It decides how many pairs a step has: tgrr about 3,560, nested 10,100, atomic 10,000,
    /// likelihood 100; ru, rr and grr vary, and are capped where a block would be larger than the dataset.
    #[arg(long, default_value = "tgrr", value_name = "NAME", value_parser = named::<Method>())]
    method: Method,

    #[command(flatten)]
    estimator: EstimatorArgs,

    /// Rows that inner samples are drawn from.
    #[arg(long, default_value = "10000", value_name = "COUNT", value_parser = pool)]
    #[arg(allow_negative_numbers = true)]
    pub pool: u32,

    /// Outer samples of a step.
    #[arg(long, default_value = "100", value_name = "COUNT", value_parser = batch)]
    #[arg(allow_negative_numbers = true)]
    pub batch: usize,

    #[command(flatten)]
    pub device: DeviceArgs,

    /// Threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Trainings at once, each on a thread of its own, as of `didyma infer --seeds`.
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = trainings)]
    #[arg(allow_negative_numbers = true)]
    pub seeds: usize,

    /// How long to measure.
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub seconds: f64,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl StepArgs {
    pub fn task(&self) -> Shape {
        Shape::named(&self.task).expect("only known names are accepted")
    }

    pub fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }

    pub fn settings(&self) -> Settings {
        self.estimator.settings(self.method)
    }
}

#[derive(Debug, Parser)]
pub struct BenchSimulateArgs {
    /// Task to simulate [default: all].
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Task::NAMES))]
    task: Option<String>,

    /// Threads [default: one, then all cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    threads: Option<usize>,

    /// How long to measure each.
    #[arg(long, default_value = "2", value_name = "SECONDS", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    pub seconds: f64,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl BenchSimulateArgs {
    pub fn tasks(&self) -> Vec<Task> {
        let wanted = |name: &&str| self.task.as_deref().is_none_or(|task| task == *name);
        Task::NAMES.into_iter().filter(wanted).filter_map(Task::named).collect()
    }

    pub fn threads(&self) -> Vec<usize> {
        let mut all = self.threads.map_or(vec![1, parallel::cores()], |threads| vec![threads]);
        all.dedup();
        all
    }
}

fn trainings(text: &str) -> Result<usize, String> {
    between(text, "a whole number of trainings", 1..=1000)
}

fn batch(text: &str) -> Result<usize, String> {
    between(text, "a whole number", 1..=100_000)
}

fn pool(text: &str) -> Result<u32, String> {
    between(text, "a number of rows", 2..=POOL)
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 3600.0 => Ok(value),
        _ => Err("give a number of seconds above 0 and up to 3600".to_owned()),
    }
}
