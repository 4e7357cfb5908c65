//! `didyma bench step`: how long a training step takes.

use super::seconds;
use crate::ExitCode;
use crate::arguments::{DeviceArgs, EstimatorArgs, between, named, threads};
use crate::output::show;
use clap::Parser;
use clap::builder::PossibleValuesParser;
use didyma::estimator::Method;
use didyma::parallel;
use didyma_lab::{POOL, SHAPES, Shape, StepBench};

/// Time one training step: gather, log-density, loss, gradient, clipping and Adam.
///
/// The step runs on synthetic data of a task's size with the paper's flow (8 layers, 2 blocks of 50
/// units, 10 bins). The machine's best rate of matrix products (a GPU's of multiply-adds) is measured in
/// the same run, so that the fraction reached is an honest one.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma bench step
  didyma bench step --device cuda --task two-moons
  didyma bench step --device cuda --seeds 16
  didyma bench step --device cpu --task hodgkin-huxley --method nested --threads 1
  didyma bench step --json | jq .fraction_of_peak
  DIDYMA_KERNELS=avx2 didyma bench step     (avx512, avx2, portable or scalar kernels)")]
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
    pool: u32,

    /// Outer samples of a step.
    #[arg(long, default_value = "100", value_name = "COUNT", value_parser = batch)]
    #[arg(allow_negative_numbers = true)]
    batch: usize,

    #[command(flatten)]
    device: DeviceArgs,

    /// Threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Trainings at once, each on a thread of its own, as of `didyma infer --seeds`.
    #[arg(long, default_value = "1", value_name = "COUNT", value_parser = trainings)]
    #[arg(allow_negative_numbers = true)]
    seeds: usize,

    /// How long to measure.
    #[arg(long, default_value = "5", value_name = "SECONDS", value_parser = seconds)]
    #[arg(allow_negative_numbers = true)]
    seconds: f64,

    /// Print one JSON object instead of text.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &StepArgs) -> anyhow::Result<ExitCode> {
    let bench = StepBench {
        shape: Shape::named(&args.task).expect("only known names are accepted"),
        settings: args.estimator.settings(args.method),
        pool: args.pool,
        batch: args.batch,
        opened: args.device.open()?,
        threads: args.threads.unwrap_or_else(parallel::cores),
        seeds: args.seeds,
        seconds: args.seconds,
    };
    show(&bench.run()?, args.json)
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
