//! `didyma abc`: sequential Monte Carlo approximate Bayesian computation.

use crate::arguments::{ProblemArgs, RunArgs, count, whole};
use crate::output::{check_out, samples, show, write};
use crate::terminal::bar;
use crate::{DONE, ExitCode};
use clap::Parser;
use didyma::abc::{Generation, SmcAbc, SmcAbcResult, StopReason};
use didyma::math::mean_and_deviation;
use didyma::rng::{Purpose, Streams};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

/// Sample a task's posterior by approximate Bayesian computation (adaptive SMC with regression adjustment).
#[derive(Debug, Parser)]
#[command(after_help = "Example:
  didyma abc mg1 --simulations 4000000 --particles 4000 --out samples.csv")]
pub struct AbcArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Simulations at most.
    #[arg(long, value_name = "COUNT", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub simulations: u64,

    /// Particles of a generation.
    #[arg(long, default_value = "4000", value_name = "COUNT", value_parser = whole::<usize>)]
    #[arg(allow_negative_numbers = true)]
    pub particles: usize,

    /// Tolerance at which to stop.
    #[arg(long, default_value = "0", value_name = "DISTANCE", allow_negative_numbers = true)]
    pub tolerance: f64,

    /// Share of simulations accepted below which to stop.
    #[arg(long, default_value = "0.005", value_name = "SHARE", allow_negative_numbers = true)]
    pub acceptance: f64,

    /// Samples to write.
    #[arg(short = 'n', long = "samples", default_value = "2000", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    /// CSV file to write, or bare little-endian numbers if it ends in .f32 [default: to the terminal].
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,

    /// Leave the particles where they are, without regression adjustment.
    #[arg(long)]
    pub no_adjust: bool,

    /// Plain rejection instead of generations: draws of the prior, of which the nearest are kept.
    #[arg(long)]
    pub rejection: bool,

    /// Leave out samples where the posterior is 0 for sure, if the task knows (mg1: no service is shorter than
    /// service_min, so that no time between departures is).
    #[arg(long)]
    pub known_support: bool,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object about the run instead of text; needs --out.
    #[arg(long, requires = "out")]
    pub json: bool,
}

pub fn run(args: &AbcArgs) -> anyhow::Result<ExitCode> {
    abc(args)?.map_or(Ok(DONE), |report| show(&report, args.json))
}

/// A run; its field names are the JSON keys.
#[derive(Debug, Serialize)]
struct AbcReport {
    task: String,
    simulations: u64,
    particles: usize,
    generations: usize,
    tolerance: f64,
    acceptance: f64,
    effective_sample_size: f64,
    reason: &'static str,
    adjusted: bool,
    samples: usize,
    seed: u64,
    mean: Vec<f64>,
    sd: Vec<f64>,
    #[serde(skip)]
    names: Vec<String>,
}

/// Runs and writes the samples; without a file they go to the terminal, and there is nothing to report.
fn abc(args: &AbcArgs) -> anyhow::Result<Option<AbcReport>> {
    let task = args.problem.task()?;
    check_out(args.out.as_deref())?;
    let streams = Streams::new(args.run.seed);
    let scale = task.distance_scale(&streams, args.run.threads.count())?;
    let abc = SmcAbc {
        prior: task.problem.prior(),
        support: task.support.as_ref().filter(|_| args.known_support),
        simulator: task.problem.simulator(),
        observation: task.problem.observation(),
        scale: &scale,
        particles: args.particles,
        simulations: args.simulations,
        tolerance: args.tolerance,
        acceptance: args.acceptance,
        threads: args.run.threads.count(),
    };
    let result = found(&abc, args, &streams)?;
    let mut rng = streams.simulations(Purpose::Posterior, 0).stream(0);
    let theta = result.sample(&abc, args.count, !args.no_adjust, &mut rng)?;
    let (mean, sd) = moments(&theta, task.problem.prior().dim());
    let names = task.problem.prior().names().map(str::to_owned).collect();
    write(samples(&task, theta), args.out.as_deref())?;
    let last = result.generations[result.generations.len() - 1];
    Ok(args.out.as_ref().map(|_| AbcReport {
        task: task.name,
        simulations: result.simulations,
        particles: args.particles,
        generations: result.generations.len(),
        tolerance: last.tolerance,
        acceptance: last.acceptance,
        effective_sample_size: last.effective,
        reason: words(result.reason),
        adjusted: !args.no_adjust,
        samples: args.count,
        seed: args.run.seed,
        mean,
        sd,
        names,
    }))
}

/// Works with a bar on the terminal.
fn found(abc: &SmcAbc, args: &AbcArgs, streams: &Streams) -> didyma::Result<SmcAbcResult> {
    let bar = bar(args.simulations, "{bar:30} {pos}/{len} simulations{msg}");
    let mut observe = |now: &Generation| {
        bar.set_position(now.simulations);
        let Generation { tolerance, particles, acceptance, effective, .. } = now;
        let percent = 100.0 * acceptance;
        bar.set_message(match *effective {
            0.0 => format!(
                ", tolerance {tolerance:.3}, {particles} particles, acceptance {percent:.2} %"
            ),
            ess => format!(", tolerance {tolerance:.3}, acceptance {percent:.2} %, ESS {ess:.0}"),
        });
        ControlFlow::Continue(())
    };
    let result = if args.rejection {
        abc.reject(streams, &mut observe)?
    } else {
        abc.run(streams, &mut observe)?
    };
    bar.finish_and_clear();
    Ok(result)
}

fn words(reason: StopReason) -> &'static str {
    match reason {
        StopReason::Budget => "the simulations were spent",
        StopReason::Acceptance => "too few simulations were accepted",
        StopReason::Ties => "half of the particles have the same distance",
        StopReason::Tolerance => "the tolerance was reached",
        StopReason::Stopped => "it was stopped",
    }
}

/// Mean and standard deviation of each column.
fn moments(rows: &[f64], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let column = |k: usize| rows.iter().skip(k).step_by(dim).copied().collect::<Vec<_>>();
    (0..dim).map(|k| mean_and_deviation(&column(k))).unzip()
}

impl fmt::Display for AbcReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, simulations, generations, tolerance, reason, .. } = self;
        writeln!(
            f,
            "{task}: {generations} generations, {simulations} simulations; it ended because {reason}"
        )?;
        let (percent, ess) = (100.0 * self.acceptance, self.effective_sample_size);
        write!(
            f,
            "  tolerance {tolerance:.4}, acceptance {percent:.2} %, effective sample size {ess:.0} of {}",
            self.particles
        )?;
        let adjusted = if self.adjusted { ", regression-adjusted" } else { "" };
        write!(f, "\n  {} samples{adjusted}:", self.samples)?;
        for ((name, mean), sd) in self.names.iter().zip(&self.mean).zip(&self.sd) {
            write!(f, "\n    {name:<20} {mean:>9.4} ± {sd:.4}")?;
        }
        Ok(())
    }
}
