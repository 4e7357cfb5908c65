//! How a user's function is run.

use crate::arrays::whole;
use crate::caller::Caller;
use crate::errors::{Kind, python};
use crate::executor::Pool;
use crate::function::Function;
use didyma::parallel;
use didyma::prior::Prior;
use pyo3::prelude::*;

/// How a user's function is run, which does not change what it gives.
pub struct Runner<'a, 'py> {
    pub executor: Option<&'a Bound<'py, PyAny>>,
    pub vectorized: Option<bool>,
    pub batch_size: Option<&'a Bound<'py, PyAny>>,
    pub progress: bool,
    /// How the run began to call it, if it did: 0 for single rows, else rows of a call.
    pub began: Option<usize>,
}

impl Runner<'_, '_> {
    /// Whether the function takes many rows and how many, as far as it is known.
    fn calls(&self) -> PyResult<(Option<bool>, Option<usize>)> {
        let (vectorized, batch) = (self.vectorized, whole("batch_size", self.batch_size)?);
        let Some(began) = self.began else { return Ok((vectorized, batch)) };
        let same = vectorized.is_none_or(|many| many == (began > 0))
            && batch.is_none_or(|batch| began == 0 || batch == began);
        match (same, began) {
            (true, _) => Ok((Some(began > 0), Some(began.max(1)))),
            (false, 0) => Err(Kind::Input.error(
                "vectorized is true, but the run began with calls of single rows, and rows must not depend on it: leave it out",
            )),
            (false, _) => Err(Kind::Input.error(format!(
                "vectorized or batch_size differ from those that the run began with (True, {began}), and rows must not depend on \
                 it: leave them out"
            ))),
        }
    }

    /// Who answers the engine; with a function, after first calls of it.
    pub fn caller(
        &self,
        py: Python<'_>,
        simulator: Option<&Bound<'_, PyAny>>,
        prior: &Prior,
        x_dim: usize,
    ) -> PyResult<Caller> {
        let function = match simulator {
            Some(simulator) => {
                let mut pool = self.executor.map(Pool::new).transpose()?;
                let (vectorized, batch) = self.calls()?;
                let function =
                    Function::probe(simulator, prior, x_dim, vectorized, batch, pool.as_mut())?;
                function.warn_if_unrepeatable(py, prior, pool.as_mut())?;
                Some((function, pool))
            }
            None if self.executor.is_some() => {
                return Err(Kind::Executor.error(
                    "executor is for Python functions, and this simulator runs on all cores by itself: leave it out",
                ));
            }
            None => None,
        };
        let progress = py.import("didyma._progress")?.call_method1("make", (self.progress,))?;
        Ok(Caller { function, progress: progress.unbind() })
    }
}

/// Threads that were asked for, or all cores.
pub fn threads(asked: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let threads = whole("threads", asked)?.unwrap_or_else(parallel::cores);
    parallel::check_threads(threads).map_err(python)?;
    Ok(threads)
}
