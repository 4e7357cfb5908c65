//! What a run came to: summary, figures, page, files.

use crate::arrays::{limited, matrix, whole};
use crate::calibrate::Call;
use crate::errors::{Kind, python};
use crate::figures::{Drawing, Figure, Summary, drawn};
use crate::folder::{Folder, copied};
use crate::posterior::Posterior;
use crate::runner::Runner;
use crate::toys::dict;
use crate::wait::wait;
use didyma::Posterior as Law;
use didyma::levels::LevelStudy;
use didyma::parallel;
use didyma::report::{Comparison, Overview, page, write_page};
use didyma::rng::Streams;
use didyma::run::{CalibrationRequest, Findings, Manifest, RunDir, Summary as Summarised};
use didyma::storage::write_whole;
use numpy::PyArray2;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

/// Simulations at the posterior.
const PREDICTIVE: usize = 1000;
/// Draws for ArviZ.
const ARVIZ: usize = 10_000;
/// Evaluations at each level.
const BUDGET: usize = 100_000;
/// The highest level that is measured.
const HIGHEST: u32 = 6;

/// Simulations at the posterior, if they are wanted.
#[derive(Default)]
struct Prediction<'a, 'py> {
    simulator: Option<&'a Bound<'py, PyAny>>,
    predictive: usize,
    executor: Option<&'a Bound<'py, PyAny>>,
}

/// The result of a run: its posterior, and everything that led to it.
#[pyclass(frozen, module = "didyma")]
pub struct Result {
    folder: Mutex<Folder>,
    posterior: Posterior,
    manifest: Manifest,
    /// A calibration puts another in its place.
    overview: Mutex<Arc<Overview>>,
}

impl Result {
    pub fn new(folder: Folder, posterior: Law, manifest: Manifest, overview: Overview) -> Self {
        let (posterior, overview) = (posterior.into(), Mutex::new(Arc::new(overview)));
        Self { folder: Mutex::new(folder), posterior, manifest, overview }
    }

    fn overview(&self) -> Arc<Overview> {
        Arc::clone(&self.overview.lock().expect("nothing panics with it"))
    }

    /// The result of a run from the disk.
    pub fn read(py: Python<'_>, folder: Folder, threads: usize) -> PyResult<Self> {
        let path = folder.path().to_owned();
        let read = wait(py, move || {
            let findings = Findings::read(&path, threads)?;
            let (manifest, overview) =
                (findings.run().manifest().clone(), Overview::of(&findings)?);
            Ok((findings.into_posterior()?, manifest, overview))
        });
        match read {
            Ok((law, manifest, overview)) => Ok(Self::new(folder, law, manifest, overview)),
            Err(error) => {
                // What cannot be read at this moment may be read later.
                folder.keep();
                Err(error)
            }
        }
    }

    /// Where the run is.
    pub fn path(&self) -> PathBuf {
        self.folder.lock().expect("nothing panics with it").path().to_owned()
    }

    /// The run as it is drawn, with simulations at the posterior if there is a simulator.
    fn data(&self, py: Python<'_>, levels: bool, by: Prediction<'_, '_>) -> PyResult<Comparison> {
        let law = &self.posterior.law;
        let dims = (law.dim(), law.observation().len());
        let running = Runner {
            executor: by.executor,
            vectorized: None,
            batch_size: None,
            progress: false,
            // What it predicts does not depend on how the run called it.
            began: None,
        };
        let mut caller = running.caller(py, by.simulator, law.prior(), dims.1)?;
        let (source, asks, count) = (self.source(), by.simulator.is_some(), by.predictive);
        caller.answer(py, "stopped; nothing was drawn", move |link| {
            let data = source.read(levels)?;
            let data = match asks {
                true => data.predicted_by(&link.simulator(dims), count, parallel::cores())?,
                false => data,
            };
            Comparison::new(vec![data])
        })
    }

    /// Where its pictures come from.
    pub fn source(&self) -> Drawing {
        let folder = self.folder.lock().expect("nothing panics with it");
        let overview = self.overview();
        let Summarised { task, method, seed, .. } = &overview.summary;
        let name = (!folder.is_kept()).then(|| format!("{task} by {method}, seed {seed}"));
        Drawing { path: folder.path().to_owned(), name }
    }
}

#[pymethods]
impl Result {
    /// Reads a run from its directory, finished or not, if a round of it is.
    #[staticmethod]
    fn load(py: Python<'_>, directory: PathBuf) -> PyResult<Self> {
        Self::read(py, Folder::kept(directory), parallel::cores())
    }

    /// The posterior.
    #[getter]
    fn posterior(&self) -> Posterior {
        self.posterior.clone()
    }

