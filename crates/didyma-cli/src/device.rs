//! Which device a run computes on: the one place that knows all of them, for the command line and for Python.

use crate::args::{DeviceArgs, DeviceChoice};
use crate::tell;
use anyhow::anyhow;
use didyma::config::{Config, DensityKind};
use didyma::device::{Cpu, Device, Machine};
use didyma::parallel;
use didyma_cuda::{Cuda, Found, Powers};
use serde::Serialize;
use std::fmt;
use std::sync::Arc;

/// A device that was opened, with what only it can tell.
pub enum Opened {
    Cpu,
    Cuda(Arc<Cuda>),
}

impl Opened {
    pub fn machine(&self, threads: usize) -> Machine {
        let device: Arc<dyn Device> = match self {
            Self::Cpu => Arc::new(Cpu),
            Self::Cuda(cuda) => cuda.clone(),
        };
        Machine { threads, device }
    }
}

impl DeviceChoice {
    /// Opens it. Without a choice, a GPU that cannot be used is no error; but one that is there and cannot be used is
    /// worth a note.
    fn open(self, note: impl FnOnce(&str)) -> anyhow::Result<Opened> {
        match self {
            Self::Cpu => Ok(Opened::Cpu),
            Self::Cuda => {
                let cuda = Cuda::open().map_err(|why| anyhow!("--device is cuda, but {why}"))?;
                Ok(Opened::Cuda(Arc::new(cuda)))
            }
            Self::Auto if !didyma_cuda::has_driver() => Ok(Opened::Cpu),
            Self::Auto => match Cuda::open() {
                Ok(cuda) => Ok(Opened::Cuda(Arc::new(cuda))),
                Err(why) => {
                    note(&format!("on the CPU, as {why}"));
                    Ok(Opened::Cpu)
                }
            },
        }
    }

    /// What a run with these settings computes with. `note` is told of a GPU that is there and cannot be used. The
    /// sentences are the command line's, as the library's are.
    pub fn machine(
        self,
        config: &Config,
        threads: usize,
        note: impl FnOnce(&str),
    ) -> anyhow::Result<Machine> {
        let score = config.density == DensityKind::Score;
        match self {
            Self::Cuda if score => Err(anyhow!(
                "--device is cuda, but snse learns a score, which is trained on the CPU only: choose --device cpu, or another \
                 --method"
            )),
            _ if score => Ok(threads.into()),
            _ => Ok(self.open(note)?.machine(threads)),
        }
    }
}

impl DeviceArgs {
    /// Opens the device that was chosen.
    pub fn open(&self) -> anyhow::Result<Opened> {
        self.device.open(tell_note)
    }

    /// What a run with these settings computes with.
    pub fn machine(&self, config: &Config, threads: usize) -> anyhow::Result<Machine> {
        self.device.machine(config, threads, tell_note)
    }
}

fn tell_note(text: &str) {
    tell(&format!("note: {text}"));
}

/// What flows can be trained on here; its field names are the JSON keys.
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
    memory_gb: f64,
    free_gb: f64,
}

fn version((major, minor): (i32, i32)) -> String {
    format!("{major}.{minor}")
}

impl From<Found> for CudaDevice {
    fn from(found: Found) -> Self {
        let gb = |bytes: usize| bytes as f64 / f64::from(1 << 30);
        let powers = |powers: &Powers| CudaPowers {
            multiprocessors: powers.multiprocessors,
            compute_capability: version(powers.capability),
            memory_gb: gb(powers.memory.1),
            free_gb: gb(powers.memory.0),
        };
        Self {
            name: found.name,
            driver: version(found.driver),
            compiler: version(found.compiler),
            powers: found.state.as_ref().ok().map(powers),
            problem: found.state.err().map(|why| why.to_string()),
        }
    }
}

/// Looks at everything that could be used.
pub fn devices() -> Devices {
    let found = didyma_cuda::devices();
    let cuda_unavailable = found.as_ref().err().map(ToString::to_string);
    let cuda = found.unwrap_or_default().into_iter().map(Into::into).collect();
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
                let CudaPowers { multiprocessors, compute_capability, memory_gb, free_gb } = powers;
                write!(
                    f,
                    ", {multiprocessors} multiprocessors, compute capability {compute_capability}, {free_gb:.0} of \
                     {memory_gb:.0} GB free; driver for CUDA {}, compiler {}",
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
