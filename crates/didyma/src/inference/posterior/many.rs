//! A posterior at many observations at once: draws and log-densities.
//!
//! A flow goes through pieces of equal work, whatever the observations and rows that they hold: its tiles are full though each
//! observation has a few rows, and all threads work though there are few observations. Results are put together in waves,
//! so that memory beyond the result does not grow with it. A score, and draws that may be rejected, go from observation to
//! observation.

use super::streams::BLOCK;
use super::{Posterior, SampleStreams};
use crate::density::Base;
use crate::error::{Error, Result};
use crate::parallel;
use crate::problem::question::check_observation;
use crate::rows::Rows;
use std::ops::Range;

/// Rows of a piece of work, but for a last block of draws.
const PIECE: usize = 4096;
/// Pieces of a wave.
const WAVE: usize = 64;

impl Posterior {
    /// `count` draws of q at each row of `x`: those of the first row, then those of the second, and so on, each of as many numbers
    /// as there are parameters. All are inside the prior's support.
    ///
    /// Each row has random numbers of its own, by its place: its draws depend neither on the other rows nor on `threads`, and
    /// are those of [`Posterior::sample_at`] by [`SampleStreams::of_row`]. So the first row's are those of `sample_at` by these
    /// very streams.
    pub fn sample_many(
        &self,
        x: Rows,
        count: usize,
        streams: SampleStreams,
        threads: usize,
    ) -> Result<Vec<f64>> {
        streams.check(self.dim())?;
        self.check_observations(x)?;
        let mut all = room(x.len(), count.saturating_mul(self.dim()))?;
        if self.model().flow().is_some() && self.coordinates.is_unbounded() {
            let draws = Draws { x, count, streams };
            let pieces = draws.units().div_ceil(draws.units_of_piece());
            in_waves(pieces, WAVE, threads, &mut all, |i| self.piece_of_draws(&draws, i))?;
            return Ok(all);
        }
        // Either the observations are shared out among the threads, or the draws of each.
        let (wave, within) = if count <= PIECE { (WAVE, 1) } else { (1, threads) };
        in_waves(x.len(), wave, threads, &mut all, |row| {
            let found = self.sample_at(x.row(row), count, streams.of_row(row), within);
            found.map(|samples| samples.theta).map_err(|error| error.at_row("x", row))
        })?;
        Ok(all)
    }

    /// log q(θ | x) of each row of `theta`, normalised over the prior's support; −∞ outside of it. Row i of `theta` belongs to row i
    /// of `x`; or there are m times as many, and each row of `x` has the next m, in the order of [`Posterior::sample_many`].
    pub fn log_density_many(&self, theta: Rows, x: Rows, threads: usize) -> Result<Vec<f64>> {
        theta.expect_columns(self.dim(), "parameters of the prior")?;
        theta.expect_finite()?;
        self.check_observations(x)?;
        if !theta.len().is_multiple_of(x.len()) {
            theta.expect_rows(x.len(), "one for each row of x, or as many for each")?;
        }
        let each = theta.len() / x.len();
        let mut all = room(theta.len(), 1)?;
        if self.model().flow().is_none() {
            in_waves(x.len(), WAVE, threads, &mut all, |row| {
                let own = &theta.data()[row * each * self.dim()..(row + 1) * each * self.dim()];
                self.log_density_at(x.row(row), Rows::new("theta", own, self.dim())?, 1)
            })?;
            return Ok(all);
        }
        let log_mass = self.log_masses(x, threads)?;
        let pieces = theta.len().div_ceil(PIECE);
        in_waves(pieces, WAVE, threads, &mut all, |i| {
            let rows = i * PIECE..theta.len().min((i + 1) * PIECE);
            self.piece_of_densities((theta, x), each, &log_mass, rows)
        })?;
        Ok(all)
    }

    /// Refuses observations that q cannot be asked at, and none at all.
    fn check_observations(&self, x: Rows) -> Result<()> {
        x.expect_columns(self.coordinates.x_dim(), "one for each summary of the simulator")?;
        x.expect_rows_from(1, "an observation in each")?;
        x.expect_finite()?;
        let mut rows = x.iter().enumerate();
        rows.try_for_each(|(row, x)| check_observation(x).map_err(|error| error.at_row("x", row)))
    }

