//! The scale of distances between summaries, where nobody knows it.

use super::Task;
use crate::error::{Error, Result};
use crate::problem::simulator;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use std::ops::ControlFlow;

/// Simulations that a scale is measured with.
const PILOT: usize = 200;

impl Task {
    /// s, the scale of each summary: the known one, or the standard deviation over 200 simulations at draws of the prior.
    pub fn distance_scale(&self, streams: &Streams, threads: usize) -> Result<Vec<f64>> {
        if let Some(scale) = &self.scale {
            return Ok(scale.clone());
        }
        let theta = self.problem.prior().sample_rows(
            PILOT,
            &streams.simulations(Purpose::PilotParameters, 0),
            threads,
        );
        let rows = Rows::new("theta", &theta, self.problem.prior().dim())?;
        let streams = streams.simulations(Purpose::PilotSimulation, 0);
        let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
        let found =
            simulator::simulate(self.problem.simulator(), rows, &streams, 0, threads, go_on)?;
        let succeeded = PILOT - found.failures.len();
        if succeeded < 2 {
            let reason = found.failures.into_iter().next().map(|failure| failure.reason);
            let (round, simulations) = (0, PILOT);
            return Err(Error::FewSimulations { round, simulations, succeeded, reason });
        }
        let columns = self.problem.simulator().x_dim();
        Ok((0..columns).map(|i| deviation(found.x.iter().skip(i).step_by(columns))).collect())
    }
}

/// The standard deviation of the finite ones; 1 if they are all the same.
fn deviation<'a>(values: impl Iterator<Item = &'a f64> + Clone) -> f64 {
    let values = values.filter(|x| x.is_finite()).copied();
    let n = values.clone().count() as f64;
    let mean = values.clone().sum::<f64>() / n;
    let sd = (values.map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    if sd > 0.0 { sd } else { 1.0 }
}
