//! Calibration of posteriors: checks of arrays. The package's `diagnostics` draws them and names what comes back.

use crate::arrays::{Numbers, numbers, rows, shape_text, vector, whole};
use crate::errors::{Kind, python};
use crate::toys::dict;
use crate::wait::wait;
use didyma::calibration::{
    Bands, Coverage, LocalFinding, LocalSettings, LocalTest, Ranks, Recalibration, Tarp,
    Uniformity, usual_levels,
};
use didyma::rng::Streams;
use didyma::{Rows, parallel};
use pyo3::prelude::*;
use pyo3::types::PyModule;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(calibration_uniformity, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_bands, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_score_ranks, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_coverage, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_tarp, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_local, module)?)?;
    module.add_function(wrap_pyfunction!(calibration_level, module)?)
}

/// True parameters (n, D), and draws of each of their posteriors: (n, L, D).
struct Pairs {
    theta: Vec<f64>,
    draws: Vec<f64>,
    columns: usize,
}

impl Pairs {
    fn new(theta: &Bound<'_, PyAny>, draws: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (theta, [rows, columns]) = shaped("theta", theta, "(n, D)")?;
        let (draws, [found, _, width]) = shaped("draws", draws, "(n, L, D)")?;
        if (found, width) != (rows, columns) {
            return Err(Kind::Shape.error(format!(
                "draws are of {found} rows and {width} parameters, but theta has {rows} and {columns}: give (n, L, D)"
            )));
        }
        Ok(Self { theta, draws, columns })
    }

    fn rows(&self) -> didyma::Result<(Rows<'_>, Rows<'_>)> {
        let theta = Rows::new("theta", &self.theta, self.columns)?;
        Ok((theta, Rows::new("draws", &self.draws, self.columns)?))
    }
}

/// Numbers of an array of N dimensions.
fn shaped<const N: usize>(
    name: &str,
    value: &Bound<'_, PyAny>,
    wanted: &str,
) -> PyResult<(Vec<f64>, [usize; N])> {
    let Numbers { data, shape } = numbers(name, value)?;
    let found = <[usize; N]>::try_from(shape.as_slice()).map_err(|_| {
        Kind::Shape.error(format!("{name} has the shape {}: give {wanted}", shape_text(&shape)))
    })?;
    Ok((data, found))
}

/// The streams of a seed, by default 1.
fn streams(seed: Option<&Bound<'_, PyAny>>) -> PyResult<Streams> {
    Ok(Streams::new(whole("seed", seed)?.unwrap_or(1)))
}

/// Tests numbers in [0, 1] for uniformity.
#[pyfunction]
fn calibration_uniformity<'py>(
    py: Python<'py>,
    values: &Bound<'py, PyAny>,
) -> PyResult<Bound<'py, PyAny>> {
    let values = vector("values", values)?;
    dict(py, &wait(py, move || Uniformity::of(&values))?)
}

/// Simultaneous bands of the distribution function of so many uniform numbers, at so many places.
#[pyfunction]
#[pyo3(signature = (rows, points=100, level=0.95))]
fn calibration_bands(
    py: Python<'_>,
    rows: usize,
    points: usize,
    level: f64,
) -> PyResult<Bound<'_, PyAny>> {
    dict(py, &wait(py, move || Bands::simultaneous(rows, points, level))?)
}

/// Ranks of parameters (n, D) among draws (n, L, D): `below`, `randomised` and `ks_p_values`.
#[pyfunction]
#[pyo3(signature = (theta, draws, *, seed=None))]
fn calibration_ranks<'py>(
    py: Python<'py>,
    theta: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (pairs, streams) = (Pairs::new(theta, draws)?, streams(seed)?);
    let ranks = wait(py, move || {
        let (theta, draws) = pairs.rows()?;
        Ranks::of(theta, draws, &streams)
    })?;
    ranks_dict(py, &ranks)
}

/// Ranks of one number a row (n,) among those of its draws (n, L).
#[pyfunction]
#[pyo3(signature = (scores, draws, *, seed=None))]
fn calibration_score_ranks<'py>(
    py: Python<'py>,
    scores: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (scores, streams) = (vector("scores", scores)?, streams(seed)?);
    let (draws, [_, columns]) = shaped("draws", draws, "(n, L)")?;
    let ranks = wait(py, move || {
        Ranks::of_scores(&scores, Rows::new("draws", &draws, columns)?, &streams)
    })?;
    ranks_dict(py, &ranks)
}

fn ranks_dict<'py>(py: Python<'py>, ranks: &Ranks) -> PyResult<Bound<'py, PyAny>> {
    let found = dict(py, ranks)?;
    found.set_item("ks_p_values", ranks.ks_p_values())?;
    Ok(found)
}

/// Coverage at these levels, from the levels of the regions at which truths enter.
#[pyfunction]
#[pyo3(signature = (region_levels, levels=None))]
fn calibration_coverage<'py>(
    py: Python<'py>,
    region_levels: &Bound<'py, PyAny>,
    levels: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let region_levels = vector("region_levels", region_levels)?;
    let levels = levels.map_or_else(|| Ok(usual_levels()), |levels| vector("levels", levels))?;
    let coverage = wait(py, move || Coverage::of(&region_levels, &levels))?;
    let found = dict(py, &coverage)?;
    found.set_item("size", coverage.size().name())?;
    Ok(found)
}

