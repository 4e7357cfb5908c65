//! Arrays in and out: anything that numpy can make an array of.

use crate::errors::Kind;
use didyma::prior::Prior;
use didyma::simulator::LARGEST_SUMMARY;
use numpy::{
    PyArray1, PyArray2, PyArrayMethods, PyReadonlyArrayDyn, PyUntypedArray, PyUntypedArrayMethods,
};
use pyo3::prelude::*;

/// Numbers with their shape.
pub struct Numbers {
    pub data: Vec<f64>,
    pub shape: Vec<usize>,
}

/// The numbers of anything array-like; `name` is what errors call it.
pub fn numbers(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Numbers> {
    let py = value.py();
    let numpy = py.import("numpy")?;
    let masked = numpy.getattr("ma")?;
    if masked.call_method1("is_masked", (value,))?.extract()? {
        return Err(Kind::NotFinite.error(format!(
            "{name} is a masked array with masked numbers: fill them, or leave them out"
        )));
    }
    let array = numpy.call_method1("asarray", (value,)).map_err(|cause| {
        Kind::Dtype.from(cause, format!("{name} cannot be made a numpy array: give numbers"))
    })?;
    let array = array.cast::<PyUntypedArray>()?;
    let kind: String = array.getattr("dtype")?.getattr("kind")?.extract()?;
    if !["f", "i", "u", "b"].contains(&&*kind) {
        let dtype = array.getattr("dtype")?;
        return Err(Kind::Dtype.error(format!(
            "{name} is an array of {dtype}: give real numbers (float32 or float64)"
        )));
    }
    // Contiguous and aligned, which what came over a network need not be.
    let array = numpy.call_method1("require", (array, "float64", ["C", "A"]))?;
    let array: PyReadonlyArrayDyn<'_, f64> = array.extract()?;
    Ok(Numbers { data: array.as_slice()?.to_vec(), shape: array.shape().to_vec() })
}

/// A vector; a single number is a vector of one.
pub fn vector(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<f64>> {
    let Numbers { data, shape } = numbers(name, value)?;
    match shape[..] {
        [] | [_] | [1, _] => Ok(data),
        _ => Err(Kind::Shape
            .error(format!("{name} has the shape {}: give a vector", shape_text(&shape)))),
    }
}

/// Rows of so many numbers, as (N, columns); a vector is one row, or of one column all rows.
pub fn rows(name: &str, value: &Bound<'_, PyAny>, columns: usize, why: &str) -> PyResult<Vec<f64>> {
    let Numbers { data, shape } = numbers(name, value)?;
    match shape[..] {
        [_, found] if found == columns => Ok(data),
        [found] if found == columns || columns == 1 => Ok(data),
        [] if columns == 1 => Ok(data),
        _ => Err(Kind::Shape.error(format!(
            "{name} has the shape {}, but (N, {columns}) is needed: {why}",
            shape_text(&shape)
        ))),
    }
}

/// Parameters, a row for each draw.
pub fn parameters(value: &Bound<'_, PyAny>, prior: &Prior) -> PyResult<Vec<f64>> {
    rows("theta", value, prior.dim(), "a column for each parameter of the prior")
}

/// An observation of so many numbers, or of any: finite ones.
pub fn observation(
    name: &str,
    value: &Bound<'_, PyAny>,
    expected: Option<usize>,
) -> PyResult<Vec<f64>> {
    let found = vector(name, value)?;
    if let Some(expected) = expected.filter(|&expected| expected != found.len()) {
        let length = found.len();
        return Err(Kind::Shape.error(format!(
            "{name} has {length} numbers, but {expected} are needed: one for each number of x_o"
        )));
    }
    if let Some(large) = found.iter().find(|x| x.is_finite() && x.abs() > LARGEST_SUMMARY) {
        return Err(too_large(name, *large));
    }
    match found.iter().position(|x| !x.is_finite()) {
        Some(i) => Err(Kind::NotFinite.error(format!(
            "{name} holds {} at place {i}: an observation needs finite numbers; leave out or replace what was not observed",
            found[i]
        ))),
        None if found.is_empty() => {
            Err(Kind::Shape.error(format!("{name} is empty: give the observed numbers")))
        }
        None => Ok(found),
    }
}

/// Observations of so many numbers, one in each row.
pub struct Observations {
    pub data: Vec<f64>,
    pub rows: usize,
}

/// Observations of so many numbers: a vector is one, rows are several.
pub fn observations(
    name: &str,
    value: &Bound<'_, PyAny>,
    expected: usize,
) -> PyResult<Observations> {
    let Numbers { data, shape } = numbers(name, value)?;
    let (rows, found) = match shape[..] {
        [] | [_] | [1, _] => {
            return Ok(Observations { data: observation(name, value, Some(expected))?, rows: 1 });
        }
        [rows, found] if rows > 0 => (rows, found),
        _ => (0, 0),
    };
    if found != expected {
        return Err(Kind::Shape.error(format!(
            "{name} has the shape {}, but ({expected},) or (B, {expected}) is needed: a column for each number of x_o",
            shape_text(&shape)
        )));
    }
    if let Some(large) = data.iter().find(|x| x.is_finite() && x.abs() > LARGEST_SUMMARY) {
        return Err(too_large(name, *large));
    }
    match data.iter().position(|x| !x.is_finite()) {
        None => Ok(Observations { data, rows }),
        Some(i) => Err(Kind::NotFinite.error(format!(
            "{name} holds {} in row {}, column {}: an observation needs finite numbers; leave out that row, or replace the number",
            data[i],
            i / expected,
            i % expected
        ))),
    }
}

fn too_large(name: &str, value: f64) -> PyErr {
    Kind::Input.error(format!(
        "{name} holds {value:e}, beyond {LARGEST_SUMMARY:e}: give the observation in another unit"
    ))
}

/// Parameters in groups, one for each observation.
pub struct Grouped {
    /// The rows of the first observation, then those of the second, and so on.
    pub theta: Vec<f64>,
    /// Rows of each.
    pub each: usize,
}

/// Parameters of shape (n, B, D): n rows for each of B observations; nothing if they have another number of axes.
pub fn grouped_parameters(
    value: &Bound<'_, PyAny>,
    prior: &Prior,
    observations: usize,
) -> PyResult<Option<Grouped>> {
    let (Numbers { data, shape }, dim) = (numbers("theta", value)?, prior.dim());
    let [each, found, columns] = shape[..] else { return Ok(None) };
    if (found, columns) != (observations, dim) {
        return Err(Kind::Shape.error(format!(
            "theta has the shape {}, but (n, {observations}, {dim}) is needed: rows for each row of x",
            shape_text(&shape)
        )));
    }
    let row = |i: usize| &data[i * dim..(i + 1) * dim];
    let of = |b: usize| (0..each).flat_map(move |i| row(i * observations + b));
    Ok(Some(Grouped { theta: (0..observations).flat_map(of).copied().collect(), each }))
}

/// A whole number, if there is one.
pub fn whole<T: TryFrom<u64>>(name: &str, value: Option<&Bound<'_, PyAny>>) -> PyResult<Option<T>> {
    let Some(value) = value else { return Ok(None) };
    let found = value.extract::<u64>().ok().and_then(|number| T::try_from(number).ok());
    found.map(Some).ok_or_else(|| {
        let text = value.repr().map_or("something else".to_owned(), |text| text.to_string());
        Kind::Input.error(format!("{name} is {text}: give a whole number that is not negative"))
    })
}

/// Words, or a single one; none may be empty.
pub fn words(name: &str, value: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    let found = value.extract::<String>().map(|word| vec![word]);
    match found.or_else(|_| value.extract::<Vec<String>>()) {
        Ok(words) if words.iter().all(|word| !word.trim().is_empty()) => Ok(words),
        Ok(_) => Err(Kind::Input.error(format!("{name} has an empty word: give each a name"))),
        Err(_) => {
            let found = type_name(value);
            Err(Kind::Input.error(format!("{name} is of type {found}: give a list of words")))
        }
    }
}

/// How many there may be of anything that is made in memory.
const MOST: usize = 100_000_000;

/// A number of things, at least one and not more than fit into memory.
pub fn limited(name: &str, value: Option<&Bound<'_, PyAny>>, default: usize) -> PyResult<usize> {
    let found = whole(name, value)?.unwrap_or(default);
    match (1..=MOST).contains(&found) {
        true => Ok(found),
        false => {
            Err(Kind::Input.error(format!("{name} is {found}: give a number from 1 to {MOST}")))
        }
    }
}

/// What an object is, for a sentence.
pub fn type_name(value: &Bound<'_, PyAny>) -> String {
    let class = value.get_type();
    match (class.module(), class.qualname()) {
        (Ok(module), Ok(name)) if module == "builtins" => name.to_string(),
        (Ok(module), Ok(name)) => format!("{module}.{name}"),
        _ => "another type".to_owned(),
    }
}

/// As Python writes it.
pub fn shape_text(shape: &[usize]) -> String {
    match shape {
        [one] => format!("({one},)"),
        _ => format!("({})", shape.iter().map(usize::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// An array of rows.
pub fn matrix<'py, T: numpy::Element>(
    py: Python<'py>,
    data: Vec<T>,
    columns: usize,
) -> PyResult<Bound<'py, PyArray2<T>>> {
    let rows = data.len() / columns.max(1);
    PyArray1::from_vec(py, data).reshape([rows, columns])
}

/// Refuses more rows than are made at a time.
pub fn check_rows(name: &str, rows: usize) -> PyResult<()> {
    if rows <= MOST {
        return Ok(());
    }
    let text = format!("{name} asks for {rows} rows: ask for at most {MOST} at a time");
    Err(Kind::Input.error(text))
}

/// How many samples a shape asks for: `(n,)`, or n itself.
pub fn count(name: &str, shape: &Bound<'_, PyAny>) -> PyResult<usize> {
    let number = shape.extract::<usize>().or_else(|_| shape.extract::<(usize,)>().map(|(n,)| n));
    if let Ok(number) = number {
        check_rows(name, number)?;
    }
    number.map_err(|_| {
        let text = shape.repr().map_or("something else".to_owned(), |text| text.to_string());
        Kind::Shape.error(format!("{name} is {text}: give (n,), as in sample((1000,))"))
    })
}
