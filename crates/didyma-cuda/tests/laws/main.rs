//! The library's laws of devices, on a GPU and on an emulated one; skipped, by name, where there is none.

#![allow(clippy::unwrap_used)]

#[path = "../../../didyma/tests/numbers/laws/mod.rs"]
mod laws;

use didyma_cuda::Cuda;
use std::sync::{Arc, LazyLock};

mod cuda {
    crate::laws::test!(crate::cuda_device);
}

fn cuda_device() -> &'static laws::Found {
    static GPU: LazyLock<laws::Found> = LazyLock::new(|| match Cuda::open() {
        Ok(gpu) => Ok(Arc::new(gpu)),
        Err(why) => Err(why.to_string()),
    });
    &GPU
}

#[cfg(feature = "emulator")]
mod emulated {
    crate::laws::test!(crate::emulated_device);
}

#[cfg(feature = "emulator")]
fn emulated_device() -> &'static laws::Found {
    static EMULATED: LazyLock<laws::Found> = LazyLock::new(|| match Cuda::emulated() {
        Some(device) => Ok(Arc::new(device)),
        None => Err("there is no C++ compiler (c++)".to_owned()),
    });
    &EMULATED
}
