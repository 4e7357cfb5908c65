//! One GPU: its limits, its streams, and kernels compiled for it.

#![allow(unsafe_code)]

use super::compiler::{cached, compile};
use super::discovery::{Missing, count, guarded, no_gpu, start_fault, versions};
use super::stream::{Compiled, Stream};
use super::{Backend, Kernel, Program, Queue, fault};
use cudarc::driver::sys::{self, CUdevice_attribute as Attribute, CUresult};
use cudarc::driver::{CudaContext, DriverError};
use didyma::{Advice, Error, Remedy, Result};
use std::sync::Arc;

/// One GPU.
#[derive(Debug)]
pub(crate) struct Gpu {
    context: Arc<CudaContext>,
    name: String,
    capability: (i32, i32),
    shared_memory: usize,
}

impl Gpu {
    /// The GPU of this number.
    pub fn new(number: usize) -> std::result::Result<Self, Missing> {
        versions()?;
        if number >= count()? {
            return Err(no_gpu());
        }
        guarded(|| Self::opened(number))
    }

    fn opened(number: usize) -> std::result::Result<Self, Missing> {
        let context = CudaContext::new(number).map_err(start_fault)?;
        // SAFETY: every queue has a stream and memory of its own, so that no work needs another's events.
        unsafe { context.disable_event_tracking() };
        let capability = context.compute_capability().map_err(start_fault)?;
        let name = context.name().map_err(start_fault)?;
        if capability < (8, 0) {
            return Err(Missing::new(format!(
                "{name} has compute capability {}.{}, but 8.0 is needed:",
                capability.0, capability.1
            )));
        }
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN;
        let shared_memory = context.attribute(attribute).map_err(start_fault)? as usize;
        Ok(Self { context, name, capability, shared_memory })
    }

    /// Multiprocessors.
    pub fn multiprocessors(&self) -> usize {
        let attribute = Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT;
        self.context.attribute(attribute).map_or(0, |count| count as usize)
    }

    /// Compute capability.
    pub fn capability(&self) -> (i32, i32) {
        self.capability
    }

    /// Free and total bytes.
    pub fn memory(&self) -> (usize, usize) {
        self.context.mem_get_info().unwrap_or((0, 0))
    }

    fn error(&self, error: DriverError) -> Error {
        fault(&self.name, advice(error))
    }

    /// What the compiler is to write for.
    fn architecture(&self) -> &'static str {
        match self.capability {
            (8, 0) => "compute_80",
            (8, _) => "compute_86",
            (9, _) => "compute_90",
            (10 | 11, _) => "compute_100",
            _ => "compute_120",
        }
    }
}

/// The driver's answers that a user can do something about.
pub(super) fn advice(error: DriverError) -> Advice {
    match error.0 {
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Advice::new(
            "out of memory: close other programs that use this GPU, make train.batch smaller, train fewer seeds together, or",
            Remedy::Cpu,
        ),
        CUresult::CUDA_ERROR_UNSUPPORTED_PTX_VERSION => Advice::new(
            "its driver is older than NVIDIA's run-time compiler: update the driver, let LD_LIBRARY_PATH name an older \
             libnvrtc, or",
            Remedy::Cpu,
        ),
        other => Advice::new(format!("the driver says {other:?}:"), Remedy::ResumeOnCpu),
    }
}

impl Backend for Gpu {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn queue(&self) -> Result<Box<dyn Queue>> {
        let stream = self.context.new_stream().map_err(|error| self.error(error))?;
        Ok(Box::new(Stream::new(self.name.clone(), stream)))
    }

    fn shared_memory(&self) -> usize {
        self.shared_memory
    }

    fn compile(&self, source: &str, shared: &dyn Fn(Kernel) -> usize) -> Result<Arc<dyn Program>> {
        let (architecture, failed) = (self.architecture(), |error| self.error(error));
        let compile = || {
            compile(source, architecture).map_err(|said| {
                let why = format!("the kernels do not compile here: {said}\nTo do without them,");
                fault(&self.name, Advice::new(why, Remedy::Cpu))
            })
        };
        let load = |ptx| self.context.load_module(ptx).map_err(failed);
        let module = cached(source, architecture, compile, load)?;
        let attribute = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        let functions = Kernel::ALL.iter().map(|&(kernel, name)| {
            let function = module.load_function(name)?;
            // With what a kernel declares itself, the limit would be passed.
            if shared(kernel) > 0 {
                function.set_attribute(attribute, shared(kernel) as i32)?;
            }
            Ok(function)
        });
        let functions =
            functions.collect::<std::result::Result<_, DriverError>>().map_err(failed)?;
        Ok(Arc::new(Compiled { functions }))
    }
}