/// The coverage of balls around points of reference (n, D).
#[pyfunction]
#[pyo3(signature = (theta, draws, references=None, *, bins=None, seed=None))]
fn calibration_tarp<'py>(
    py: Python<'py>,
    theta: &Bound<'py, PyAny>,
    draws: &Bound<'py, PyAny>,
    references: Option<&Bound<'py, PyAny>>,
    bins: Option<&Bound<'py, PyAny>>,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let (pairs, streams, bins) = (Pairs::new(theta, draws)?, streams(seed)?, whole("bins", bins)?);
    let why = "a point for each row of theta";
    let references =
        references.map(|given| rows("references", given, pairs.columns, why)).transpose()?;
    let tarp = wait(py, move || {
        let (theta, draws) = pairs.rows()?;
        let given = references.as_ref();
        let points = given.map(|data| Rows::new("references", data, pairs.columns)).transpose()?;
        Tarp::of(theta, draws, points, bins, parallel::cores(), &streams)
    })?;
    dict(py, &tarp)
}

/// Local tests at observations (M, S) with evaluation draws (M, E, D): a finding for each. Without `draws`, `theta` is in
/// the base space of a flow.
#[pyfunction]
#[pyo3(signature = (theta, x, draws, x_o, evaluation, *, folds=1, ensemble=1, trials=100, seed=None))]
#[allow(clippy::too_many_arguments, reason = "they are named where it is called")]
fn calibration_local<'py>(
    py: Python<'py>,
    theta: &Bound<'py, PyAny>,
    x: &Bound<'py, PyAny>,
    draws: Option<&Bound<'py, PyAny>>,
    x_o: &Bound<'py, PyAny>,
    evaluation: &Bound<'py, PyAny>,
    folds: usize,
    ensemble: usize,
    trials: usize,
    seed: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyAny>> {
    let local = Local::new(theta, x, draws, x_o, evaluation)?;
    let (settings, streams) = (LocalSettings { folds, ensemble, trials }, streams(seed)?);
    dict(py, &wait(py, move || local.findings(settings, &streams))?)
}

/// The arrays of local tests, with dim numbers in a row of θ and width in a row of x.
struct Local {
    theta: Vec<f64>,
    x: Vec<f64>,
    draws: Option<Vec<f64>>,
    x_o: Vec<f64>,
    evaluation: Vec<f64>,
    dim: usize,
    width: usize,
}

impl Local {
    fn new(
        theta: &Bound<'_, PyAny>,
        x: &Bound<'_, PyAny>,
        draws: Option<&Bound<'_, PyAny>>,
        x_o: &Bound<'_, PyAny>,
        evaluation: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let (theta, [_, dim]) = shaped("theta", theta, "(n, D)")?;
        let (x, [_, width]) = shaped("x", x, "(n, S)")?;
        let why = "one draw for each row of theta";
        let draws = draws.map(|draws| rows("draws", draws, dim, why)).transpose()?;
        let x_o = rows("x_o", x_o, width, "a column for each column of x")?;
        let (evaluation, [sets, _, found]) = shaped("evaluation", evaluation, "(M, E, D)")?;
        if (sets, found) != (x_o.len() / width.max(1), dim) || sets == 0 {
            let text = "evaluation does not fit x_o and theta: give draws (E, D) for each x_o";
            return Err(Kind::Shape.error(text));
        }
        Ok(Self { theta, x, draws, x_o, evaluation, dim, width })
    }

    fn findings(
        &self,
        settings: LocalSettings,
        streams: &Streams,
    ) -> didyma::Result<Vec<LocalFinding>> {
        let (theta, threads) = (Rows::new("theta", &self.theta, self.dim)?, parallel::cores());
        let x = Rows::new("x", &self.x, self.width)?;
        let test = match &self.draws {
            Some(draws) => {
                let draws = Rows::new("draws", draws, self.dim)?;
                LocalTest::of_pairs(theta, x, draws, settings, threads, streams)?
            }
            None => LocalTest::of_base(theta, x, settings, threads, streams)?,
        };
        let sets = self.x_o.len() / self.width;
        let each = (self.evaluation.len() / sets).max(1);
        let sets = self.x_o.chunks_exact(self.width).zip(self.evaluation.chunks_exact(each));
        sets.map(|(x_o, draws)| test.at(x_o, Rows::new("evaluation", draws, self.dim)?)).collect()
    }
}

/// The nominal level whose regions have this coverage (split conformal prediction).
#[pyfunction]
fn calibration_level(region_levels: &Bound<'_, PyAny>, coverage: f64) -> PyResult<f64> {
    let region_levels = vector("region_levels", region_levels)?;
    let found = Recalibration::of(&region_levels).and_then(|found| found.level(coverage));
    found.map_err(python)
}
