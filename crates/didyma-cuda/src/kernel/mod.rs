//! The only module that touches the driver, and the only one with unsafe code: memory, copies and launches behind
//! [`Queue`], a safe and small interface.

mod compiler;
mod discovery;
#[cfg(feature = "emulator")]
mod emulator;
mod gpu;
mod stream;

pub(crate) use discovery::{Missing, Versions, count, has_driver, name, versions};
#[cfg(feature = "emulator")]
pub(crate) use emulator::Emulator;
pub(crate) use gpu::Gpu;

use crate::shape::{Shape, Tiling};
use didyma::{Advice, Error, Result};
use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

/// The kernels, in the order in which they are read.
const SOURCES: [&str; 13] = [
    include_str!("cuda/prelude.cu"),
    include_str!("cuda/product.cu"),
    include_str!("cuda/spline.cu"),
    include_str!("cuda/tile.cu"),
    include_str!("cuda/conditioner.cu"),
    include_str!("cuda/forward.cu"),
    include_str!("cuda/backward_tile.cu"),
    include_str!("cuda/gradients.cu"),
    include_str!("cuda/backward.cu"),
    include_str!("cuda/prepare.cu"),
    include_str!("cuda/reduce.cu"),
    include_str!("cuda/optimiser.cu"),
    include_str!("cuda/peak.cu"),
];

/// All that is compiled for a flow and a tile.
pub(crate) fn source(shape: &Shape, tiling: Tiling) -> String {
    let header = shape.header(tiling);
    std::iter::once(header.as_str()).chain(SOURCES).collect()
}

/// The kernels that can be launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kernel {
    Prepare,
    ForwardWithTape,
    Forward,
    Inverse,
    Reduce,
    Backward,
    SumGradients,
    TotalLoss,
    Adam,
    PublishAll,
    Peak,
}

impl Kernel {
    pub const ALL: [(Self, &'static str); 11] = [
        (Self::Prepare, "prepare"),
        (Self::ForwardWithTape, "forward_with_tape"),
        (Self::Forward, "forward"),
        (Self::Inverse, "inverse"),
        (Self::Reduce, "reduce"),
        (Self::Backward, "backward"),
        (Self::SumGradients, "sum_gradients"),
        (Self::TotalLoss, "total_loss"),
        (Self::Adam, "adam"),
        (Self::PublishAll, "publish_all"),
        (Self::Peak, "peak"),
    ];

    pub fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// One kernel on so many blocks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch {
    pub kernel: Kernel,
    pub blocks: usize,
    pub threads: usize,
    /// Bytes.
    pub shared: usize,
}

/// The argument of every kernel: addresses of device memory, as `struct Job` of the kernels has them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Job {
    pub theta: u64,
    pub x: u64,
    pub log_prior: u64,
    pub plan: u64,
    pub params: u64,
    pub first_moments: u64,
    pub second_moments: u64,
    pub forward_image: u64,
    pub backward_image: u64,
    pub context_image: u64,
    pub places: u64,
    pub contexts: u64,
    pub row_group: u64,
    pub tape: u64,
    pub log_q: u64,
    pub z: u64,
    pub weights: u64,
    pub d_log_q: u64,
    pub group_losses: u64,
    pub gradients: u64,
    pub gradient: u64,
    pub norms: u64,
    pub state: u64,
    pub log_constant: f64,
}

/// A piece of device memory, freed with this value.
#[derive(Debug)]
pub(crate) struct Memory {
    pub address: u64,
    pub bytes: usize,
    _owner: Box<dyn Any + Send + Sync>,
}

/// Kernels that were compiled for a shape.
pub(crate) trait Program: Debug + Send + Sync {
    /// For the queue that made it.
    fn as_any(&self) -> &dyn Any;
}

/// Launches that were recorded, to be repeated at once.
pub(crate) trait Recording: Debug + Send {
    /// Repeats them, after everything that was asked for before.
    fn replay(&self) -> Result<()>;
}

/// A device's work in order: what is asked for first is done first, and nobody waits but `read`.
pub(crate) trait Queue: Debug + Send + Sync {
    /// Memory that holds zeros.
    fn allocate(&self, bytes: usize) -> Result<Memory>;