    /// The directory that holds the run; a temporary one, which goes with the result, unless `out` was given or it was saved.
    #[getter]
    fn directory(&self) -> PathBuf {
        self.path()
    }

    /// Whether all rounds are done.
    #[getter]
    fn finished(&self) -> bool {
        self.overview().summary.finished
    }

    /// In short: rounds, a table of the parameters, warnings. Print it, or let a notebook show it.
    fn summary(&self) -> Summary {
        Summary(self.overview())
    }

    /// The simulations that succeeded: theta of shape (N, D) and x of shape (N, L), of all rounds or of one.
    #[pyo3(signature = (round=None))]
    #[allow(clippy::type_complexity)]
    fn simulations<'py>(
        &self,
        py: Python<'py>,
        round: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<(Bound<'py, PyArray2<f64>>, Bound<'py, PyArray2<f64>>)> {
        let (path, round) = (self.path(), whole::<u32>("round", round)?);
        let rows = wait(py, move || RunDir::read(&path)?.rows())?;
        let (mut theta, mut x) = (Vec::new(), Vec::new());
        for row in rows.iter().filter(|row| round.is_none_or(|round| row.round == round)) {
            if let Ok(found) = &row.x {
                theta.extend_from_slice(&row.theta);
                x.extend_from_slice(found);
            }
        }
        let law = &self.posterior.law;
        Ok((matrix(py, theta, law.dim())?, matrix(py, x, law.observation().len())?))
    }

