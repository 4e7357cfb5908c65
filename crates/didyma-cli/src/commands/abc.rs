//! `didyma abc`: sequential Monte Carlo approximate Bayesian computation.

use crate::args::AbcArgs;
use crate::{problems, progress};
use didyma::baseline::{Generation, SmcAbc, StopReason};
use didyma::rng::{Purpose, Streams};
use serde::Serialize;
use std::fmt;
use std::ops::ControlFlow;

/// A run; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct AbcReport {
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
pub fn abc(args: &AbcArgs) -> anyhow::Result<Option<AbcReport>> {
    let task = args.problem.task()?;
    problems::check_out(args.out.as_deref())?;
    let streams = Streams::new(args.run.seed);
    let scale = task.distance_scale(&streams, args.run.threads.count())?;
    let abc = SmcAbc {
        prior: &task.prior,
        support: task.support.as_ref().filter(|_| args.known_support),
        simulator: &*task.simulator,
        observation: &task.observation,
        scale: &scale,
        particles: args.particles,
        simulations: args.simulations,
        tolerance: args.tolerance,
        acceptance: args.acceptance,
        threads: args.run.threads.count(),
    };
    let bar = progress::bar(args.simulations, "{bar:30} {pos}/{len} simulations{msg}");
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
    let result = match args.rejection {
        true => abc.reject(&streams, &mut observe)?,
        false => abc.run(&streams, &mut observe)?,
    };
    bar.finish_and_clear();
    let mut rng = streams.simulations(Purpose::Posterior, 0).stream(0);
    let theta = result.sample(&abc, args.count, !args.no_adjust, &mut rng)?;
    let (mean, sd) = moments(&theta, task.prior.dim());
    let names = task.prior.names().map(str::to_owned).collect();
    problems::write(problems::samples(&task, theta), args.out.as_deref())?;
    let last = result.generations[result.generations.len() - 1];
    Ok(args.out.as_ref().map(|_| AbcReport {
        task: task.name,
        simulations: result.simulations,
        particles: args.particles,
        generations: result.generations.len(),
        tolerance: last.tolerance,
        acceptance: last.acceptance,
        effective_sample_size: last.effective,
        reason: match result.reason {
            StopReason::Budget => "the simulations were spent",
            StopReason::Acceptance => "too few simulations were accepted",
            StopReason::Ties => "half of the particles have the same distance",
            StopReason::Tolerance => "the tolerance was reached",
            StopReason::Stopped => "it was stopped",
        },
        adjusted: !args.no_adjust,
        samples: args.count,
        seed: args.run.seed,
        mean,
        sd,
        names,
    }))
}

/// Mean and standard deviation of each column.
fn moments(rows: &[f32], dim: usize) -> (Vec<f64>, Vec<f64>) {
    let n = (rows.len() / dim) as f64;
    let column = |k: usize| rows.iter().skip(k).step_by(dim).map(|&v| f64::from(v));
    let mean: Vec<f64> = (0..dim).map(|k| column(k).sum::<f64>() / n).collect();
    let variance =
        |k: usize| column(k).map(|v| (v - mean[k]).powi(2)).sum::<f64>() / (n - 1.0).max(1.0);
    let sd = (0..dim).map(|k| variance(k).sqrt()).collect();
    (mean, sd)
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
