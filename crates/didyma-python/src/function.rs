//! A simulator that is a Python function.

use crate::arrays::{matrix, numbers, type_name};
use crate::errors::Kind;
use crate::executor::Pool;
use didyma::parallel;
use didyma::prior::Prior;
use didyma::rng::{Purpose, Streams};
use didyma::simulator::{Piece, SimulationFailed};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyTuple;
use std::ops::Range;

/// Rows of a call of a vectorised function, unless the user says otherwise.
const BATCH: usize = 100;
/// Draws of the prior at which a first call is tried.
const TRIES: usize = 10;

/// A function, and how it is called.
pub struct Function {
    simulator: Py<PyAny>,
    /// What it asks for besides theta: `rng`, `seed`, or nothing.
    random: String,
    /// Rows of a call; 0 for a function of single rows.
    batch: usize,
    dims: (usize, usize),
}

/// Parameters and seeds of simulations.
#[derive(Clone, Debug)]
pub struct Rows {
    pub theta: Vec<f64>,
    pub seeds: Vec<u64>,
}

/// What calls of the function gave.
pub struct Answer {
    pub x: Vec<f64>,
    /// Rows that failed, in order, and why.
    pub failures: Vec<(usize, String)>,
    /// How long the calls took where they were made.
    pub seconds: f64,
}

impl Function {
    /// Calls the function at draws of the prior: does it work, and does it take many rows or one?
    ///
    /// Many rows: of identical rows, given together, a function of many makes different noise; and a function without
    /// noise gives the same twice. A function of one row fails, gives another shape, or the same noise for all rows.
    pub fn probe(
        simulator: &Bound<'_, PyAny>,
        prior: &Prior,
        x_dim: usize,
        vectorized: Option<bool>,
        batch: Option<usize>,
        pool: Option<&mut Pool>,
    ) -> PyResult<Self> {
        let py = simulator.py();
        if !simulator.is_callable() {
            let found = type_name(simulator);
            return Err(Kind::Input.error(format!(
                "simulator is of type {found}: give a function of theta, or a task of didyma.tasks"
            )));
        }
        if batch == Some(0) {
            return Err(Kind::Input.error("batch_size is 0: give at least 1"));
        }
        let random = py.import("didyma._worker")?.call_method1("randomness", (simulator,))?;
        let many = batch.unwrap_or(BATCH);
        let function = |batch| -> PyResult<Self> {
            let (simulator, random) = (simulator.clone().unbind(), random.extract()?);
            Ok(Self { simulator, random, batch, dims: (prior.dim(), x_dim) })
        };
        let (row, all) = (function(0)?, function(many)?);
        let candidates = match vectorized {
            Some(true) => [None, Some(all)],
            Some(false) => [Some(row), None],
            None => [Some(row), Some(all)],
        };
        Probe { py, prior, pool, candidates }.found()
    }

    /// Rows that belong together.
    pub fn unit(&self) -> usize {
        self.batch.max(1)
    }

    pub fn dims(&self) -> (usize, usize) {
        self.dims
    }

    /// Arguments of `didyma._worker.simulate`; of `alone`, each row is a call.
    pub fn arguments<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        part: Range<usize>,
        alone: bool,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (theta_dim, x_dim) = self.dims;
        let theta = rows.theta[part.start * theta_dim..part.end * theta_dim].to_vec();
        let theta = matrix(py, theta, theta_dim)?;
        let seeds = PyArray1::from_slice(py, &rows.seeds[part]);
        let batch = if alone { self.batch.min(1) } else { self.batch };
        (&self.simulator, &self.random, batch, theta, seeds, x_dim).into_pyobject(py)
    }

    /// Calls it here.
    pub fn call(&self, py: Python<'_>, rows: &Rows, part: Range<usize>) -> PyResult<Answer> {
        let arguments = self.arguments(py, rows, part, false)?;
        let found = py.import("didyma._worker")?.call_method1("simulate", arguments)?;
        Answer::of(&found)
    }
}

