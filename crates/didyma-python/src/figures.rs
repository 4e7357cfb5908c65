//! Results as text and pictures.

use crate::errors::{Kind, python};
use crate::result::Result;
use crate::toys::dict;
use crate::wait::wait;
use crate::wording::word;
use didyma::parallel;
use didyma::report::{Comparison, Kind as Plot, Overview, Place, RunData, page, png};
use didyma::storage::write_whole;
use pyo3::prelude::*;
use std::path::PathBuf;
use std::sync::Arc;

/// A run in short.
#[pyclass(frozen, module = "didyma")]
pub struct Summary(pub Arc<Overview>);

#[pymethods]
impl Summary {
    /// All of it, as nested dicts and lists: the JSON of `didyma show --json`.
    fn to_dict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &*self.0)
    }

    /// What to know before trusting the posterior.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.summary.warnings.clone()
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        self.0.to_string()
    }

    fn _repr_html_(&self) -> String {
        self.0.html()
    }
}

/// A figure: notebooks show it, and `save` writes it as SVG or PNG.
#[pyclass(frozen, get_all, module = "didyma")]
pub struct Figure {
    /// What it shows.
    title: String,
    /// How to read it.
    caption: String,
    /// The image.
    pub svg: String,
}

#[pymethods]
impl Figure {
    /// Writes it to a file whose name ends in .svg or .png.
    fn save(&self, path: PathBuf) -> PyResult<()> {
        let bytes = match path.extension().and_then(|ending| ending.to_str()) {
            Some("svg") => self.svg.clone().into_bytes(),
            Some("png") => png(&self.svg).map_err(python)?,
            _ => {
                return Err(Kind::Input.error(format!(
                    "path is {}: give a file name that ends in .svg or .png",
                    path.display()
                )));
            }
        };
        write_whole(&path, &bytes).map_err(python)
    }

    fn _repr_svg_(&self) -> &str {
        &self.svg
    }

    fn __repr__(&self) -> String {
        format!("Figure: {} (show it in a notebook, or save it)", self.title)
    }
}

/// Where the pictures of a run come from, and what it is called if not by its directory.
pub struct Drawing {
    pub path: PathBuf,
    pub name: Option<String>,
}

impl Drawing {
    pub fn read(self, levels: bool) -> didyma::Result<RunData> {
        let data = RunData::read(&self.path, levels, parallel::cores())?;
        Ok(RunData { name: self.name.unwrap_or(data.name), ..data })
    }
}

/// One kind of figure.
pub fn drawn(py: Python<'_>, runs: &Comparison, kind: &str) -> PyResult<Figure> {
    let Some((_, plot)) = Plot::ALL.iter().find(|(name, _)| *name == kind) else {
        let all: Vec<&str> = Plot::ALL.iter().map(|(name, _)| *name).collect();
        return Err(
            Kind::Input.error(format!("there is no plot {kind:?}: there are {}", all.join(", ")))
        );
    };
    let figure = py.detach(|| plot.draw(runs, Place::Alone)).ok_or_else(|| {
        let needs = plot.needs().sentence(&word);
        Kind::Input.error(format!("there is nothing to draw: {kind} needs {needs}"))
    })?;
    Ok(Figure { title: figure.title, caption: figure.caption, svg: figure.svg })
}

fn compared(py: Python<'_>, results: &[Bound<'_, Result>]) -> PyResult<Comparison> {
    let sources: Vec<_> = results.iter().map(|result| result.get().source()).collect();
    wait(py, move || {
        let single = sources.len() == 1;
        let runs = sources.into_iter().map(|source| source.read(single));
        Comparison::new(runs.collect::<didyma::Result<_>>()?)
    })
}

/// Writes one page about several results of the same problem, side by side.
#[pyfunction]
pub fn report(py: Python<'_>, results: Vec<Bound<'_, Result>>, path: PathBuf) -> PyResult<PathBuf> {
    let html = page(&compared(py, &results)?);
    write_whole(&path, html.as_bytes()).map_err(python)?;
    Ok(path)
}

/// A figure of several results of the same problem, side by side.
#[pyfunction]
#[pyo3(signature = (results, kind="pairs"))]
pub fn plot(py: Python<'_>, results: Vec<Bound<'_, Result>>, kind: &str) -> PyResult<Figure> {
    drawn(py, &compared(py, &results)?, kind)
}
