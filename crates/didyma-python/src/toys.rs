//! The estimators themselves: toys whose loss is known, rates of their levels, and laws that follow from rates.

use crate::arrays::{limited, whole};
use crate::choices::{named, words};
use crate::errors::python;
use crate::wait::wait;
use didyma::config::{Config, Profile};
use didyma::estimator::alpha::{Model, advise};
use didyma::estimator::{Estimator, Method, Settings};
use didyma::levels::{LevelReport, LevelStudy, measure_batches};
use didyma::rng::Streams;
use didyma_lab::{TOYS, Toy as Known};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMapping, PyModule};

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<Toy>()?;
    module.add_function(wrap_pyfunction!(toy_names, module)?)?;
    module.add_function(wrap_pyfunction!(alpha, module)?)
}

/// Names of the toys.
#[pyfunction]
fn toy_names() -> Vec<&'static str> {
    TOYS.iter().map(|toy| toy.name).collect()
}

/// A Gaussian problem whose loss and gradient are known exactly, to check estimators against.
#[pyclass(frozen, module = "didyma.toys")]
pub struct Toy(Known);

/// An estimator: the paper's settings of a method, changed by a mapping as {"m0": 4, "top": 6}.
fn estimator(method: &str, settings: Option<&Bound<'_, PyMapping>>) -> PyResult<Settings> {
    let method: Method = named("method", method)?;
    let mut config = Config::new(Profile::Paper, method);
    config.estimator = Settings::paper(method);
    if let Some(settings) = settings {
        for pair in settings.items()?.iter() {
            let (key, value): (String, Bound<'_, PyAny>) = pair.extract()?;
            config.set(&format!("estimator.{key}"), &words(&value)?).map_err(python)?;
        }
    }
    Ok(config.estimator)
}

/// A report as nested dicts and lists.
pub fn dict<'py>(py: Python<'py>, report: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let json = serde_json::to_string(report).expect("numbers and strings");
    py.import("json")?.call_method1("loads", (json,))
}

#[pymethods]
impl Toy {
    #[new]
    fn new(name: &str) -> PyResult<Self> {
        let known = Known::named(name);
        known.map(Self).ok_or_else(|| {
            let all = toy_names().join(", ");
            crate::errors::Kind::Input.error(format!("there is no toy {name:?}: there are {all}"))
        })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name
    }

    /// Where it is looked at: phi = (a, b, c) of q(theta | x) = N(ax + b, exp(2c)).
    #[getter]
    fn phi(&self) -> [f64; 3] {
        self.0.phi()
    }

    /// The exact loss there.
    #[getter]
    fn loss(&self) -> f64 {
        self.0.loss()
    }

    /// Its exact gradient.
    #[getter]
    fn gradient(&self) -> [f64; 3] {
        self.0.gradient()
    }

    /// Estimates the loss and its gradient by `batches` (200) batches of `batch` (100) queries: means, standard errors and cost.
    #[pyo3(signature = (method, *, batch=None, batches=None, seed=None, settings=None))]
    fn estimate<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        batch: Option<&Bound<'py, PyAny>>,
        batches: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
        settings: Option<&Bound<'py, PyMapping>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let (batch, batches) = (limited("batch", batch, 100)?, limited("batches", batches, 200)?);
        let seed = whole("seed", seed)?.unwrap_or(1);
        let (settings, toy) = (estimator(method, settings)?, self.0);
        let found = wait(py, move || {
            let mut estimator = Estimator::new(settings)?;
            let found = measure_batches(
                &mut toy.queries(),
                &mut estimator,
                batch,
                batches,
                Streams::new(seed),
            )?;
            Ok((found, estimator.expected_inner()))
        })?;
        let (moments, cost) = found;
        let all = PyDict::new(py);
        all.set_item("loss", moments.loss.mean)?;
        all.set_item("loss_se", moments.loss.error)?;
        all.set_item("gradient", moments.gradient.iter().map(|g| g.mean).collect::<Vec<_>>())?;
        all.set_item("gradient_se", moments.gradient.iter().map(|g| g.error).collect::<Vec<_>>())?;
        all.set_item("inner_samples", cost)?;
        Ok(all)
    }

    /// Moments of the level differences and the rates fitted to them: the JSON of `didyma levels --toy`.
    #[pyo3(signature = (method="tgrr", *, levels=None, budget=None, seed=None, settings=None))]
    fn levels<'py>(
        &self,
        py: Python<'py>,
        method: &str,
        levels: Option<&Bound<'py, PyAny>>,
        budget: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
        settings: Option<&Bound<'py, PyMapping>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (settings, toy) = (estimator(method, settings)?, self.0);
        let (highest, seed) =
            (whole("levels", levels)?.unwrap_or(6), whole("seed", seed)?.unwrap_or(1));
        let study = LevelStudy { settings, highest, budget: limited("budget", budget, 1_000_000)? };
        let report: LevelReport =
            wait(py, move || study.run(&mut toy.queries(), Streams::new(seed)))?;
        dict(py, &report)
    }

    fn __repr__(&self) -> String {
        format!("Toy {:?}", self.0.name)
    }
}

/// The level law for a rate r2: the paper's and the recipe's alpha, inner samples and variance times cost of each.
#[pyfunction]
#[pyo3(signature = (method, r2, *, base_variance=1.0, settings=None))]
fn alpha<'py>(
    py: Python<'py>,
    method: &str,
    r2: f64,
    base_variance: f64,
    settings: Option<&Bound<'py, PyMapping>>,
) -> PyResult<Bound<'py, PyDict>> {
    let settings = estimator(method, settings)?;
    let model = Model { rate: r2, base_variance };
    let advice = advise(&settings, model).map_err(python)?;
    let product = |estimator: &Estimator| {
        model.variance_times_cost(settings.method, estimator.law()) * settings.m0 as f64
    };
    let all = PyDict::new(py);
    for (name, estimator) in [("paper", &advice.paper), ("recipe", &advice.recipe)] {
        let one = PyDict::new(py);
        one.set_item("alpha", estimator.settings().alpha())?;
        one.set_item("inner_samples", estimator.expected_inner())?;
        one.set_item("variance_times_cost", product(estimator))?;
        all.set_item(name, one)?;
    }
    all.set_item("one_parameter_alpha", advice.one_parameter)?;
    Ok(all)
}
