//! Scores of a round's posterior where a task knows the truth.

use crate::error::Result;
use crate::evaluation::metrics::{c2st, c2st_of_one_fold, median_distance, mmd2};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::{Judge, Scores};
use crate::problem::simulator;
use crate::problem::tasks::{Reference, Task};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use std::ops::ControlFlow;

/// Samples that are compared, of the posterior and of the reference.
const SAMPLES: usize = 2000;

/// Compares with a task's reference posterior, its observation and its true parameters.
pub struct TaskJudge<'a> {
    task: &'a Task,
    reference: Option<Vec<f64>>,
    streams: Streams,
    threads: usize,
}

impl<'a> TaskJudge<'a> {
    /// Draws the reference samples, if the task has any.
    pub fn new(task: &'a Task, streams: Streams, threads: usize) -> Result<Self> {
        let reference = match task.reference {
            Reference::None => None,
            _ => Some(task.reference(SAMPLES, &streams, threads)?),
        };
        Ok(Self { task, reference, streams, threads })
    }

    /// Compares with these samples instead of the task's.
    pub fn with_reference(self, reference: Vec<f64>) -> Self {
        Self { reference: Some(reference), ..self }
    }

    fn lmd(&self, samples: Rows, round: u32) -> Result<Option<f64>> {
        let Some(scale) = &self.task.scale else { return Ok(None) };
        let streams = self.streams.simulations(Purpose::Metric, round.into());
        let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
        let simulator = self.task.problem.simulator();
        let found = simulator::simulate(simulator, samples, &streams, 0, self.threads, go_on)?;
        let x = Rows::new("x", &found.x, simulator.x_dim())?;
        Ok(Some(median_distance(x, self.task.problem.observation(), scale)?.ln()))
    }

    fn nlog(&self, posterior: &Posterior) -> Result<Option<f64>> {
        let Some(truth) = &self.task.truth else { return Ok(None) };
        let truth = Rows::new("truth", truth, self.task.problem.prior().dim())?;
        Ok(Some(-posterior.log_density(truth, self.threads)?[0]))
    }
}

impl Judge for TaskJudge<'_> {
    fn score(&self, posterior: &Posterior, round: u32, last: bool) -> Result<Scores> {
        let Self { task, streams, threads, .. } = self;
        let dim = task.problem.prior().dim();
        let count = self.reference.as_ref().map_or(SAMPLES, |reference| reference.len() / dim);
        let from = SampleStreams::new(*streams, Purpose::Metric, round);
        let samples = posterior.draw(count, from, *threads)?.theta;
        let samples = Rows::new("samples", &samples, dim)?;
        let reference = self.reference.as_ref().map(|rows| Rows::new("reference", rows, dim));
        let reference = reference.transpose()?;
        // All folds of every round would take as long as half of the training.
        let c2st = if last { c2st } else { c2st_of_one_fold };
        let c2st = reference.map(|r| c2st(r, samples, *threads, streams)).transpose()?;
        Ok(Scores {
            c2st: c2st.map(|found| found.mean),
            c2st_error: c2st.map(|found| found.error),
            mmd2: reference.map(|r| mmd2(r, samples, *threads)).transpose()?,
            lmd: self.lmd(samples, round)?,
            nlog: self.nlog(posterior)?,
        })
    }
}