impl Answer {
    /// What `didyma._worker.simulate` returned.
    pub fn of(found: &Bound<'_, PyAny>) -> PyResult<Self> {
        let (x, failures, seconds): (Bound<'_, PyAny>, _, _) = found.extract()?;
        Ok(Self { x: numbers("x", &x)?.data, failures, seconds })
    }

    /// The same as a piece of a run.
    pub fn piece(&self, first: usize, x_dim: usize) -> Piece {
        let mut piece = Piece::new(first);
        let mut failures = self.failures.iter().peekable();
        for (row, x) in self.x.chunks_exact(x_dim).enumerate() {
            let failed = failures.next_if(|(failed, _)| *failed == row);
            let result = failed.map_or(Ok(()), |(_, why)| Err(SimulationFailed(why.clone())));
            piece.push(x, result);
        }
        piece
    }
}

/// First calls.
struct Probe<'a, 'py> {
    py: Python<'py>,
    prior: &'a Prior,
    pool: Option<&'a mut Pool>,
    /// A function of single rows, and one of many, as far as they come into question.
    candidates: [Option<Function>; 2],
}

impl Probe<'_, '_> {
    fn found(mut self) -> PyResult<Function> {
        let streams = Streams::new(0);
        let draws = streams.simulations(Purpose::Parameters, 0);
        let theta = self.prior.sample_rows(TRIES, &draws, parallel::cores());
        let mut why = String::new();
        for theta in theta.chunks_exact(self.prior.dim()) {
            let theta: Vec<f64> = theta.iter().map(|&t| t.into()).collect();
            match self.at(&theta)? {
                Ok(which) => {
                    let [row, all] = self.candidates;
                    return Ok(if which { all } else { row }.expect("it was called"));
                }
                Err(reason) => why = reason,
            }
        }
        let lines = if why.contains('\n') { "\n" } else { " " };
        Err(Kind::Simulator.error(format!(
            "the simulator failed at {TRIES} draws of the prior, so that nothing can be learnt from it; the last time:{lines}{why}"
        )))
    }

    /// Whether it takes many rows, by calls at this θ; or why it failed.
    fn at(&mut self, theta: &[f64]) -> PyResult<Result<bool, String>> {
        let (with_rows, with_many) = (self.candidates[0].is_some(), self.candidates[1].is_some());
        if !with_rows || !with_many {
            return Ok(self.try_call(with_many, theta, 1, 0)?.map(|_| with_many));
        }
        let dims = [theta.len(), self.candidates[0].as_ref().map_or(0, |f| f.dims.1)];
        // A number of rows that no accident of shapes can be taken for.
        let rows = (2..).find(|n| !dims.contains(n)).expect("one of the first four");
        if let Ok(first) = self.try_call(true, theta, rows, 0)? {
            let x_dim = first.len() / rows;
            let alike = first.chunks_exact(x_dim).all(|row| row == &first[..x_dim]);
            let mut repeated = || -> PyResult<bool> {
                Ok(self.try_call(true, theta, rows, rows)?.is_ok_and(|again| again == first))
            };
            if !alike || repeated()? {
                return Ok(Ok(true));
            }
        }
        Ok(self.try_call(false, theta, 1, 0)?.map(|_| false))
    }

    /// Summaries of so many equal rows, or why there are none.
    fn try_call(
        &mut self,
        many: bool,
        theta: &[f64],
        rows: usize,
        first: usize,
    ) -> PyResult<Result<Vec<f64>, String>> {
        let function = self.candidates[usize::from(many)].as_ref().expect("it comes into question");
        let streams = Streams::new(0).simulations(Purpose::Simulation, 0);
        let seeds = (first..first + rows).map(|row| streams.stream(row as u64).seed()).collect();
        let work = Rows { theta: theta.repeat(rows), seeds };
        // Together: a batch that is smaller would show nothing.
        let together = Function {
            simulator: function.simulator.clone_ref(self.py),
            random: function.random.clone(),
            batch: if many { rows } else { 0 },
            dims: function.dims,
        };
        let answer = match &mut self.pool {
            Some(pool) => pool.call(self.py, &together, &work)?,
            None => together.call(self.py, &work, 0..rows)?,
        };
        Ok(match answer.failures.into_iter().next() {
            Some((_, why)) => Err(why),
            None => Ok(answer.x),
        })
    }
}