    /// The simulations that failed: a list of dicts with round, index, theta and reason.
    fn failures<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        let path = self.path();
        let rows = wait(py, move || RunDir::read(&path)?.rows())?;
        let failed = rows
            .into_iter()
            .filter_map(|row| Some((row.x.err()?, row.theta, row.round, row.index)));
        failed
            .map(|(reason, theta, round, index)| {
                let found = PyDict::new(py);
                found.set_item("round", round)?;
                found.set_item("index", index)?;
                found.set_item("theta", numpy::PyArray1::from_vec(py, theta))?;
                found.set_item("reason", reason)?;
                Ok(found)
            })
            .collect()
    }

    /// Moments of the levels of the run's estimator on its flow, and the rates fitted to them: the JSON of `didyma levels`.
    #[pyo3(signature = (*, budget=None, seed=None))]
    fn levels<'py>(
        &self,
        py: Python<'py>,
        budget: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (path, budget) = (self.path(), limited("budget", budget, BUDGET)?);
        let seed = whole("seed", seed)?.unwrap_or(1);
        let report = wait(py, move || {
            let run = RunDir::read(&path)?;
            let config = run.manifest().config.clone();
            let mut flow = run.trained_flow(parallel::cores())?;
            LevelStudy::of_flow(&config, &flow, HIGHEST, budget).run(&mut flow, Streams::new(seed))
        })?;
        dict(py, &report)
    }

    /// The verdict on the posterior: a dict with its word ("trust", "check" or "do not trust"), reasons, all checks, and what to do next.
    #[getter]
    fn verdict<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dict(py, &self.overview().summary.verdict)
    }

    /// Whether the probabilities that the posterior states come true: every statistic and the verdict, as a dict; `didyma
    /// calibrate` prints the same. It is stored beside the run, and `verdict` follows it.
    ///
    /// simulator, simulations: by default simulations of the run answer that training never saw. `simulations` makes so many new
    ///     ones, near the observation: a sharper test. They are stored as they come: after a Ctrl-C the same call continues. A run of
    ///     a Python function needs its `simulator`.
    /// conformal: also give levels of credible regions that have the coverage they state, on average over parameters of the
    ///     prior near the observation; new simulations are spread evenly for it.
    /// local: train the local test, a classifier's view of the posterior at the observation.
    /// held_out: ask the run's own simulations again, also where new ones are stored.
    /// executor: as of `infer`.
    /// retry_failed: make failed new simulations again.
    #[pyo3(signature = (
        simulator=None, simulations=None, *, conformal=false, local=true, held_out=false, executor=None, retry_failed=false
    ))]
    #[allow(clippy::too_many_arguments)]
    fn calibrate<'py>(
        &self,
        py: Python<'py>,
        simulator: Option<&Bound<'py, PyAny>>,
        simulations: Option<&Bound<'py, PyAny>>,
        conformal: bool,
        local: bool,
        held_out: bool,
        executor: Option<&Bound<'py, PyAny>>,
        retry_failed: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let request = CalibrationRequest { local, conformal, held_out };
        let page = self.folder.lock().expect("nothing panics with it").is_kept();
        let call = Call { simulator, simulations, executor, request, retry_failed, page };
        let (report, overview) = call.answer(py, self.path(), self.manifest.clone())?;
        *self.overview.lock().expect("nothing panics with it") = Arc::new(overview);
        dict(py, &report)
    }

    /// Every setting of the run: names and values.
    #[getter]
    fn settings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (key, value, _) in self.manifest.config.list() {
            all.set_item(key, value)?;
        }
        Ok(all)
    }

    /// The parameters in pairs, as a figure that notebooks show and `save` writes.
    fn plot_pairs(&self, py: Python<'_>) -> PyResult<Figure> {
        drawn(py, &self.data(py, false, Prediction::default())?, "pairs")
    }

    /// Where the true parameters of simulations lie in their posteriors, parameter by parameter: inside of the grey band if the
    /// posterior is right.
    fn plot_ranks(&self, py: Python<'_>) -> PyResult<Figure> {
        drawn(py, &self.data(py, false, Prediction::default())?, "ranks")
    }

    /// How often regions of the posterior have the true parameters inside, against how often it says so.
    fn plot_coverage(&self, py: Python<'_>) -> PyResult<Figure> {
        drawn(py, &self.data(py, false, Prediction::default())?, "coverage")
    }

    /// Where the posterior is too high or too low at the observation, by a classifier. Needs a calibration that trained one.
    fn plot_local(&self, py: Python<'_>) -> PyResult<Figure> {
        drawn(py, &self.data(py, false, Prediction::default())?, "local")
    }

    /// A figure: "pairs", "metrics", "training", "ranks", "coverage", "local", "simulations", "predictive", "levels" or "time".
    ///
    /// "predictive" compares `predictive` simulations (1000) at draws of the posterior with the observation, and needs the
    /// run's simulator.
    #[pyo3(signature = (kind, *, simulator=None, predictive=None, executor=None))]
    fn plot(
        &self,
        py: Python<'_>,
        kind: &str,
        simulator: Option<&Bound<'_, PyAny>>,
        predictive: Option<&Bound<'_, PyAny>>,
        executor: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Figure> {
        let predictive = whole("predictive", predictive)?.unwrap_or(PREDICTIVE);
        let by = Prediction { simulator, predictive, executor };
        drawn(py, &self.data(py, kind == "levels", by)?, kind)
    }

    /// Writes a page with all figures, the settings and what to know before trusting the posterior.
    ///
    /// With the run's simulator, `predictive` simulations (1000) at draws of the posterior are compared with the observation.
    #[pyo3(signature = (path, *, simulator=None, predictive=None, executor=None))]
    fn report(
        &self,
        py: Python<'_>,
        path: PathBuf,
        simulator: Option<&Bound<'_, PyAny>>,
        predictive: Option<&Bound<'_, PyAny>>,
        executor: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<PathBuf> {
        let predictive = whole("predictive", predictive)?.unwrap_or(PREDICTIVE);
        let by = Prediction { simulator, predictive, executor };
        let html = page(&self.data(py, true, by)?);
        write_whole(&path, html.as_bytes()).map_err(python)?;
        Ok(path)
    }

    /// The posterior as ArviZ's InferenceData: `samples` draws (10,000) as one chain, and the observation.
    #[pyo3(signature = (samples=None, *, seed=None))]
    fn to_arviz<'py>(
        slf: &Bound<'py, Self>,
        samples: Option<&Bound<'py, PyAny>>,
        seed: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let samples = limited("samples", samples, ARVIZ)?;
        let module = slf.py().import("didyma._arviz")?;
        module.call_method1("inference_data", (slf.get().posterior.clone(), samples, seed))
    }

    /// Keeps the run in a new directory, from where `Result.load` and the command line read it.
    fn save(&self, py: Python<'_>, directory: PathBuf) -> PyResult<()> {
        let (from, to) = (self.path(), directory.clone());
        wait(py, move || {
            copied(&from, &to)?;
            // A run is not lost because a page about it cannot be written.
            let _ = Findings::read(&to, parallel::cores()).and_then(|found| write_page(&found));
            Ok(())
        })?;
        *self.folder.lock().expect("nothing panics with it") = Folder::kept(directory);
        Ok(())
    }

    fn __repr__(&self) -> String {
        self.overview().to_string()
    }

    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let figure = match self.plot_pairs(py) {
            Ok(figure) => figure.svg,
            // A posterior that cannot be drawn has a table still.
            Err(error) if error.is_instance_of::<PyException>(py) => String::new(),
            Err(error) => return Err(error),
        };
        Ok(format!("{}<div style=\"max-width: 48em\">{figure}</div>", self.overview().html()))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (PathBuf,))> {
        let folder = self.folder.lock().expect("nothing panics with it");
        if !folder.is_kept() {
            return Err(Kind::Run.error(
                "a result in a temporary directory cannot be pickled: save it first, or pickle its posterior",
            ));
        }
        Ok((py.get_type::<Self>().getattr("load")?, (folder.path().to_owned(),)))
    }
}
