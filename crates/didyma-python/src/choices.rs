//! Settings of a run from keyword arguments.

use crate::arrays::whole;
use crate::errors::{Kind, python};
use didyma::Named;
use didyma::config::{Algorithm, Config, Layer, Profile};
use didyma::problem_file::FileSettings;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyList, PyMapping, PyString, PyTuple};
use std::hash::{BuildHasher, RandomState};

/// What a call says about settings.
#[derive(Default)]
pub struct Choices<'a, 'py> {
    pub method: Option<&'a str>,
    pub profile: Option<&'a str>,
    pub rounds: Option<&'a Bound<'py, PyAny>>,
    pub simulations: Option<&'a Bound<'py, PyAny>>,
    pub members: Option<&'a Bound<'py, PyAny>>,
    pub seed: Option<&'a Bound<'py, PyAny>>,
    pub settings: Option<&'a Bound<'py, PyMapping>>,
}

impl Choices<'_, '_> {
    /// All settings: those of a problem file, if there is one, then those of the call.
    pub fn config(&self, file: Option<&FileSettings>) -> PyResult<Config> {
        let method = self.method.map(|name| named::<Algorithm>("method", name)).transpose()?;
        let profile = self.profile.map(|name| named::<Profile>("profile", name)).transpose()?;
        let mut layer = Layer { method, profile, ..Layer::default() };
        layer.set_some("rounds", whole::<u32>("rounds", self.rounds)?);
        layer.set_some("simulations", whole::<usize>("simulations", self.simulations)?);
        layer.set_some("ensemble.members", whole::<usize>("members", self.members)?);
        layer.set_some("seed", whole::<u64>("seed", self.seed)?);
        if let Some(settings) = self.settings {
            for pair in settings.items()?.iter() {
                let (key, value): (String, Bound<'_, PyAny>) = pair.extract()?;
                layer.set(key, words(&value)?);
            }
        }
        file.unwrap_or(&FileSettings::default()).config(&layer).map_err(python)
    }
}

/// A setting's value as the command line would have it.
pub fn words(value: &Bound<'_, PyAny>) -> PyResult<String> {
    if value.is_none() {
        return Ok("none".to_owned());
    }
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(flag.is_true().to_string());
    }
    if value.is_instance_of::<PyList>() || value.is_instance_of::<PyTuple>() {
        let all: Vec<Bound<'_, PyAny>> = value.extract()?;
        let all = all.iter().map(words).collect::<PyResult<Vec<_>>>()?;
        return Ok(all.join(", "));
    }
    match value.cast::<PyString>() {
        Ok(text) => Ok(text.to_string()),
        Err(_) => Ok(value.str()?.to_string()),
    }
}

/// One of the names of a choice.
pub fn named<T: Named + Copy>(argument: &str, name: &str) -> PyResult<T> {
    T::named(&name.to_lowercase()).ok_or_else(|| {
        let all: Vec<&str> = T::ALL.iter().map(|(name, _)| *name).collect();
        Kind::Input.error(format!("{argument} is {name:?}: give one of {}", all.join(", ")))
    })
}

/// A seed that was given, or one that nobody has used before.
pub fn seed_or_new(seed: Option<&Bound<'_, PyAny>>) -> PyResult<u64> {
    Ok(whole("seed", seed)?.unwrap_or_else(|| RandomState::new().hash_one(0)))
}

/// Every setting with its value and meaning: those that `infer` would use.
///
/// Returns a dict from names, as `settings=` takes them, to (value, meaning).
#[pyfunction]
#[pyo3(signature = (method=None, profile=None))]
pub fn settings<'py>(
    py: Python<'py>,
    method: Option<&str>,
    profile: Option<&str>,
) -> PyResult<Bound<'py, PyDict>> {
    let config = Choices { method, profile, ..Choices::default() }.config(None)?;
    let all = PyDict::new(py);
    for (key, value, about) in config.list() {
        all.set_item(key, (value, about))?;
    }
    Ok(all)
}

/// Names of the methods.
#[pyfunction]
pub fn methods() -> Vec<&'static str> {
    Algorithm::ALL.iter().map(|(name, _)| *name).collect()
}
