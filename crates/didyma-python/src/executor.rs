//! A `concurrent.futures.Executor`: tasks in, answers out, and another one where it broke.

use crate::arrays::type_name;
use crate::errors::Kind;
use crate::function::{Answer, Function, Rows};
use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};
use std::ops::{ControlFlow, Range};

/// Seconds to wait for an answer before signals and progress are looked at.
const POLL: f64 = 0.1;
/// Seconds after which a worker gives back what it has.
const PATIENCE: f64 = 1.0;
/// Workers of an executor that does not tell how many it has.
const UNKNOWN: usize = 32;

/// What a pool says that breaks before anything is done.
const AT_ONCE: &str = "the executor broke at the first call: its workers could not start, or the simulator ended its process. A \
                       script that starts processes needs `if __name__ == \"__main__\":`, and a function must be defined before \
                       the pool that runs it";

/// An executor, and how to replace it.
pub struct Pool {
    executor: Py<PyAny>,
    /// Makes executors, if a function was given.
    maker: Option<Py<PyAny>>,
    queue: Py<PyAny>,
    next_token: u64,
    /// How often it was replaced.
    pub generation: u64,
    /// Whether it was told that there are no workers.
    lonely: bool,
}

/// Is asked between batches whether to go on.
pub type Between<'a> = &'a mut dyn FnMut(Python<'_>) -> PyResult<ControlFlow<()>>;

impl Pool {
    /// Of an executor, or of a function that makes one.
    pub fn new(given: &Bound<'_, PyAny>) -> PyResult<Self> {
        let py = given.py();
        // A class makes executors, too.
        let class = given.is_instance_of::<PyType>();
        let maker = class || given.is_callable() && !given.hasattr("submit")?;
        let executor = if maker { given.call0()? } else { given.clone() };
        if !executor.hasattr("submit")? {
            let found = type_name(&executor);
            return Err(Kind::Executor.error(format!(
                "executor is of type {found}, which has no submit: give a concurrent.futures.Executor, as \
                 client.get_executor() of Dask, or a function that makes one"
            )));
        }
        let queue = py.import("queue")?.call_method0("SimpleQueue")?;
        let (executor, queue) = (executor.unbind(), queue.unbind());
        Ok(Self {
            executor,
            maker: maker.then(|| given.clone().unbind()),
            queue,
            next_token: 0,
            generation: 0,
            lonely: false,
        })
    }

    /// One call, waited for; or why its worker was lost.
    pub fn call(
        &mut self,
        py: Python<'_>,
        function: &Function,
        rows: &Rows,
    ) -> PyResult<Result<Answer, String>> {
        let count = rows.seeds.len();
        let (token, future) = self.submit(py, function, rows, 0..count, false)?;
        loop {
            match self.take(py) {
                Ok(Some((found, Ok(answer)))) if found == token => return Ok(Ok(answer)),
                Ok(Some((found, Err(error)))) if found == token && is_broken(py, &error)? => {
                    let why = format!("its worker was lost: {error}");
                    return match self.maker.is_some() {
                        true => self.replace(py, error).map(|()| Err(why)),
                        false => Err(Kind::Executor.from(error, AT_ONCE)),
                    };
                }
                Ok(Some((found, Err(error)))) if found == token => {
                    return Err(Kind::Executor.from(
                        error,
                        "the executor could not run the simulator: a lambda or a function in a function cannot be pickled, so define \
                         it by def at the top of a module; workers must be able to import that module (Dask: client.upload_file), \
                         or to receive the function itself (loky; Dask, if the script that runs defines it), and didyma must be \
                         installed there",
                    ));
                }
                Ok(_) => {}
                Err(error) => {
                    future.call_method0(py, "cancel")?;
                    return Err(error);
                }
            }
        }
    }

    /// How many tasks it runs at once.
    pub fn workers(&mut self, py: Python<'_>) -> PyResult<usize> {
        let found = py.import("didyma._worker")?.call_method1("workers", (&self.executor,))?;
        let found = found.extract::<Option<usize>>()?.unwrap_or(UNKNOWN);
        if found == 0 && !self.lonely {
            self.lonely = true;
            let words = c"the executor has no workers at the moment: the simulations wait for some";
            PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), words, 1)?;
        }
        Ok(found.max(1))
    }

    /// Hands a part of the rows over.
    pub fn submit(
        &mut self,
        py: Python<'_>,
        function: &Function,
        rows: &Rows,
        part: Range<usize>,
        alone: bool,
    ) -> PyResult<(u64, Py<PyAny>)> {
        self.next_token += 1;
        let token = self.next_token;
        let arguments = function.arguments(py, rows, part, alone, PATIENCE)?;
        let worker = py.import("didyma._worker")?;
        let submit = |pool: &Self| {
            worker.call_method1("submit", (&pool.executor, &pool.queue, token, &arguments))
        };
        let future = match submit(self) {
            Err(error) if is_broken(py, &error)? => {
                self.replace(py, error)?;
                submit(self)
            }
            other => other,
        };
        let future = future.map_err(|cause| {
            let text =
                format!("the executor takes no work ({cause}): it may be closed; give an open one");
            Kind::Executor.from(cause, text)
        })?;
        Ok((token, future.unbind()))
    }

    /// A new executor for one that broke.
    pub fn replace(&mut self, py: Python<'_>, cause: PyErr) -> PyResult<()> {
        let Some(maker) = &self.maker else {
            return Err(Kind::Executor.from(
                cause,
                "the executor broke, as one of its workers was lost, and cannot be used again: take a new one, or give executor a \
                 function that makes one (executor=lambda: ProcessPoolExecutor(4)), so that it can be replaced",
            ));
        };
        let next = maker.call0(py)?;
        self.close(py);
        self.executor = next;
        self.generation += 1;
        Ok(())
    }

    /// Closes one that was made here.
    fn close(&self, py: Python<'_>) {
        let options = PyDict::new(py);
        // One that is broken may not even close.
        let _ = options
            .set_item("wait", false)
            .and_then(|()| self.executor.call_method(py, "shutdown", (), Some(&options)));
    }

    /// The next call that is done, if one is soon.
    #[allow(clippy::type_complexity)]
    pub fn take(&self, py: Python<'_>) -> PyResult<Option<(u64, Result<Answer, PyErr>)>> {
        let found = py.import("didyma._worker")?.call_method1("take", (&self.queue, POLL))?;
        if found.is_none() {
            return Ok(None);
        }
        let (token, answer, error): (u64, Bound<'_, PyAny>, Bound<'_, PyAny>) = found.extract()?;
        match error.is_none() {
            true => Ok(Some((token, Ok(Answer::of(&answer)?)))),
            false => Ok(Some((token, Err(PyErr::from_value(error))))),
        }
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if self.maker.is_some() {
            Python::attach(|py| self.close(py));
        }
    }
}

/// Whether an error means that the executor itself is lost.
pub fn is_broken(py: Python<'_>, error: &PyErr) -> PyResult<bool> {
    py.import("didyma._worker")?.call_method1("is_broken", (error.value(py),))?.extract()
}
