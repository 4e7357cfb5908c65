//! The posterior: samples and densities.

use crate::arrays::{
    Grouped, Observations, check_rows, count, grouped_parameters, matrix, observations, parameters,
};
use crate::choices::{named, seed_or_new};
use crate::errors::{Kind, python};
use crate::prior::Prior;
use crate::wait::wait;
use didyma::rng::{Purpose, Streams};
use didyma::run::RunDir;
use didyma::{Points, Posterior as Law, Rows, SampleStreams, parallel};
use numpy::{PyArray1, PyArray2, PyArray3, PyArrayDyn, PyArrayMethods};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;
use std::ffi::CString;
use std::path::PathBuf;
use std::sync::Arc;

/// The posterior p(theta | x_o), as a trained density q(theta | x) at x = x_o.
///
/// `sample((n,))` draws from it and `log_prob(theta)` is its log-density, normalised over the prior's support. At other
/// observations, `x=`, q is as good as simulations near them were many: of `npe` wherever the prior's simulations fall, of other
/// methods near x_o only. An observation outside of all simulations of the last round is warned of.
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
    /// The observations to work at, x_o if none is given. A warning tells if one is outside of all simulations.
    fn x(&self, py: Python<'_>, x: Option<&Bound<'_, PyAny>>) -> PyResult<Observations> {
        let own = self.law.observation();
        let Some(x) = x else { return Ok(Observations { data: own.to_vec(), rows: 1 }) };
        let found = observations("x", x, own.len())?;
        let rows = Rows::new("x", &found.data, own.len()).map_err(python)?;
        if let Some(untrained) = self.law.untrained(rows, &[]) {
            let text = CString::new(untrained.to_string())?;
            PyErr::warn(py, &py.get_type::<PyUserWarning>(), &text, 1)?;
        }
        Ok(found)
    }

    /// Draws at each observation, those of the first, then those of the second, and so on.
    fn draw(
        &self,
        py: Python<'_>,
        (count, x): (usize, Observations),
        seed: Option<&Bound<'_, PyAny>>,
        points: &str,
    ) -> PyResult<Vec<f64>> {
        let points = named::<Points>("points", points)?;
        check_rows("sample_shape", count.saturating_mul(x.rows))?;
        // The numbers of `didyma sample --seed`.
        let streams = Streams::new(seed_or_new(seed)?);
        let from = SampleStreams::new(streams, Purpose::Posterior, 1).by(points);
        let law = Arc::clone(&self.law);
        wait(py, move || {
            let x = Rows::new("x", &x.data, law.observation().len())?;
            law.sample_many(x, count, from, parallel::cores())
        })
    }

    /// Log-densities of rows in groups, one for each observation.
    fn densities(&self, py: Python<'_>, theta: Vec<f64>, x: Observations) -> PyResult<Vec<f64>> {
        let law = Arc::clone(&self.law);
        wait(py, move || {
            let x = Rows::new("x", &x.data, law.observation().len())?;
            law.log_density_many(Rows::new("theta", &theta, law.dim())?, x, parallel::cores())
        })
    }

    /// Log-densities as an array whose second axis is the observations.
    fn grouped_densities<'py>(
        &self,
        py: Python<'py>,
        Grouped { theta, each }: Grouped,
        x: Observations,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let rows = x.rows;
        let found = self.densities(py, theta, x)?;
        PyArray1::from_vec(py, found).reshape([rows, each])?.permute(Some([1, 0]))
    }
}

/// Of numbers that lie observation by observation, an array whose second axis is the observations.
fn by_observation<'py>(
    py: Python<'py>,
    data: Vec<f64>,
    (observations, each, dim): (usize, usize, usize),
) -> PyResult<Bound<'py, PyArray3<f64>>> {
    PyArray1::from_vec(py, data).reshape([observations, each, dim])?.permute(Some([1, 0, 2]))
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

    /// Draws, as a float64 array of shape (n, dim), all inside the prior's support; with B > 1 rows of x, one observation in each, of
    /// shape (n, B, dim). Without a seed, others each time. points="sobol" spreads them more evenly than independent draws
    /// ("random"): means over 2^k of them have smaller errors. Warns of x outside of all simulations of the last round.
    #[pyo3(signature = (sample_shape, x=None, *, seed=None, points="random"))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        sample_shape: &Bound<'py, PyAny>,
        x: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
        points: &str,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let (count, x) = (count("sample_shape", sample_shape)?, self.x(py, x)?);
        let (observations, dim) = (x.rows, self.law.dim());
        let theta = self.draw(py, (count, x), seed, points)?;
        if observations == 1 {
            return Ok(matrix(py, theta, dim)?.to_dyn().clone());
        }
        Ok(by_observation(py, theta, (observations, count, dim))?.to_dyn().clone())
    }

    /// Draws at each row of x, as a float64 array of shape (n, B, dim), also where B is 1; as `sample` in all else. Draws at a row
    /// depend on the seed, on that row and on its place.
    #[pyo3(signature = (sample_shape, x, *, seed=None, points="random"))]
    fn sample_batched<'py>(
        &self,
        py: Python<'py>,
        sample_shape: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
        points: &str,
    ) -> PyResult<Bound<'py, PyArray3<f64>>> {
        let (count, x) = (count("sample_shape", sample_shape)?, self.x(py, Some(x))?);
        let shape = (x.rows, count, self.law.dim());
        by_observation(py, self.draw(py, (count, x), seed, points)?, shape)
    }

    /// Log-density of each row of theta, as a float64 array of shape (n,); -inf outside the prior's support. x of one row is the
    /// observation of all rows of theta, x of n rows has one for each. Theta of shape (n, B, dim) with x of B rows gives (n, B).
    #[pyo3(signature = (theta, x=None))]
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        x: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArrayDyn<f64>>> {
        let x = self.x(py, x)?;
        if let Some(grouped) = grouped_parameters(theta, self.law.prior(), x.rows)? {
            return Ok(self.grouped_densities(py, grouped, x)?.to_dyn().clone());
        }
        let theta = parameters(theta, self.law.prior())?;
        let rows = theta.len() / self.law.dim();
        if ![1, rows].contains(&x.rows) {
            return Err(Kind::Shape.error(format!(
                "theta has {rows} rows and x has {}: give x of one row, of one for each row of theta, or theta of shape (n, {}, {})",
                x.rows,
                x.rows,
                self.law.dim()
            )));
        }
        Ok(PyArray1::from_vec(py, self.densities(py, theta, x)?).to_dyn().clone())
    }

    /// Log-density of theta of shape (n, B, dim) at x of B rows, as a float64 array of shape (n, B).
    fn log_prob_batched<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
        x: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let x = self.x(py, Some(x))?;
        match grouped_parameters(theta, self.law.prior(), x.rows)? {
            Some(grouped) => self.grouped_densities(py, grouped, x),
            None => Err(Kind::Shape.error(format!(
                "theta of shape (n, {}, {}) is needed: rows for each row of x; log_prob takes fewer axes",
                x.rows,
                self.law.dim()
            ))),
        }
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
