//! Priors.

use crate::arrays::{count, matrix, rows, type_name, vector, words};
use crate::choices::seed_or_new;
use crate::errors::{Kind, python};
use crate::wait::wait;
use didyma::parallel;
use didyma::prior::{Marginal, Prior as Law};
use didyma::rng::{Purpose, Streams};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::{PyList, PyModule, PyTuple};
use std::collections::HashSet;

/// What is known of the parameters beforehand: independent laws, one each.
///
/// Made by `Uniform`, `Normal`, `LogNormal` and `Independent`.
#[pyclass(frozen, subclass, eq, module = "didyma", from_py_object)]
#[derive(Clone, PartialEq)]
pub struct Prior(pub Law);

/// Independent uniform parameters between `low` and `high`.
///
/// >>> Uniform(low=[-1, -1], high=[1, 1], names=["a", "b"])
#[pyclass(frozen, extends = Prior, module = "didyma")]
pub struct Uniform;

/// Independent normal parameters; with `low` or `high`, truncated there.
#[pyclass(frozen, extends = Prior, module = "didyma")]
pub struct Normal;

/// Independent log-normal parameters: their logarithms have this mean and standard deviation. With `low` or `high`,
/// truncated there.
#[pyclass(frozen, extends = Prior, module = "didyma")]
pub struct LogNormal;

/// Several priors side by side.
///
/// >>> Independent([Uniform(0, 1, names=["p"]), Normal(0, 2, names=["shift"])])
#[pyclass(frozen, extends = Prior, module = "didyma")]
pub struct Independent;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Prior>()?;
    module.add_class::<Uniform>()?;
    module.add_class::<Normal>()?;
    module.add_class::<LogNormal>()?;
    module.add_class::<Independent>()
}

#[pymethods]
impl Prior {
    /// Number of parameters.
    #[getter]
    fn dim(&self) -> usize {
        self.0.dim()
    }

    /// Names of the parameters.
    #[getter]
    fn names(&self) -> Vec<String> {
        self.0.names().map(str::to_owned).collect()
    }

    /// The bounds of each parameter, as an array of shape (dim, 2).
    #[getter]
    fn support<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let bounds = self.0.parameters().iter().map(|parameter| parameter.marginal.support());
        matrix(py, bounds.flat_map(|(low, high)| [low, high]).collect(), 2)
    }

    /// Draws, as a float64 array of shape (n, dim). Without a seed, others each time.
    #[pyo3(signature = (sample_shape, *, seed=None))]
    fn sample<'py>(
        &self,
        py: Python<'py>,
        sample_shape: &Bound<'py, PyAny>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyArray2<f64>>> {
        let (count, law) = (count("sample_shape", sample_shape)?, self.0.clone());
        let streams = Streams::new(seed_or_new(seed)?).simulations(Purpose::Parameters, 0);
        let dim = law.dim();
        let theta = wait(py, move || Ok(law.sample_rows(count, &streams, parallel::cores())))?;
        matrix(py, theta, dim)
    }

    /// Log-density of each row of theta; -inf outside the support.
    fn log_prob<'py>(
        &self,
        py: Python<'py>,
        theta: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let dim = self.0.dim();
        let theta = rows("theta", theta, dim, "a column for each parameter of the prior")?;
        let found = theta.chunks_exact(dim).map(|row| self.0.log_density(row));
        Ok(PyArray1::from_iter(py, found))
    }

    fn __len__(&self) -> usize {
        self.0.dim()
    }

    fn __repr__(&self) -> String {
        let lines = self.0.parameters().iter();
        let lines: Vec<String> =
            lines.map(|parameter| format!("{}: {}", parameter.name, parameter.marginal)).collect();
        format!("Prior({})", lines.join(", "))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (String,))> {
        let json = serde_json::to_string(&self.0).expect("numbers and strings");
        Ok((py.get_type::<Self>().getattr("_of_json")?, (json,)))
    }

    #[staticmethod]
    fn _of_json(json: &str) -> PyResult<Self> {
        let law = serde_json::from_str(json);
        law.map(Self).map_err(|error| Kind::Input.error(format!("no prior: {error}")))
    }
}

/// What a parameter is called that nobody named.
fn default_name(place: usize) -> String {
    format!("theta{}", place + 1)
}

type Init<T> = PyClassInitializer<T>;

fn made<T: pyo3::PyClass>(
    class: T,
    names: Option<&Bound<'_, PyAny>>,
    marginals: Vec<Marginal>,
) -> PyResult<Init<T>>
where
    Init<T>: From<(T, Prior)>,
{
    let names = match names.map(|names| words("names", names)).transpose()? {
        Some(names) if names.len() != marginals.len() => {
            return Err(Kind::Shape.error(format!(
                "names has {} words for {} parameters: give one for each",
                names.len(),
                marginals.len()
            )));
        }
        Some(names) => names,
        None => (0..marginals.len()).map(default_name).collect(),
    };
    let law = Law::new(names.into_iter().zip(marginals)).map_err(python)?;
    Ok((class, Prior(law)).into())
}

