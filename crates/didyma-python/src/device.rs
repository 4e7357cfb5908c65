//! Where flows are trained and evaluated.

use crate::choices::named;
use crate::errors::Kind;
use crate::runner::threads;
use crate::toys::dict;
use crate::wait::wait;
use crate::wording::{sentence, word};
use didyma::config::Config;
use didyma::training::Machine;
use didyma_cuda::DeviceChoice;
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CString;

/// What a call says of the machine.
#[derive(Clone, Copy)]
pub struct MachineChoice {
    threads: usize,
    device: DeviceChoice,
}

impl MachineChoice {
    pub fn new(threads: Option<&Bound<'_, PyAny>>, device: &str) -> PyResult<Self> {
        Ok(Self { threads: self::threads(threads)?, device: named("device", device)? })
    }

    /// What a run with these settings computes with. A GPU is opened, which takes a while.
    pub fn machine(
        self,
        py: Python<'_>,
        config: &Config,
        dims: (usize, usize),
    ) -> PyResult<Machine> {
        let config = config.clone();
        let (machine, note) = wait(py, move || {
            let mut note = None;
            let keep = |text: &str| note = Some(text.to_owned());
            let machine = self.device.machine(&config, dims, self.threads, &word, keep);
            Ok((machine, note))
        })?;
        if let Some(note) = note {
            // Also of a run that shows nothing: it takes longer than its user thinks.
            let text = CString::new(note)?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        machine.map_err(|error| Kind::Input.error(sentence(&error)))
    }
}

/// What flows can be trained on here: the CPU, and GPUs, or why none can be used.
///
/// Returns a dict with "cpu", "cuda" (a list with a dict for each GPU) and "cuda_unavailable" (a sentence, or None): the JSON
/// of `didyma devices`.
#[pyfunction]
pub fn devices(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    dict(py, &wait(py, || Ok(didyma_cuda::devices(&word)))?)
}
