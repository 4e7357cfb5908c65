//! How far samples are from a reference.

use crate::arrays::{Numbers, limited, numbers, rows, shape_text, vector, whole};
use crate::errors::Kind;
use crate::wait::wait;
use didyma::math::Estimate;
use didyma::metrics::{CLASSIFIER_SEEDS, FOLDS};
use didyma::rng::Streams;
use didyma::{Rows, metrics, parallel};
use pyo3::prelude::*;
use pyo3::types::PyModule;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(c2st, module)?)?;
    module.add_function(wrap_pyfunction!(c2st_with_error, module)?)?;
    module.add_function(wrap_pyfunction!(mmd2, module)?)?;
    module.add_function(wrap_pyfunction!(sliced_wasserstein, module)?)?;
    module.add_function(wrap_pyfunction!(median_distance, module)?)
}

/// Two sets of samples, and their columns.
struct Sets {
    reference: Vec<f64>,
    samples: Vec<f64>,
    columns: usize,
}

impl Sets {
    fn new(reference: &Bound<'_, PyAny>, samples: &Bound<'_, PyAny>) -> PyResult<Self> {
        let Numbers { data, shape } = numbers("reference", reference)?;
        let columns = match shape[..] {
            [_, columns] => columns,
            [_] => 1,
            _ => {
                let shape = shape_text(&shape);
                return Err(
                    Kind::Shape.error(format!("reference has the shape {shape}: give (N, D)"))
                );
            }
        };
        let samples = rows("samples", samples, columns, "as many columns as the reference has")?;
        Ok(Self { reference: data, samples, columns })
    }

    fn rows(&self) -> didyma::Result<(Rows<'_>, Rows<'_>)> {
        let reference = Rows::new("reference", &self.reference, self.columns)?;
        Ok((reference, Rows::new("samples", &self.samples, self.columns)?))
    }
}

/// Accuracy of a classifier that tells samples from the reference: 0.5 if it cannot, 1 if it always can. The mean over
/// so many classifier seeds (4), each judged on so many of its five folds (5; one takes a fifth of the time).
///
/// Of sets of unequal size the first rows of the larger one are used, so that guessing gives 0.5.
#[pyfunction]
#[pyo3(signature = (reference, samples, *, seeds=None, folds=None, seed=None))]
fn c2st(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    samples: &Bound<'_, PyAny>,
    seeds: Option<&Bound<'_, PyAny>>,
    folds: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<f64> {
    let seeds = limited("seeds", seeds, CLASSIFIER_SEEDS)?;
    let folds = folds_of(folds)?;
    Ok(estimate(py, (reference, samples), (seeds, folds), seed)?.mean)
}

/// C2ST, the mean over so many classifier seeds (4), and its standard error over these seeds: `mean, error = …`.
///
/// The error says how far more classifier seeds could move the mean for the same rows; how far other rows would is not
/// part of it.
#[pyfunction]
#[pyo3(signature = (reference, samples, *, seeds=None, folds=None, seed=None))]
fn c2st_with_error(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    samples: &Bound<'_, PyAny>,
    seeds: Option<&Bound<'_, PyAny>>,
    folds: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<(f64, f64)> {
    let seeds = limited("seeds", seeds, CLASSIFIER_SEEDS)?;
    let folds = folds_of(folds)?;
    if seeds < 2 {
        return Err(Kind::Input.error("seeds is 1: an error needs 2 or more"));
    }
    let Estimate { mean, error } = estimate(py, (reference, samples), (seeds, folds), seed)?;
    Ok((mean, error))
}

/// How many of its folds a classifier seed is judged on.
fn folds_of(folds: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let folds = limited("folds", folds, FOLDS)?;
    if folds > FOLDS {
        return Err(Kind::Input.error(format!("folds is {folds}: give a number from 1 to {FOLDS}")));
    }
    Ok(folds)
}

/// The C2ST of sets that are cut to one size.
fn estimate(
    py: Python<'_>,
    (reference, samples): (&Bound<'_, PyAny>, &Bound<'_, PyAny>),
    of: (usize, usize),
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<Estimate> {
    let seed = whole("seed", seed)?.unwrap_or(1);
    let mut sets = Sets::new(reference, samples)?;
    let least = sets.reference.len().min(sets.samples.len());
    sets.reference.truncate(least);
    sets.samples.truncate(least);
    wait(py, move || {
        let ((reference, samples), streams) = (sets.rows()?, Streams::new(seed));
        let by_seed = metrics::c2st_by_seed(reference, samples, of, parallel::cores(), &streams)?;
        Ok(Estimate::of(&by_seed))
    })
}

/// Squared maximum mean discrepancy, with a Gaussian kernel as wide as the reference's median distance: 0 for the same
/// law; a little below is possible.
#[pyfunction]
fn mmd2(py: Python<'_>, reference: &Bound<'_, PyAny>, samples: &Bound<'_, PyAny>) -> PyResult<f64> {
    let sets = Sets::new(reference, samples)?;
    wait(py, move || {
        let (reference, samples) = sets.rows()?;
        metrics::mmd2(reference, samples, parallel::cores())
    })
}

/// Mean shift between the quantiles of both sets along random lines (200 projections).
#[pyfunction]
#[pyo3(signature = (reference, samples, *, projections=None, seed=None))]
fn sliced_wasserstein(
    py: Python<'_>,
    reference: &Bound<'_, PyAny>,
    samples: &Bound<'_, PyAny>,
    projections: Option<&Bound<'_, PyAny>>,
    seed: Option<&Bound<'_, PyAny>>,
) -> PyResult<f64> {
    let projections = limited("projections", projections, 200)?;
    let seed = whole("seed", seed)?.unwrap_or(1);
    let sets = Sets::new(reference, samples)?;
    wait(py, move || {
        let ((reference, samples), streams) = (sets.rows()?, Streams::new(seed));
        metrics::sliced_wasserstein(reference, samples, projections, parallel::cores(), &streams)
    })
}

/// Median distance of simulations x, of shape (N, L), from the observation, each number divided by its scale. Rows with
/// NaN are left out.
#[pyfunction]
#[pyo3(signature = (x, x_o, *, scale=None))]
fn median_distance(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    x_o: &Bound<'_, PyAny>,
    scale: Option<&Bound<'_, PyAny>>,
) -> PyResult<f64> {
    let x_o = vector("x_o", x_o)?;
    let scale = scale.map_or_else(|| Ok(vec![1.0; x_o.len()]), |scale| vector("scale", scale))?;
    let x = rows("x", x, x_o.len(), "a column for each number of x_o")?;
    wait(py, move || metrics::median_distance(Rows::new("x", &x, x_o.len())?, &x_o, &scale))
}
