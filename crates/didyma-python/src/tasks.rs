//! Built-in tasks, and problems of files.

use crate::arrays::{count, matrix, rows};
use crate::choices::seed_or_new;
use crate::errors::{Kind, python};
use crate::prior::{Prior, Reduced};
use crate::wait::wait;
use didyma::problem_file::{FileSettings, ProblemFile};
use didyma::rng::{Purpose, Streams};
use didyma::tasks::{Density, Task as Known};
use didyma::{ProblemRecord, Rows, parallel, simulator};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;

/// An inference problem: prior, simulator, observation, and what is known of its posterior.
///
/// `didyma.tasks` has the built-in ones, `didyma.load_problem` reads those of TOML files. `didyma.infer(task)` solves it.
#[pyclass(frozen, module = "didyma", from_py_object)]
#[derive(Clone)]
pub struct Task {
    pub known: Arc<Known>,
    /// Of a file: what it says, and where it is.
    pub file: Option<Arc<(ProblemRecord, FileSettings, PathBuf)>>,
}

/// The simulator of a task: called with theta of shape (n, dim) it gives x; given to `infer`, it runs on all cores.
#[pyclass(frozen, module = "didyma.tasks", from_py_object)]
#[derive(Clone)]
pub struct TaskSimulator {
    pub task: Task,
}

/// The built-in task of a name, as "two-moons" or "two_moons".
#[pyfunction]
pub fn task(name: &str) -> PyResult<Task> {
    let known = Known::named(&name.replace('_', "-")).ok_or_else(|| {
        let all = Known::NAMES.join(", ");
        Kind::Input.error(format!("there is no task {name:?}: there are {all}"))
    })?;
    Ok(Task { known: Arc::new(known), file: None })
}

/// Names of the built-in tasks.
#[pyfunction]
pub fn task_names() -> Vec<&'static str> {
    Known::NAMES.to_vec()
}

/// Reads a problem file: parameters, observation and a simulator in any language (docs/problems.md).
#[pyfunction]
pub fn load_problem(path: PathBuf) -> PyResult<Task> {
    let ProblemFile { problem, settings, .. } = ProblemFile::read(&path).map_err(python)?;
    let known = Arc::new(problem.task().map_err(python)?);
    Ok(Task { known, file: Some(Arc::new((problem, settings, path))) })
}

#[pymethods]
impl Task {
    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.known.name
    }

    /// What it is, in a line.
    #[getter]
    fn about(&self) -> &str {
        &self.known.about
    }

    /// The prior.
    #[getter]
    fn prior(&self) -> Prior {
        Prior(self.known.problem.prior().clone())
    }

    /// The simulator.
    #[getter]
    fn simulator(&self) -> TaskSimulator {
        TaskSimulator { task: self.clone() }
    }

    /// The observation.
    #[getter]
    fn x_o<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.known.problem.observation())
    }

    /// The parameters that the observation comes from, if they are known.
    #[getter]
    fn truth<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyArray1<f64>>> {
        self.known.truth.as_ref().map(|truth| PyArray1::from_slice(py, truth))
    }

    /// Names of the summaries.
    #[getter]
    fn summaries(&self) -> Vec<String> {
        self.known.summaries.clone()
    }

    /// Samples of the true posterior at the observation, where it is known.
    #[pyo3(signature = (sample_shape, *, seed=None))]
    fn reference<'py>(
        &self,
        py: Python<'py>,
        sample_shape: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (count, known) = (count("sample_shape", sample_shape)?, Arc::clone(&self.known));
        let streams = Streams::new(seed_or_new(seed)?);
        let theta = wait(py, move || known.reference(count, &streams, parallel::cores()))?;
        matrix(py, theta, self.known.problem.prior().dim())
    }

    /// The true posterior's log-density at each row of theta, where it is known; up to a constant where `normalised` is
    /// false.
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let dim = self.known.problem.prior().dim();
        let theta = rows("theta", theta, dim, "a column for each parameter of the task")?;
        let (Density::Normalised(law) | Density::Unnormalised(law)) = self.known.density else {
            let name = &self.known.name;
            return Err(
                Kind::Input.error(format!("the density of {name}'s posterior is not known"))
            );
        };
        let found =
            theta.chunks_exact(dim).map(|theta| law(self.known.problem.observation(), theta));
        Ok(PyArray1::from_iter(py, found))
    }

    /// Whether `log_prob` is normalised.
    #[getter]
    fn normalised(&self) -> bool {
        matches!(self.known.density, Density::Normalised(_))
    }

    fn __repr__(&self) -> String {
        format!("Task {}: {}", self.known.name, self.known.about)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let module = py.import("didyma._didyma")?;
        match &self.file {
            None => Ok((module.getattr("task")?, PyTuple::new(py, [&self.known.name])?)),
            Some(file) => Ok((module.getattr("load_problem")?, PyTuple::new(py, [&file.2])?)),
        }
    }
}

#[pymethods]
impl TaskSimulator {
    /// Summaries of each row of theta, as a float64 array of shape (n, number of summaries); NaN where a simulation failed.
    #[pyo3(signature = (theta, *, seed=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let known = Arc::clone(&self.task.known);
        let (dim, x_dim) = (known.problem.prior().dim(), known.problem.simulator().x_dim());
        let theta = rows("theta", theta, dim, "a column for each parameter of the task")?;
        let streams = Streams::new(seed_or_new(seed)?).simulations(Purpose::Simulation, 0);
        let found = wait(py, move || {
            let theta = Rows::new("theta", &theta, dim)?;
            let go_on = &mut |_: simulator::Progress| ControlFlow::Continue(());
            simulator::simulate(
                known.problem.simulator(),
                theta,
                &streams,
                0,
                parallel::cores(),
                go_on,
            )
        })?;
        matrix(py, found.x, x_dim)
    }

    fn __repr__(&self) -> String {
        format!("simulator of {}", self.task.known.name)
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Task,))> {
        Ok((py.get_type::<Self>().getattr("_of_task")?, (self.task.clone(),)))
    }

    #[staticmethod]
    fn _of_task(task: Task) -> Self {
        Self { task }
    }
}
