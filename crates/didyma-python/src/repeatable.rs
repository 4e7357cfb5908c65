//! Functions whose random numbers are their own: what they give cannot be repeated, which is told.

use crate::executor::Pool;
use crate::function::{Answer, Function, Rows};
use didyma::parallel;
use didyma::prior::Prior;
use didyma::rng::{Purpose, Streams};
use pyo3::exceptions::PyUserWarning;
use pyo3::prelude::*;
use std::ffi::CStr;
use std::time::Instant;

/// Draws of the prior at which a function is called twice. Counts may be the same by chance, but not at all of them.
const DRAWS: usize = 16;
/// Seconds after which no further draw is tried.
const PATIENCE: f64 = 0.1;

const WORDS: &CStr = c"the simulator's random numbers are its own, so that the same seed, or a resumed run, gives other rows: add an argument rng or seed to it";

impl Function {
    /// Warns if it gives different x for the same theta, and is given neither `rng` nor `seed`.
    pub fn warn_if_unrepeatable(
        &self,
        py: Python<'_>,
        prior: &Prior,
        pool: Option<&mut Pool>,
    ) -> PyResult<()> {
        if self.is_seeded() || self.repeats(py, prior, pool)? {
            return Ok(());
        }
        PyErr::warn(py, &py.get_type::<PyUserWarning>(), WORDS, 1)
    }

    /// Whether it gives the same x for the same theta, where it was tried.
    fn repeats(
        &self,
        py: Python<'_>,
        prior: &Prior,
        mut pool: Option<&mut Pool>,
    ) -> PyResult<bool> {
        let (start, dim) = (Instant::now(), prior.dim());
        let draws = Streams::new(0).simulations(Purpose::Parameters, 1);
        let theta = prior.sample_rows(DRAWS, &draws, parallel::cores());
        let rows = if self.batch() > 0 { DRAWS } else { 1 };
        for theta in theta.chunks_exact(rows * dim) {
            let mut answer = |first| self.answer(py, pool.as_deref_mut(), theta, first);
            // With other seeds: an executor's processes are seeded by them, and what belongs together there is up to chance.
            let (one, other) = (answer(0)?, answer(DRAWS)?);
            // Slow batches come in parts, the first of which is always there.
            if one.iter().zip(&other).any(|(one, other)| one != other) {
                return Ok(false);
            }
            if start.elapsed().as_secs_f64() > PATIENCE {
                break;
            }
        }
        Ok(true)
    }

    /// The bits of x of these rows, with seeds from this number on; nothing if they cannot be had.
    fn answer(
        &self,
        py: Python<'_>,
        pool: Option<&mut Pool>,
        theta: &[f64],
        first: usize,
    ) -> PyResult<Vec<u64>> {
        let count = theta.len() / self.dims().0;
        let streams = Streams::new(0).simulations(Purpose::Simulation, 1);
        let seeds = (first..first + count).map(|row| streams.stream(row as u64).seed()).collect();
        let work = Rows { theta: theta.to_vec(), seeds };
        let answer = match pool {
            Some(pool) => pool.call(py, self, &work)?,
            None => Ok(self.call(py, &work, 0..count)?),
        };
        let bits = |answer: Answer| answer.x.into_iter().map(f64::to_bits).collect();
        Ok(answer.map_or(Vec::new(), bits))
    }
}
