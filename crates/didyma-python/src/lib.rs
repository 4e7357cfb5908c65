//! `didyma._didyma`: what the Python package is made of. Every decision is the library's; here arguments become its
//! types, and its answers arrays and objects.

mod arrays;
mod batches;
mod calibrate;
mod caller;
mod choices;
mod device;
mod diagnostics;
mod errors;
mod executor;
mod figures;
mod folder;
mod function;
mod infer;
mod metrics;
mod misspecification;
mod npe;
mod posterior;
mod prior;
mod question;
mod repeatable;
mod result;
mod runner;
mod tasks;
mod toys;
mod wait;
mod wording;

use pyo3::prelude::*;
use pyo3::types::PyModule;
use std::ffi::OsString;

#[pymodule]
fn _didyma(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    prior::register(module)?;
    module.add_class::<posterior::Posterior>()?;
    module.add_class::<result::Result>()?;
    module.add_class::<figures::Summary>()?;
    module.add_class::<figures::Figure>()?;
    module.add_class::<npe::Npe>()?;
    module.add_class::<tasks::Task>()?;
    module.add_class::<tasks::TaskSimulator>()?;
    module.add_function(wrap_pyfunction!(infer::infer, module)?)?;
    module.add_function(wrap_pyfunction!(infer::resume, module)?)?;
    module.add_function(wrap_pyfunction!(figures::report, module)?)?;
    module.add_function(wrap_pyfunction!(figures::plot, module)?)?;
    module.add_function(wrap_pyfunction!(choices::settings, module)?)?;
    module.add_function(wrap_pyfunction!(choices::methods, module)?)?;
    module.add_function(wrap_pyfunction!(device::devices, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::task, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::task_names, module)?)?;
    module.add_function(wrap_pyfunction!(tasks::load_problem, module)?)?;
    metrics::register(module)?;
    misspecification::register(module)?;
    diagnostics::register(module)?;
    toys::register(module)?;
    module.add_function(wrap_pyfunction!(command_line, module)?)
}

/// Carries out a command of the command line; returns the exit code.
#[pyfunction]
fn command_line(py: Python<'_>, program: Vec<OsString>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| didyma_cli::main(program, arguments))
}
