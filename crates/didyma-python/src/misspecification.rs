//! Is an observation like simulations? The test of `didyma.diagnostics`.

use crate::arrays::{rows, vector};
use crate::wait::wait;
use didyma::calibration::Surprise;
use didyma::{Rows, parallel};
use pyo3::prelude::*;
use pyo3::types::PyModule;

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(misspecification, module)?)
}

/// A test of whether an observation x_o is one more row of simulations x, of shape (N, L): `p_value, statistic, foremost
/// = …`.
///
/// If it is, the p-value is uniform on 1/(N+1), …, 1, whatever the law of the simulations and whatever their units; for
/// draws of the prior it tests the model, for draws of a posterior it is uniform or larger. The statistic grows with
/// the surprise; foremost has the columns that contribute most. Of more than 1000 rows, 1000 are looked at. Rows with NaN
/// are left out.
#[pyfunction]
fn misspecification(
    py: Python<'_>,
    x: &Bound<'_, PyAny>,
    x_o: &Bound<'_, PyAny>,
) -> PyResult<(f64, f64, Vec<usize>)> {
    let x_o = vector("x_o", x_o)?;
    let x = rows("x", x, x_o.len(), "a column for each number of x_o")?;
    wait(py, move || {
        let whole = |row: &&[f64]| row.iter().all(|value| !value.is_nan());
        let kept: Vec<f64> =
            Rows::new("x", &x, x_o.len())?.iter().filter(whole).flatten().copied().collect();
        let found = Surprise::of(&x_o, Rows::new("x", &kept, x_o.len())?, parallel::cores())?;
        Ok((found.p_value, found.statistic, found.foremost))
    })
}
