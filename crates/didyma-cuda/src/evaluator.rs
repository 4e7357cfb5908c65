//! Densities and draws of a flow whose parameters stay on the device.

use crate::kernel::Backend;
use crate::programs::Programs;
use crate::resident::{Resident, Task};
use didyma::estimator::Plan;
use didyma::flow::{check_densities, check_samples};
use didyma::training::AdamConfig;
use didyma::{FlowConfig, Result, Rows, SplineFlow};
use std::sync::Arc;

/// A flow with its parameters on a device.
#[derive(Debug)]
pub(crate) struct CudaEvaluator {
    flow: SplineFlow,
    params: Vec<f32>,
    resident: Resident,
    plan: Plan,
}

impl CudaEvaluator {
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
        self.config() == flow.config()
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

    /// Does this with some rows, which share an x or have one each; returns log q.
    fn run(&mut self, task: Task, theta: &[f32], x: &[f32]) -> Result<Vec<f64>> {
        let FlowConfig { theta_dim, x_dim, .. } = *self.config();
        let (rows, groups) = ((theta.len() / theta_dim) as u32, (x.len() / x_dim) as u32);
        self.resident.keep(|buffers| &mut buffers.theta, theta)?;
        self.resident.keep(|buffers| &mut buffers.x, x)?;
        self.plan.clear();
        for group in 0..groups {
            self.plan.group(group, if groups == 1 { 0..rows } else { group..group + 1 });
        }
        let numbers = AdamConfig::default().numbers(1, 0.0, 0.0);
        self.resident.run(task, &self.plan, &numbers, 1.0)?;
        let mut log_q = vec![0.0f32; rows as usize];
        self.resident.buffers.log_q.get(&*self.resident.queue, &mut log_q)?;
        Ok(log_q.into_iter().map(f64::from).collect())
    }

    /// As [`SplineFlow::log_density`].
    pub fn log_density(&mut self, theta: Rows<f32>, x: Rows<f32>) -> Result<Vec<f64>> {
        let shared = self.flow.check_pairs(theta, x)?;
        let (theta, x) = (theta.data(), x.data());
        let (theta_chunk, x_chunk) = (CHUNK * self.config().theta_dim, CHUNK * self.config().x_dim);
        let mut log_q = Vec::new();
        for (i, theta) in theta.chunks(theta_chunk).enumerate() {
            let own = || &x[i * x_chunk..x.len().min((i + 1) * x_chunk)];
            log_q.extend(self.run(Task::Densities, theta, if shared { x } else { own() })?);
        }
        check_densities(log_q)
    }

    /// As [`SplineFlow::transport`].
    pub fn transport(&mut self, x: &[f32], base: &[f32]) -> Result<(Vec<f32>, Vec<f64>)> {
        let base = self.flow.check_base(x, base)?;
        let (mut theta, mut log_q) = (Vec::new(), Vec::new());
        for base in base.data().chunks(CHUNK * self.config().theta_dim) {
            log_q.extend(self.run(Task::Transport, base, x)?);
            let mut some = vec![0.0f32; base.len()];
            self.resident.buffers.z.get(&*self.resident.queue, &mut some)?;
            theta.append(&mut some);
        }
        check_samples(&theta, &log_q, self.config().theta_dim)?;
        Ok((theta, log_q))
    }
}

/// Rows that are worked on at a time: memory does not grow with their number.
const CHUNK: usize = 1 << 15;
