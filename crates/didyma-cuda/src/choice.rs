//! The device that a run computes on: the one place that knows all of them, for the command line and for Python.

use crate::device::{self, Cuda, Found, Powers, Unavailable, has_driver};
use didyma::config::Config;
use didyma::training::{Cpu, Device, Machine};
use didyma::{Advice, DensityConfig, Error, Named, Remedy, SplineFlow, Wording, parallel};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// A device, as users name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceChoice {
    /// A GPU if there is one that works, else the CPU.
    Auto,
    /// The cores of this machine.
    Cpu,
    /// A GPU, or an error that says why not.
    Cuda,
}

impl Named for DeviceChoice {
    const ALL: &'static [(&'static str, Self)] =
        &[("auto", Self::Auto), ("cpu", Self::Cpu), ("cuda", Self::Cuda)];
}

/// A device that was opened, with what only it can tell.
#[derive(Debug)]
pub enum OpenDevice {
    /// The cores of this machine.
    Cpu,
    /// A GPU.
    Cuda(Arc<Cuda>),
}

impl OpenDevice {
    /// The device with so many threads of this machine.
    pub fn machine(&self, threads: usize) -> Machine {
        let device: Arc<dyn Device> = match self {
            Self::Cpu => Arc::new(Cpu),
            Self::Cuda(cuda) => cuda.clone(),
        };
        Machine::new(threads, device)
    }
}

impl DeviceChoice {
    /// Opens the device. Without a choice, a GPU that cannot be used is no error; but one that is there and cannot be
    /// used is worth a note.
    pub fn open(self, word: Wording, mut note: impl FnMut(&str)) -> didyma::Result<OpenDevice> {
        match self {
            Self::Cpu => Ok(OpenDevice::Cpu),
            Self::Cuda => {
                let unavailable = |Unavailable(fault)| Error::NoDevice { device: "cuda", fault };
                let cuda = Cuda::open().map_err(unavailable)?;
                Ok(OpenDevice::Cuda(Arc::new(cuda)))
            }
            Self::Auto if !has_driver() => Ok(OpenDevice::Cpu),
            Self::Auto => match Cuda::open() {
                Ok(cuda) => Ok(OpenDevice::Cuda(Arc::new(cuda))),
                Err(Unavailable(why)) => {
                    note(&format!("on the CPU, as {}", why.sentence(word)));
                    Ok(OpenDevice::Cpu)
                }
            },
        }
    }

    /// The machine for a run of this task with these settings. `note` takes a sentence, by a front end's words, about a GPU
    /// that is there and cannot be used.
    pub fn machine(
        self,
        config: &Config,
        (theta_dim, x_dim): (usize, usize),
        threads: usize,
        word: Wording,
        mut note: impl FnMut(&str),
    ) -> didyma::Result<Machine> {
        let shape = match config.shape(theta_dim, x_dim) {
            DensityConfig::Flow(shape) => shape,
            DensityConfig::Score(_) if self == Self::Cuda => {
                let why = "snse learns a score, which is trained on the CPU only:";
                let fault = Advice::new(why, Remedy::CpuOrMethod);
                return Err(Error::NoDevice { device: "cuda", fault });
            }
            DensityConfig::Score(_) => return Ok(threads.into()),
        };
        let opened = self.open(word, &mut note)?;
        let OpenDevice::Cuda(cuda) = &opened else { return Ok(opened.machine(threads)) };
        match cuda.check(&SplineFlow::new(shape)?) {
            Err(why) if self == Self::Auto => {
                let why = why.sentence(word);
                note(&format!("on the CPU, as on the GPU it would be refused: {why}"));
                Ok(threads.into())
            }
            other => other.map(|()| opened.machine(threads)),
        }
    }
}

/// The devices that flows can be trained on here; the field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Devices {
    cpu: CpuDevice,
    cuda: Vec<CudaDevice>,
    /// Why there is none.
    pub cuda_unavailable: Option<String>,
}

#[derive(Debug, Serialize)]
struct CpuDevice {
    cores: usize,
    kernels: String,
}

#[derive(Debug, Serialize)]
struct CudaDevice {
    name: String,
    driver: String,
    compiler: String,
    #[serde(flatten)]
    powers: Option<CudaPowers>,
    /// Why it cannot be used.
    problem: Option<String>,
}

#[derive(Debug, Serialize)]
struct CudaPowers {
    multiprocessors: usize,
    compute_capability: String,
    memory_gib: f64,
    free_gib: f64,
}

fn version((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

impl CudaDevice {
    fn new(found: Found, word: Wording) -> Self {
        let gib = |bytes: usize| bytes as f64 / f64::from(1 << 30);
        let powers = |powers: &Powers| CudaPowers {
            multiprocessors: powers.multiprocessors,
            compute_capability: version(powers.capability),
            memory_gib: gib(powers.memory.1),
            free_gib: gib(powers.memory.0),
        };
        Self {
            name: found.name,
            driver: version(found.driver),
            compiler: version(found.compiler),
            powers: found.state.as_ref().ok().map(powers),
            problem: found.state.err().map(|Unavailable(why)| why.sentence(word)),
        }
    }
}

/// Looks at everything that could be used; a front end's words say what to do about the rest.
pub fn devices(word: Wording) -> Devices {
    let found = device::devices();
    let cuda_unavailable = found.as_ref().err().map(|Unavailable(why)| why.sentence(word));
    let found = found.unwrap_or_default().into_iter();
    let cuda = found.map(|found| CudaDevice::new(found, word)).collect();
    let cpu = CpuDevice { cores: parallel::cores(), kernels: Cpu.describe() };
    Devices { cpu, cuda, cuda_unavailable }
}

impl fmt::Display for Devices {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cores = self.cpu.cores;
        let plural = if cores == 1 { "" } else { "s" };
        write!(f, "cpu    {}, {cores} core{plural}", self.cpu.kernels)?;
        for gpu in &self.cuda {
            write!(f, "\ncuda   {}", gpu.name)?;
            if let Some(powers) = &gpu.powers {
                let CudaPowers { multiprocessors, compute_capability, memory_gib, free_gib } =
                    powers;
                write!(
                    f,
                    ", {multiprocessors} multiprocessors, compute capability {compute_capability}, {free_gib:.0} of \
                     {memory_gib:.0} GiB free; driver for CUDA {}, compiler {}",
                    gpu.driver, gpu.compiler
                )?;
            }
            if let Some(problem) = &gpu.problem {
                write!(f, " cannot be used: {problem}")?;
            }
        }
        match &self.cuda_unavailable {
            Some(why) => write!(f, "\ncuda   none: {why}"),
            None => Ok(()),
        }
    }
}