/// Vectors of the same length; single numbers are repeated.
fn aligned<const N: usize>(given: [(&str, &Bound<'_, PyAny>); N]) -> PyResult<Vec<[f64; N]>> {
    let found: Vec<Vec<f64>> =
        given.iter().map(|(name, value)| vector(name, value)).collect::<PyResult<_>>()?;
    let length = found.iter().map(Vec::len).max().unwrap_or(0);
    if let Some(i) = found.iter().position(|values| ![1, length].contains(&values.len())) {
        let (name, other) = (given[i].0, found[i].len());
        return Err(Kind::Shape.error(format!(
            "{name} has {other} numbers where others have {length}: give one for each parameter, or a single one for all"
        )));
    }
    let at = |values: &Vec<f64>, i: usize| if values.len() == 1 { values[0] } else { values[i] };
    Ok((0..length).map(|i| std::array::from_fn(|k| at(&found[k], i))).collect())
}

#[pymethods]
impl Uniform {
    #[new]
    #[pyo3(signature = (low, high, *, names=None))]
    fn new(
        low: &Bound<'_, PyAny>,
        high: &Bound<'_, PyAny>,
        names: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Init<Self>> {
        let bounds = aligned([("low", low), ("high", high)])?;
        let marginals = bounds.into_iter().map(|[low, high]| Marginal::Uniform { low, high });
        made(Self, names, marginals.collect())
    }
}

/// A normal or log-normal law, truncated if a bound is finite.
fn normal(log: bool, [mean, sd, low, high]: [f64; 4]) -> Marginal {
    let bound = |value: f64, none: f64| (value != none).then_some(value);
    match (bound(low, f64::NEG_INFINITY), bound(high, f64::INFINITY), log) {
        (None, None, false) => Marginal::Normal { mean, sd },
        (None, None, true) => Marginal::LogNormal { mean, sd },
        (low, high, log) => Marginal::Truncated { mean, sd, log, low, high },
    }
}

fn normals(
    log: bool,
    mean: &Bound<'_, PyAny>,
    sd: &Bound<'_, PyAny>,
    low: Option<&Bound<'_, PyAny>>,
    high: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<Marginal>> {
    let infinite = |sign: f64| PyArray1::from_vec(mean.py(), vec![sign * f64::INFINITY]).into_any();
    let (none, all) = (infinite(-1.0), infinite(1.0));
    let (low, high) = (low.unwrap_or(&none), high.unwrap_or(&all));
    let given = aligned([("mean", mean), ("sd", sd), ("low", low), ("high", high)])?;
    if given.iter().any(|[_, _, low, high]| low.is_nan() || high.is_nan()) {
        let text = "low or high holds NaN: leave it out, or give infinity where there is no bound";
        return Err(Kind::NotFinite.error(text));
    }
    Ok(given.into_iter().map(|numbers| normal(log, numbers)).collect())
}

#[pymethods]
impl Normal {
    #[new]
    #[pyo3(signature = (mean, sd, *, low=None, high=None, names=None))]
    fn new(
        mean: &Bound<'_, PyAny>,
        sd: &Bound<'_, PyAny>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Init<Self>> {
        made(Self, names, normals(false, mean, sd, low, high)?)
    }
}

#[pymethods]
impl LogNormal {
    #[new]
    #[pyo3(signature = (mean, sd, *, low=None, high=None, names=None))]
    fn new(
        mean: &Bound<'_, PyAny>,
        sd: &Bound<'_, PyAny>,
        low: Option<&Bound<'_, PyAny>>,
        high: Option<&Bound<'_, PyAny>>,
        names: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Init<Self>> {
        made(Self, names, normals(true, mean, sd, low, high)?)
    }
}

#[pymethods]
impl Independent {
    #[new]
    fn new(py: Python<'_>, priors: Vec<Bound<'_, PyAny>>) -> PyResult<Init<Self>> {
        let laws = priors.iter().map(of).collect::<PyResult<Vec<Law>>>()?;
        let all: Vec<_> = laws.iter().flat_map(|law| law.parameters().to_vec()).collect();
        let mut seen = HashSet::new();
        let twice = !all.iter().all(|parameter| seen.insert(&parameter.name));
        // Names that nobody gave would meet each other.
        let unnamed = |law: &Law| law.names().enumerate().all(|(i, name)| name == default_name(i));
        let mut names: Vec<String> = Vec::new();
        for law in &laws {
            let first = names.len();
            match twice && unnamed(law) {
                true => names.extend((first..first + law.dim()).map(default_name)),
                false => names.extend(law.names().map(str::to_owned)),
            }
        }
        let names = PyList::new(py, names)?;
        made(Self, Some(names.as_any()), all.iter().map(|parameter| parameter.marginal).collect())
    }
}

/// The prior that an argument is; a sentence says what to give otherwise.
pub fn of(value: &Bound<'_, PyAny>) -> PyResult<Law> {
    match value.cast::<Prior>() {
        Ok(prior) => Ok(prior.get().0.clone()),
        Err(_) => {
            let found = type_name(value);
            Err(Kind::Input.error(format!(
                "prior is of type {found}: give didyma.Uniform, Normal, LogNormal or Independent"
            )))
        }
    }
}

/// For `__reduce__`.
pub type Reduced<'py> = (Bound<'py, PyAny>, Bound<'py, PyTuple>);
