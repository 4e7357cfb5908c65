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
/// Times that a first call is tried, each at other draws of the prior.
const TRIES: usize = 10;
/// Draws at which calls of one row and of many are compared. Noise that all rows share, were it the throw of a coin, would be
/// overlooked once in 2¹⁶.
const COMPARED: usize = 17;
/// Draws at which a call of one row must fail before a function is taken for one of many.
const AGAIN: usize = 6;
/// Seconds of a call of one row, above which many together gain nothing.
const QUICK: f64 = 1e-3;

/// Seconds after which calls here give back what they have.
const PATIENCE: f64 = 0.1;

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
    /// If it takes one row, that is right, whatever it would make of many: noise or sums that all rows share would be wrong
    /// without a word. Many are quicker only if a call takes next to no time, and are taken if they are exactly the same.
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

    /// Whether it is given its randomness.
    pub fn is_seeded(&self) -> bool {
        !self.random.is_empty()
    }

    /// Rows of a call; 0 for a function of single rows.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Rows that belong together.
    pub fn unit(&self) -> usize {
        self.batch.max(1)
    }

    pub fn dims(&self) -> (usize, usize) {
        self.dims
    }

    /// Arguments of `didyma._worker.simulate`, which returns what it has after so many seconds; if `alone`, each row is a
    /// call.
    pub fn arguments<'py>(
        &self,
        py: Python<'py>,
        rows: &Rows,
        part: Range<usize>,
        alone: bool,
        patience: f64,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let (theta_dim, x_dim) = self.dims;
        let theta = rows.theta[part.start * theta_dim..part.end * theta_dim].to_vec();
        let theta = matrix(py, theta, theta_dim)?;
        let seeds = PyArray1::from_slice(py, &rows.seeds[part]);
        let batch = if alone { self.batch.min(1) } else { self.batch };
        (&self.simulator, &self.random, batch, theta, seeds, x_dim, patience).into_pyobject(py)
    }

    /// Calls it here.
    pub fn call(&self, py: Python<'_>, rows: &Rows, part: Range<usize>) -> PyResult<Answer> {
        let arguments = self.arguments(py, rows, part, false, PATIENCE)?;
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

    /// How many rows there are: fewer than asked for, if they took long.
    pub fn rows(&self, x_dim: usize) -> usize {
        self.x.len() / x_dim
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
        let dim = self.prior.dim();
        let draws = Streams::new(0).simulations(Purpose::Parameters, 0);
        let theta = self.prior.sample_rows(TRIES * COMPARED, &draws, parallel::cores());
        let mut why = String::new();
        for (number, theta) in theta.chunks_exact(COMPARED * dim).enumerate() {
            match self.at(theta, number)? {
                Ok(many) => {
                    let [row, all] = self.candidates;
                    return Ok(if many { all } else { row }.expect("it was called"));
                }
                Err(reason) => why = reason,
            }
        }
        let called = match &self.candidates {
            [Some(_), None] => {
                " (called with one row, as vectorized=False or the run's beginning says)"
            }
            [None, Some(_)] => {
                " (called with many rows, as vectorized=True or the run's beginning says)"
            }
            _ => "",
        };
        let hint = match why.contains("required positional argument") {
            true => "\nBesides theta, only parameters called rng and seed are given.",
            false => "",
        };
        Err(Kind::Simulator.error(match why.starts_with("the simulator returned") {
            true => format!("{why}{called}"),
            false => format!(
                "the simulator failed at {TRIES} draws of the prior{called}; the last time:\n{why}{hint}"
            ),
        }))
    }

    /// Whether it takes many rows, by calls at these draws; or why it failed.
    fn at(&mut self, theta: &[f64], number: usize) -> PyResult<Result<bool, String>> {
        let (dim, first) = (self.prior.dim(), number * COMPARED);
        let [row, many] = [self.candidates[0].is_some(), self.candidates[1].is_some()];
        let one = match row {
            true => self.call(false, &theta[..dim], first)?,
            false => Err(String::new()),
        };
        match (one, many) {
            (Ok(_), false) => Ok(Ok(false)),
            // Above, many gain nothing.
            (Ok(answer), true) if answer.seconds > QUICK => Ok(Ok(false)),
            (Ok(_), true) => self.same(theta, first).map(Ok),
            (Err(why), false) => Ok(Err(why)),
            (Err(why), true) => self.only_many(theta, first, row.then_some(why)),
        }
    }

    /// Whether many rows together give exactly what they give one by one.
    fn same(&mut self, theta: &[f64], first: usize) -> PyResult<bool> {
        let (singly, together) = (self.call(false, theta, first)?, self.call(true, theta, first)?);
        let bits = |answer: Answer| answer.x.into_iter().map(f64::to_bits).collect::<Vec<_>>();
        Ok(match (singly, together) {
            (Ok(singly), Ok(together)) => bits(singly) == bits(together),
            _ => false,
        })
    }

    /// Whether it takes many rows, where a call of one failed, if it was made; or why neither works.
    fn only_many(
        &mut self,
        theta: &[f64],
        first: usize,
        failed: Option<String>,
    ) -> PyResult<Result<bool, String>> {
        let (dim, x_dim) = (self.prior.dim(), self.candidates[1].as_ref().map_or(0, |f| f.dims.1));
        // A number of rows that no accident of shapes can be taken for.
        let rows = (2..).find(|n| ![dim, x_dim].contains(n)).expect("one of the first three");
        if let Err(other) = self.call(true, &theta[..rows * dim], first)? {
            // Of a function of one row, its own error says more.
            return Ok(Err(failed.unwrap_or(other)));
        }
        // It may take one row and have failed by chance.
        for (i, theta) in theta.chunks_exact(dim).enumerate().take(AGAIN).skip(1) {
            if failed.is_some() && self.call(false, theta, first + i)?.is_ok() {
                return Ok(Ok(false));
            }
        }
        Ok(Ok(true))
    }

    /// Summaries of these rows, given one by one or together, or why there are none.
    fn call(
        &mut self,
        many: bool,
        theta: &[f64],
        first: usize,
    ) -> PyResult<Result<Answer, String>> {
        let function = self.candidates[usize::from(many)].as_ref().expect("it comes into question");
        let streams = Streams::new(0).simulations(Purpose::Simulation, 0);
        let count = theta.len() / self.prior.dim();
        let seeds = (first..first + count).map(|row| streams.stream(row as u64).seed()).collect();
        let work = Rows { theta: theta.to_vec(), seeds };
        // All in one call: smaller batches would show nothing.
        let function = Function {
            simulator: function.simulator.clone_ref(self.py),
            random: function.random.clone(),
            batch: if many { count } else { 0 },
            dims: function.dims,
        };
        let answer = match &mut self.pool {
            Some(pool) => match pool.call(self.py, &function, &work)? {
                Ok(answer) => answer,
                Err(why) => return Ok(Err(why)),
            },
            None => function.call(self.py, &work, 0..count)?,
        };
        Ok(match answer.failures.first() {
            Some((_, why)) => Err(why.clone()),
            None => Ok(answer),
        })
    }
}
