//! The posterior: samples and densities.

use crate::arrays::{count, matrix, observation, parameters};
use crate::choices::{named, seed_or_new};
use crate::errors::{Kind, python};
use crate::prior::Prior;
use crate::wait::wait;
use didyma::rng::{Purpose, Streams};
use didyma::run::RunDir;
use didyma::{Points, Posterior as Law, Rows, SampleStreams, parallel};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;

/// The posterior p(theta | x_o), as a trained density q(theta | x) at x = x_o.
///
/// `sample((n,))` draws from it and `log_prob(theta)` is its log-density, normalised over the prior's support. At another
/// observation, `x=`, q is as good as simulations near it were many.
#[pyclass(frozen, module = "didyma", from_py_object)]
#[derive(Clone)]
pub struct Posterior {
    pub law: Arc<Law>,
}

impl From<Law> for Posterior {
    fn from(law: Law) -> Self {
        Self { law: Arc::new(law) }
    }
}

impl Posterior {
    fn x(&self, x: Option<&Bound<'_, PyAny>>) -> PyResult<Vec<f64>> {
        let own = self.law.observation();
        x.map_or_else(|| Ok(own.to_vec()), |x| observation("x", x, Some(own.len())))
    }
}

#[pymethods]
impl Posterior {
    /// Reads a posterior that `save` wrote, or that of the last round of a run's directory.
    #[staticmethod]
    fn load(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        wait(py, move || match path.is_dir() {
            true => RunDir::read(&path)?.posterior(),
            false => Law::load(&path),
        })
        .map(Self::from)
    }

    /// Writes it to one file, whole or not at all.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        self.law.save(&path, &Value::Null).map_err(python)
    }

    /// Where it is computed, in words: that of a run where the run was trained, one that was read or unpickled on the CPU.
    #[getter]
    fn device(&self) -> String {
        self.law.device().describe()
    }

    /// The prior.
    #[getter]
    fn prior(&self) -> Prior {
        Prior(self.law.prior().clone())
    }

    /// The observation.
    #[getter]
    fn x_o<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<f64>> {
        PyArray1::from_slice(py, self.law.observation())
    }

    /// Names of the parameters.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.law.prior().names().map(str::to_owned).collect()
    }

    /// Number of parameters.
    #[getter]
    fn dim(&self) -> usize {
        self.law.dim()
    }

    /// Draws, as a float64 array of shape (n, dim), all inside the prior's support. Without a seed, others each time.
    /// points="sobol" spreads them more evenly than independent draws ("random"): means over 2^k of them have smaller errors.
    #[pyo3(signature = (sample_shape, x=None, *, seed=None, points="random"))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        sample_shape: &Bound<'py, PyAny>,
        x: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
        points: &str,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let points = named::<Points>("points", points)?;
        let (count, x, law) =
            (count("sample_shape", sample_shape)?, self.x(x)?, Arc::clone(&self.law));
        // The numbers of `didyma sample --seed`.
        let streams = Streams::new(seed_or_new(seed)?);
        let from = SampleStreams::new(streams, Purpose::Posterior, 1).by(points);
        let found = wait(py, move || law.sample_at(&x, count, from, parallel::cores()))?;
        matrix(py, found.theta, self.law.dim())
    }

    /// Log-density of each row of theta, as a float64 array of shape (n,); -inf outside the prior's support.
    #[pyo3(signature = (theta, x=None))]
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        x: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let dim = self.law.dim();
        let theta = parameters(theta, self.law.prior())?;
        let (x, law) = (self.x(x)?, Arc::clone(&self.law));
        let found = wait(py, move || {
            law.log_density_at(&x, Rows::new("theta", &theta, dim)?, parallel::cores())
        })?;
        Ok(PyArray1::from_vec(py, found))
    }

    fn __repr__(&self) -> String {
        let law = &*self.law;
        let names: Vec<&str> = law.prior().names().collect();
        format!("Posterior of {} given {} numbers", names.join(", "), law.observation().len())
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        let bytes = PyBytes::new(py, &self.law.to_bytes(&Value::Null));
        Ok((py.get_type::<Self>().getattr("_of_bytes")?, (bytes,)))
    }

    #[staticmethod]
    fn _of_bytes(bytes: &[u8]) -> PyResult<Self> {
        let law = Law::from_bytes(bytes);
        law.map(Self::from).map_err(|problem| Kind::Run.error(format!("no posterior: {problem}")))
    }
}
