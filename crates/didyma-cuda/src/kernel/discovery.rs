//! What this machine has: the driver, its run-time compiler, GPUs; or what is missing, in a sentence with a remedy.

#![allow(unsafe_code)]

use super::gpu::advice;
use cudarc::driver::sys::{self, CUresult};
use cudarc::driver::{DriverError, result};
use cudarc::nvrtc::sys as nvrtc;
use didyma::{Advice, Remedy};
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::{Mutex, OnceLock, PoisonError};

/// Why there is no GPU to compute with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Missing(pub Advice);

impl Missing {
    /// Without this there is still the CPU: the remedy after the text.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Advice::new(text, Remedy::Cpu))
    }
}

/// What was found, or not.
pub(crate) type Looked<T> = Result<T, Missing>;

/// CUDA versions of the driver and of the run-time compiler, as (13, 0).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Versions {
    pub driver: (i32, i32),
    pub compiler: (i32, i32),
}

/// Below this, functions that are needed are missing.
const OLDEST: (i32, i32) = (12, 8);

/// Whether there is a driver at all.
pub(crate) fn has_driver() -> bool {
    // SAFETY: it only tries to open the library.
    unsafe { sys::is_culib_present() }
}

/// The driver and its compiler, if they work together; looked at once.
pub(crate) fn versions() -> Looked<Versions> {
    static FOUND: OnceLock<Looked<Versions>> = OnceLock::new();
    FOUND.get_or_init(look_at_versions).clone()
}

fn look_at_versions() -> Looked<Versions> {
    let driver = guarded(driver_version)?;
    if driver < OLDEST {
        return Err(Missing::new(format!(
            "the NVIDIA driver is for CUDA {}.{}, but {}.{} is needed: update the driver, or",
            driver.0, driver.1, OLDEST.0, OLDEST.1
        )));
    }
    let compiler = guarded(compiler_version)?;
    if driver < compiler {
        return Err(Missing::new(format!(
            "the NVIDIA driver is for CUDA {}.{}, the run-time compiler of CUDA {}.{}: update the driver, let \
             LD_LIBRARY_PATH name an older libnvrtc, or",
            driver.0, driver.1, compiler.0, compiler.1
        )));
    }
    Ok(Versions { driver, compiler })
}

fn driver_version() -> Looked<(i32, i32)> {
    if !has_driver() {
        return Err(Missing::new("no NVIDIA driver was found (libcuda): install it, or"));
    }
    let mut version = 0;
    // SAFETY: the library is there, and the pointer is that of a number.
    match unsafe { sys::cuDriverGetVersion(&mut version) } {
        CUresult::CUDA_SUCCESS => Ok((version / 1000, version % 1000 / 10)),
        other => Err(start_fault(DriverError(other))),
    }
}

pub(super) fn compiler_version() -> Looked<(i32, i32)> {
    // SAFETY: it only tries to open the library.
    if !unsafe { nvrtc::is_culib_present() } {
        return Err(Missing::new(
            "NVIDIA's run-time compiler was not found (libnvrtc, of the CUDA toolkit; `pip install \
             nvidia-cuda-nvrtc` has it, too): let LD_LIBRARY_PATH name its folder, or",
        ));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and the pointers are those of numbers.
    match unsafe { nvrtc::nvrtcVersion(&mut major, &mut minor) } {
        nvrtc::nvrtcResult::NVRTC_SUCCESS => Ok((major, minor)),
        other => Err(Missing::new(format!(
            "NVIDIA's run-time compiler does not answer ({other:?}): install it again, or"
        ))),
    }
}

/// GPUs that the driver knows.
pub(crate) fn count() -> Looked<usize> {
    let look = || {
        result::init().map_err(start_fault)?;
        result::device::get_count().map(|count| count as usize).map_err(start_fault)
    };
    match guarded(look)? {
        0 => Err(no_gpu()),
        some => Ok(some),
    }
}

/// What its maker calls a GPU, which needs no memory of it.
pub(crate) fn name(number: usize) -> Looked<String> {
    let look = || {
        result::device::get_name(result::device::get(number as i32).map_err(start_fault)?)
            .map_err(start_fault)
    };
    guarded(look)
}

pub(crate) fn no_gpu() -> Missing {
    let why = "the NVIDIA driver knows of no GPU: is CUDA_VISIBLE_DEVICES set? Or";
    Missing::new(why)
}

/// The driver's answers before anything was begun.
pub(crate) fn start_fault(error: DriverError) -> Missing {
    match error.0 {
        CUresult::CUDA_ERROR_NO_DEVICE => no_gpu(),
        CUresult::CUDA_ERROR_OUT_OF_MEMORY => Missing(advice(error).after("the GPU is ")),
        other => Missing::new(format!(
            "the NVIDIA driver says {other:?}: does `nvidia-smi` work? Restart the machine or install the driver again, or"
        )),
    }
}

/// Looks without a panic: the bindings panic where a library lacks a function.
pub(crate) fn guarded<T>(look: impl FnOnce() -> Looked<T>) -> Looked<T> {
    // The hook is the whole process's: two at once could leave the silent one behind.
    static ONE: Mutex<()> = Mutex::new(());
    let _alone = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let hook = take_hook();
    set_hook(Box::new(|_| {}));
    let found = catch_unwind(AssertUnwindSafe(look));
    set_hook(hook);
    found.unwrap_or_else(|_| {
        let why = "the NVIDIA driver or its run-time compiler lacks a function that is needed: update the driver, or";
        Err(Missing::new(why))
    })
}