    /// Copies numbers to the start of a piece of memory.
    fn write(&self, to: &Memory, bytes: &[u8]) -> Result<()>;

    /// Lets `fill` write at most `bytes` bytes, of which as many as it returns are copied in the background.
    fn send(
        &self,
        to: &Memory,
        bytes: usize,
        fill: &mut dyn FnMut(&mut [u8]) -> usize,
    ) -> Result<()>;

    /// Waits for everything before, and copies the start of a piece of memory out.
    fn read(&self, from: &Memory, bytes: &mut [u8]) -> Result<()>;

    /// Launches kernels, one after the other.
    fn launch(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<()>;

    /// Launches kernels and waits for them; the seconds that each took.
    fn time(&self, program: &Arc<dyn Program>, launches: &[Launch], job: &Job) -> Result<Vec<f64>>;

    /// Records launches without making them.
    fn record(
        &self,
        program: &Arc<dyn Program>,
        launches: &[Launch],
        job: &Job,
    ) -> Result<Box<dyn Recording>>;
}

/// What queues are opened on.
pub(crate) trait Backend: Debug + Send + Sync {
    /// In a user's words.
    fn name(&self) -> String;

    /// A queue of its own.
    fn queue(&self) -> Result<Box<dyn Queue>>;

    /// Bytes of shared memory that a block can have.
    fn shared_memory(&self) -> usize;

    /// Compiles the kernels, each of them for so many bytes of shared memory at most, beside what it declares itself.
    fn compile(&self, source: &str, shared: &dyn Fn(Kernel) -> usize) -> Result<Arc<dyn Program>>;
}

/// An error of this device that names its remedy.
pub(crate) fn fault(device: &str, fault: impl Into<Advice>) -> Error {
    Error::Device { device: device.to_owned(), fault: fault.into() }
}

/// Numbers as the bytes that they are.
pub(crate) fn bytes_of<T: Plain>(numbers: &[T]) -> &[u8] {
    // SAFETY: a plain type has no padding, and bytes have no alignment.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers))
    }
}

/// As [`bytes_of`], to read into.
pub(crate) fn bytes_of_mut<T: Plain>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every pattern of bits is a value of a plain type.
    #[allow(unsafe_code)]
    unsafe {
        std::slice::from_raw_parts_mut(numbers.as_mut_ptr().cast(), size_of_val(numbers))
    }
}

/// # Safety
/// Only for numbers without padding of which every pattern of bits is a value.
#[allow(unsafe_code)]
pub(crate) unsafe trait Plain: Copy {}
// SAFETY: plain numbers.
#[allow(unsafe_code)]
unsafe impl Plain for f32 {}
// SAFETY: plain numbers.
#[allow(unsafe_code)]
unsafe impl Plain for f64 {}
// SAFETY: plain numbers.
#[allow(unsafe_code)]
unsafe impl Plain for u64 {}
// SAFETY: plain numbers, side by side.
#[allow(unsafe_code)]
unsafe impl Plain for [i32; 2] {}

#[cfg(test)]
mod tests {
    use super::*;
    use didyma::{FlowConfig, SplineFlow};

    /// With the variable set, the sources of the paper's shape are written to that folder, for a look at what a compiler
    /// makes of them (registers, spills).
    const SOURCES_VARIABLE: &str = "DIDYMA_KERNEL_SOURCES";

    #[test]
    fn the_kernels_compile_where_the_compiler_is() {
        let flow = SplineFlow::new(FlowConfig::new(4, 9)).expect("the paper's shape");
        let shape = Shape::new(&flow);
        for tiling in Tiling::ALL {
            let source = source(&shape, tiling);
            if let Some(folder) = std::env::var_os(SOURCES_VARIABLE) {
                let path = std::path::Path::new(&folder).join(format!("rows{}.cu", tiling.rows));
                std::fs::write(path, &source).expect("a folder that can be written to");
            }
            match discovery::compiler_version() {
                Err(Missing(why)) => return eprintln!("skipped: {why}"),
                Ok(_) => compiler::compile(&source, "compute_90").map(drop).expect("they compile"),
            }
        }
    }
}
