//! Densities and draws of a flow whose parameters stay on the device.

use crate::kernel::Backend;
use crate::programs::Programs;
use crate::resident::{Resident, Task};
use didyma::estimator::Plan;
use didyma::flow::check_densities;
use didyma::train::AdamConfig;
use didyma::{FlowConfig, Result, Rows, Scaling, SplineFlow};
use std::sync::Arc;

/// A flow with its parameters on a device.
#[derive(Debug)]
pub(crate) struct Evaluator {
    flow: SplineFlow,
    params: Vec<f32>,
    resident: Resident,
    plan: Plan,
}

impl Evaluator {
    pub fn new(
        backend: &Arc<dyn Backend>,
        programs: &Arc<Programs>,
        flow: &SplineFlow,
        params: &[f32],
    ) -> Result<Self> {
        flow.check_params(params)?;
        let mut resident = Resident::new(backend, programs, flow)?;
        resident.set_params(params)?;
        let (flow, params, plan) = (flow.clone(), params.to_vec(), Plan::default());
        Ok(Self { flow, params, resident, plan })
    }

    pub fn config(&self) -> &FlowConfig {
        self.flow.config()
    }

    /// Whether it is of this flow; other parameters of the same shape are taken over by [`Self::set_params`].
    pub fn is_of(&self, flow: &SplineFlow) -> bool {
        let same = |ours, theirs| ours == theirs;
        self.config() == flow.config()
            && same(self.flow.theta_scaling(), flow.theta_scaling())
            && same(self.flow.x_scaling(), flow.x_scaling())
    }

    pub fn has_params(&self, params: &[f32]) -> bool {
        self.params == params
    }

    pub fn set_params(&mut self, params: &[f32]) -> Result<()> {
        self.flow.check_params(params)?;
        self.resident.set_params(params)?;
        self.params.copy_from_slice(params);
        Ok(())
    }

    /// One group of all rows, or a group for each row.
    fn run(
        &mut self,
        task: Task,
        theta: &[f32],
        x: &[f32],
        rows: usize,
        shared: bool,
    ) -> Result<Vec<f32>> {
        let Resident { buffers, queue, .. } = &mut self.resident;
        let moved = [buffers.theta.put(&**queue, theta)?, buffers.x.put(&**queue, x)?];
        if moved.contains(&true) {
            self.resident.moved();
        }
        self.plan.clear();
        let rows_of = |group: u32| if shared { 0..rows as u32 } else { group..group + 1 };
        for group in 0..if shared { 1 } else { rows as u32 } {
            self.plan.group(group, rows_of(group));
        }
        let numbers = AdamConfig::default().numbers(1, 0.0, 0.0);
        self.resident.run(task, &self.plan, &numbers, 1.0)?;
        let mut log_q = vec![0.0f32; rows];
        self.resident.buffers.log_q.get(&*self.resident.queue, &mut log_q)?;
        Ok(log_q)
    }

    /// As [`SplineFlow::log_density`].
    pub fn log_density(&mut self, theta: Rows, x: Rows) -> Result<Vec<f64>> {
        let shared = self.flow.check_pairs(theta, x)?;
        if theta.is_empty() {
            return Ok(Vec::new());
        }
        let (theta_scaled, x_scaled) =
            (scaled(theta, self.flow.theta_scaling()), scaled(x, self.flow.x_scaling()));
        let log_q = self.run(Task::Densities, &theta_scaled, &x_scaled, theta.len(), shared)?;
        check_densities(log_q.into_iter().map(f64::from).collect())
    }

    /// As [`SplineFlow::transport`].
    pub fn transport(&mut self, x: &[f32], base: &[f32]) -> Result<(Vec<f32>, Vec<f64>)> {
        let base = self.flow.check_base(x, base)?;
        if base.is_empty() {
            return Ok((Vec::new(), Vec::new()));
        }
        let x_scaled = scaled(Rows::new("x", x, x.len())?, self.flow.x_scaling());
        let log_q = self.run(Task::Transport, base.data(), &x_scaled, base.len(), true)?;
        let mut z = vec![0.0f32; base.data().len()];
        self.resident.buffers.z.get(&*self.resident.queue, &mut z)?;
        let log_q = log_q.into_iter().map(f64::from).collect();
        self.flow.unscaled(z.into_iter().map(f64::from), log_q)
    }
}

fn scaled(rows: Rows, scaling: &Scaling) -> Vec<f32> {
    rows.iter().flat_map(|row| scaling.apply::<f32>(row)).collect()
}
