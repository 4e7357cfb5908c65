//! The seam between flows and the machine that computes them: training, densities, samples.

use crate::density::flow::SplineFlow;
use crate::density::{Cpu, Dataset, Evaluator};
use crate::error::Result;
use crate::network::kernel::Real;
use crate::training::{AdamConfig, CpuEngine, Engine};
use std::fmt;
use std::sync::Arc;

/// Where the arithmetic of flows runs: training, densities, samples.
///
/// The threads of a run share one: it may be asked by several of them at once. Rows are independent of each other, so
/// that the answer for one does not depend on those that come with it.
pub trait Device: Evaluator + fmt::Debug {
    /// In a user's words, as `CPU (avx512 kernels)`.
    fn describe(&self) -> String;

    /// Of so many independent runs, how many to work on at once with so many threads of the host, 1 at least. Cores are
    /// filled by one run each; a device that only many runs fill has more.
    fn runs_at_once(&self, runs: usize, threads: usize) -> usize {
        runs.min(threads).max(1)
    }

    /// An engine that trains this flow from these parameters on this dataset; `threads` of the host may help.
    fn engine(
        &self,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        adam: AdamConfig,
        threads: usize,
    ) -> Result<Box<dyn Engine>>;
}

impl Device for Cpu {
    fn describe(&self) -> String {
        format!("CPU ({} kernels)", f32::kernels().name)
    }

    fn engine(
        &self,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        adam: AdamConfig,
        threads: usize,
    ) -> Result<Box<dyn Engine>> {
        Ok(Box::new(CpuEngine::new(flow, params, data, adam, threads)?))
    }
}

/// What a run computes with: threads for simulating, planning and scoring, and a device for the flow.
///
/// ```
/// use didyma::training::Machine;
/// let machine = Machine::from(2);
/// assert_eq!(machine.threads, 2);
/// assert!(machine.device.describe().starts_with("CPU ("));
/// ```
#[derive(Clone, Debug)]
pub struct Machine {
    /// Threads of this machine's cores.
    pub threads: usize,
    /// Where flows are trained and evaluated.
    pub device: Arc<dyn Device>,
    /// Runs that share it with this one, itself among them.
    pub shared: usize,
}

impl From<usize> for Machine {
    /// That many threads, and the CPU.
    fn from(threads: usize) -> Self {
        Self::new(threads, Arc::new(Cpu))
    }
}

impl Machine {
    /// So many threads and this device, for one run.
    pub fn new(threads: usize, device: Arc<dyn Device>) -> Self {
        Self { threads, device, shared: 1 }
    }

    /// Of so many trainings, how many to work on at once, 1 at least: what the device takes, shared with other runs.
    pub fn at_once(&self, trainings: usize) -> usize {
        (self.device.runs_at_once(
            trainings.saturating_mul(self.shared),
            self.threads.saturating_mul(self.shared),
        ) / self.shared)
            .clamp(1, trainings.max(1))
    }

    /// What each of so many independent runs gets that go on at once.
    ///
    /// ```
    /// use didyma::training::Machine;
    /// let machine = Machine::from(8);
    /// let at_once = machine.at_once(64);
    /// assert_eq!((at_once, machine.part(at_once).threads), (8, 1));
    /// let at_once = machine.at_once(3);
    /// assert_eq!((at_once, machine.part(at_once).threads), (3, 2));
    /// ```
    pub fn part(&self, runs: usize) -> Self {
        let threads = self.threads.checked_div(runs).unwrap_or(self.threads).max(1);
        Self { threads, device: Arc::clone(&self.device), shared: self.shared * runs.max(1) }
    }
}
