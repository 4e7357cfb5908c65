//! A GPU as the library sees it.

use crate::engine::CudaEngine;
use crate::evaluator::CudaEvaluator;
use crate::kernel::{self, Backend, Gpu, Missing};
use crate::programs::Programs;
use crate::resident::tiling;
use crate::shape::Shape;
use didyma::estimator::Plan;
use didyma::training::{AdamConfig, Device, Engine, Evaluator};
use didyma::{Advice, Dataset, Result, Rows, SplineFlow};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Why no GPU can be used: a sentence with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unavailable(pub Advice);

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl std::error::Error for Unavailable {}

impl From<Missing> for Unavailable {
    fn from(Missing(why): Missing) -> Self {
        Self(why)
    }
}

/// A GPU.
#[derive(Debug)]
pub struct Cuda {
    backend: Arc<dyn Backend>,
    programs: Arc<Programs>,
    /// Flows whose parameters are on the device and that nobody uses at the moment.
    idle: Mutex<Vec<CudaEvaluator>>,
}

/// Runs that are trained at once: more of them bring next to nothing, and each needs memory of the device.
const TOGETHER: usize = 16;
/// Evaluators that are kept for later, each some megabytes of the device.
const IDLE: usize = 64;

impl Cuda {
    /// The first GPU that the driver shows; CUDA_VISIBLE_DEVICES chooses among several.
    pub fn open() -> std::result::Result<Self, Unavailable> {
        Ok(Self::on(Arc::new(Gpu::new(0)?)))
    }

    /// The kernels on the CPU, none where there is no C++ compiler: the same arithmetic, for tests.
    #[cfg(feature = "emulator")]
    pub fn emulated() -> Option<Self> {
        kernel::Emulator::new().map(|emulator| Self::on(Arc::new(emulator)))
    }

    /// Where the time of a step goes, over these plans.
    pub fn profile(
        &self,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        plans: &[Plan],
    ) -> Result<Profile> {
        let adam = AdamConfig::default();
        let mut engine = CudaEngine::new(&self.backend, &self.programs, flow, params, data, adam)?;
        let mut kernels: Vec<(&'static str, f64)> = Vec::new();
        // The first step of an engine compiles and makes room.
        plans.iter().take(1).try_for_each(|plan| engine.time_step(plan).map(drop))?;
        for plan in plans {
            let times = engine.time_step(plan)?;
            kernels.resize(times.len(), ("", 0.0));
            for (sum, (name, seconds)) in kernels.iter_mut().zip(times) {
                *sum = (name, sum.1 + seconds / plans.len() as f64);
            }
        }
        Ok(Profile { kernels, bytes: engine.bytes(), peak_flops: engine.peak_flops()? })
    }

    /// Refuses a flow that is too large for the device.
    pub fn check(&self, flow: &SplineFlow) -> Result<()> {
        tiling(&*self.backend, &Shape::new(flow), 1).map(drop)
    }

    fn on(backend: Arc<dyn Backend>) -> Self {
        Self { backend, programs: Arc::default(), idle: Mutex::default() }
    }

    /// Lets a flow with these parameters work, one that was used before if there is any.
    fn with<T>(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        work: impl FnOnce(&mut CudaEvaluator) -> Result<T>,
    ) -> Result<T> {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let found = {
            let mut idle = idle();
            let same = idle.iter().position(|e| e.is_of(flow) && e.has_params(params));
            same.or_else(|| idle.iter().position(|e| e.is_of(flow))).map(|i| idle.swap_remove(i))
        };
        let mut evaluator = match found {
            Some(evaluator) => evaluator,
            None => CudaEvaluator::new(&self.backend, &self.programs, flow, params)?,
        };
        if !evaluator.has_params(params) {
            evaluator.set_params(params)?;
        }
        let result = work(&mut evaluator)?;
        let mut idle = idle();
        if idle.len() == IDLE {
            idle.remove(0);
        }
        idle.push(evaluator);
        Ok(result)
    }
}

impl Device for Cuda {
    fn describe(&self) -> String {
        self.backend.name()
    }

    /// One run alone does not fill a GPU, but some do.
    fn runs_at_once(&self, runs: usize, _threads: usize) -> usize {
        runs.min(TOGETHER)
    }

    fn engine(
        &self,
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        adam: AdamConfig,
        _threads: usize,
    ) -> Result<Box<dyn Engine>> {
        let engine = CudaEngine::new(&self.backend, &self.programs, flow, params, data, adam)?;
        Ok(Box::new(engine))
    }
}

impl Evaluator for Cuda {
    fn log_density(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        self.with(flow, params, |evaluator| evaluator.log_density(theta, x))
    }

    fn transport(
        &self,
        flow: &SplineFlow,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        self.with(flow, params, |evaluator| evaluator.transport(x, base))
    }
}

/// Where the time of a training step goes.
#[derive(Clone, Debug, PartialEq)]
pub struct Profile {
    /// Mean seconds of each kernel, in their order.
    pub kernels: Vec<(&'static str, f64)>,
    /// Bytes of the device that the engine holds.
    pub bytes: usize,
    /// Floating-point operations a second of multiply-adds in registers.
    pub peak_flops: f64,
}

/// Whether there is an NVIDIA driver at all.
pub(crate) fn has_driver() -> bool {
    kernel::has_driver()
}

/// A GPU of this machine.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Found {
    /// As its maker calls it.
    pub name: String,
    /// CUDA version of the driver, as (13, 0).
    pub driver: (i32, i32),
    /// Version of the run-time compiler.
    pub compiler: (i32, i32),
    /// What it can do, or why it cannot be used.
    pub state: std::result::Result<Powers, Unavailable>,
}

/// What a GPU can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Powers {
    /// Multiprocessors.
    pub multiprocessors: usize,
    /// Compute capability.
    pub capability: (i32, i32),
    /// Bytes of memory, free and in all.
    pub memory: (usize, usize),
}

/// The GPUs of this machine, each of them opened once to see whether it works.
pub(crate) fn devices() -> std::result::Result<Vec<Found>, Unavailable> {
    let kernel::Versions { driver, compiler } = kernel::versions()?;
    let found = |number| {
        let powers = |gpu: Gpu| Powers {
            multiprocessors: gpu.multiprocessors(),
            capability: gpu.capability(),
            memory: gpu.memory(),
        };
        let state = Gpu::new(number).map(powers).map_err(Into::into);
        Ok(Found { name: kernel::name(number)?, driver, compiler, state })
    };
    (0..kernel::count()?).map(found).collect()
}
