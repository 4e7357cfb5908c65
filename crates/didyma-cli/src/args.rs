//! What can be typed, checked as it is read.

use clap::builder::PossibleValuesParser;
use clap::{Parser, Subcommand};
use didyma::workload::{Method, SHAPES, Shape};

/// Simulation-based Bayesian inference: from a simulator, a prior and an observation to a posterior.
#[derive(Debug, Parser)]
#[command(name = "didyma", version, arg_required_else_help = true, subcommand_required = true)]
pub struct Args {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure how fast this machine is at the work of training.
    #[command(arg_required_else_help = true)]
    Bench {
        #[command(subcommand)]
        command: BenchCommand,
    },
}

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    /// Time one training step: gather, log-density, loss, gradient, clipping and Adam.
    ///
    /// The step runs on synthetic data of a task's size with the paper's flow (8 layers, 2 blocks of 50
    /// units, 10 bins) and a batch of 100. The machine's best rate of matrix products is measured in
    /// the same run, so that the fraction reached is an honest one.
    #[command(after_help = "Examples:
  didyma bench step
  didyma bench step --task hodgkin-huxley --method nested --threads 1
  didyma bench step --json | jq .fraction_of_gemm_peak
  DIDYMA_KERNELS=avx2 didyma bench step     (avx512, avx2, portable or scalar kernels)")]
    Step(StepArgs),
}

#[derive(Debug, Parser)]
pub struct StepArgs {
    /// Task whose numbers of parameters and summaries are used.
    #[arg(long, default_value = "lotka-volterra", value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(SHAPES.map(|shape| shape.name)))]
    task: String,

    /// Training method, which decides how many pairs a step has: tgrr about 3,550, nested 10,100,
    /// atomic 10,000, likelihood 100.
    #[arg(long, default_value = "tgrr", value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(Method::ALL.map(|(name, _)| name)))]
    method: String,

    /// Threads [default: all cores].
    #[arg(long, value_name = "N", value_parser = threads)]
    #[arg(allow_negative_numbers = true)]
    threads: Option<usize>,

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

    pub fn method(&self) -> (&'static str, Method) {
        let named = |(name, _): &(&str, Method)| *name == self.method;
        Method::ALL.into_iter().find(named).expect("only known names are accepted")
    }

    pub fn threads(&self) -> usize {
        let all = || std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        self.threads.unwrap_or_else(all)
    }
}

fn threads(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(value) if (1..=1024).contains(&value) => Ok(value),
        _ => Err("give a whole number of threads between 1 and 1024".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(value) if value > 0.0 && value <= 3600.0 => Ok(value),
        _ => Err("give a number of seconds above 0 and up to 3600".to_owned()),
    }
}