    /// Features of these observations.
    fn features_of(&self, x: Rows, rows: Range<usize>) -> Vec<f32> {
        let features = |row| self.coordinates.features(x.row(row).iter().copied());
        rows.flat_map(features).collect()
    }

    /// Draws of some observations, or some of the draws of one, through the flow together.
    fn piece_of_draws(&self, draws: &Draws, piece: usize) -> Result<Vec<f64>> {
        let (dim, blocks) = (self.dim(), draws.blocks());
        let first = piece * draws.units_of_piece();
        let units = first..draws.units().min(first + draws.units_of_piece());
        let rows = units.start / blocks..units.end.div_ceil(blocks);
        let (mut base, mut sizes) = (Base::default(), vec![0; rows.len()]);
        for unit in units {
            let (row, block) = (unit / blocks, unit % blocks);
            let size = BLOCK.min(draws.count - block * BLOCK);
            let from = draws.streams.of_row(row).base(&self.ensemble, 1.0, block as u64)?;
            base.extend(&from, size, dim);
            sizes[row - rows.start] += size;
        }
        let features = self.features_of(draws.x, rows);
        let x = Rows::new("x", &features, draws.x.columns())?;
        let z = self.ensemble.transport_groups(&*self.device, &base, x, &sizes)?;
        // In unbounded coordinates all are inside.
        let inside = z.chunks_exact(dim).filter_map(|z| self.theta_inside(z));
        Ok(inside.flat_map(|(theta, _)| theta).collect())
    }

    /// Densities of some rows of θ, of which so many share an x, through the flow together.
    fn piece_of_densities(
        &self,
        (theta, x): (Rows, Rows),
        each: usize,
        log_mass: &[f64],
        rows: Range<usize>,
    ) -> Result<Vec<f64>> {
        let inside = self.inside(rows.clone().map(|row| theta.row(row)));
        let observed = rows.start / each..rows.end.div_ceil(each);
        let sizes: Vec<usize> = observed
            .clone()
            .map(|row| {
                let own = (row * each).max(rows.start)..((row + 1) * each).min(rows.end);
                inside.count(own.start - rows.start..own.end - rows.start)
            })
            .collect();
        let features = self.features_of(x, observed);
        let (z, x) =
            (Rows::new("z", &inside.z, self.dim())?, Rows::new("x", &features, x.columns())?);
        let log_q = self.ensemble.log_density_at_groups(&*self.device, z, x, &sizes)?;
        let found = inside.log_densities(&log_q).into_iter().zip(rows);
        Ok(found.map(|(log_q, row)| log_q - log_mass[row / each]).collect())
    }

    /// Logarithms of the mass of q inside the support at each row of `x`.
    fn log_masses(&self, x: Rows, threads: usize) -> Result<Vec<f64>> {
        let mass = |row| {
            let found = self.log_mass_inside(x.row(row), 1);
            found.map_err(|error| error.at_row("x", row))
        };
        parallel::map(x.len(), threads, mass).into_iter().collect()
    }
}

/// Draws at many observations, in units: blocks of one observation that have a random stream of their own.
struct Draws<'a> {
    x: Rows<'a>,
    count: usize,
    streams: SampleStreams,
}

impl Draws<'_> {
    /// Units of an observation.
    fn blocks(&self) -> usize {
        self.count.div_ceil(BLOCK)
    }

    fn units(&self) -> usize {
        self.x.len() * self.blocks()
    }

    fn units_of_piece(&self) -> usize {
        PIECE / self.count.clamp(1, BLOCK)
    }
}

/// Room for so many rows of so many numbers.
fn room(rows: usize, numbers: usize) -> Result<Vec<f64>> {
    let mut all = Vec::new();
    match all.try_reserve_exact(rows.saturating_mul(numbers)) {
        Ok(()) => Ok(all),
        Err(_) => {
            let value = format!("{numbers} numbers at {rows} observations");
            Err(Error::setting("count", value, "few enough for the memory"))
        }
    }
}

/// Puts pieces together in their order, so many at a time.
fn in_waves(
    pieces: usize,
    wave: usize,
    threads: usize,
    all: &mut Vec<f64>,
    work: impl Fn(usize) -> Result<Vec<f64>> + Sync,
) -> Result<()> {
    for first in (0..pieces).step_by(wave) {
        let found = parallel::map(wave.min(pieces - first), threads, |i| work(first + i));
        for piece in found {
            all.extend(piece?);
        }
    }
    Ok(())
}
