//! Where inner samples come from.

use crate::error::{Error, Result};
use crate::named::{Named, serde_by_name};
use crate::rng::Stream;
use rand::RngExt;

/// A source of inner samples, as row numbers.
pub trait Source {
    /// The largest block it can give.
    fn largest_block(&self) -> usize;

    /// Adds `count` inner samples for the outer row `own` to `draws`, in exchangeable order.
    ///
    /// # Panics
    /// If `count` exceeds the largest block.
    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws);

    /// log p̃ − log r of the outer θ, where it is one of the atoms.
    fn outer_log_weight(&self, _own: u32) -> f64 {
        0.0
    }
}

/// Inner samples: rows, and the log-weights of those that do not follow the proposal.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Draws {
    rows: Vec<u32>,
    /// One for each row, or none if every one is 0.
    log_weights: Vec<f64>,
}

impl Draws {
    /// Adds a sample of the proposal.
    pub fn push(&mut self, row: u32) {
        self.push_weighted(row, 0.0);
    }

    /// Adds a sample of another law r, with log p̃ − log r.
    pub fn push_weighted(&mut self, row: u32, log_weight: f64) {
        if log_weight != 0.0 || !self.log_weights.is_empty() {
            self.log_weights.resize(self.rows.len(), 0.0);
            self.log_weights.push(log_weight);
        }
        self.rows.push(row);
    }

    /// Forgets all samples and keeps the memory.
    pub fn clear(&mut self) {
        self.rows.clear();
        self.log_weights.clear();
    }

    /// The rows.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// Their log-weights; empty if every one is 0.
    pub fn log_weights(&self) -> &[f64] {
        &self.log_weights
    }
}

/// How a [`Pool`] draws.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Replacement {
    /// No row twice in a block, and never the outer row itself: left in by chance it would add its own
    /// density to the normalising constant about once in N/M blocks. The blocks stay exchangeable, so
    /// multilevel sums telescope as with fresh samples.
    #[default]
    Without,
    /// Every draw from the whole pool, the outer row included: what the authors' code does.
    With,
}

impl Named for Replacement {
    const ALL: &'static [(&'static str, Self)] =
        &[("without", Self::Without), ("with", Self::With)];
}

serde_by_name!(Replacement);

/// Rows of the dataset that inner samples are drawn from: all training rows, or those of the batch.
/// Rows that are held out for validation are never in it.
///
/// ```
/// use didyma::estimator::{Draws, Pool, Replacement, Source};
/// use didyma::rng::{Purpose, Streams};
/// let mut pool = Pool::new(0..100, Replacement::Without)?;
/// let mut draws = Draws::default();
/// pool.draw(7, 99, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
/// let mut rows = draws.rows().to_vec();
/// rows.sort();
/// assert!(rows.into_iter().eq((0..100).filter(|&row| row != 7))); // all others, once each
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Pool {
    rows: Vec<u32>,
    replacement: Replacement,
    swaps: Vec<u32>,
}

impl Pool {
    /// A pool of these rows, each given once.
    pub fn new(rows: impl IntoIterator<Item = u32>, replacement: Replacement) -> Result<Self> {
        let mut pool = Self { rows: Vec::new(), replacement, swaps: Vec::new() };
        pool.refill(rows)?;
        let mut sorted = pool.rows.clone();
        sorted.sort_unstable();
        match sorted.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => {
                let why = "different rows, or a block could hold one twice";
                Err(Error::setting("pool", format!("with row {} twice", pair[0]), why))
            }
            None => Ok(pool),
        }
    }

    /// Number of rows.
    pub fn size(&self) -> usize {
        self.rows.len()
    }

    /// Replaces the rows by others, each given once, in the same memory: for atoms that come from the batch.
    pub fn refill(&mut self, rows: impl IntoIterator<Item = u32>) -> Result<()> {
        self.rows.clear();
        self.rows.extend(rows);
        match self.rows.is_empty() {
            true => Err(Error::setting("pool", "empty", "at least one row")),
            false => Ok(()),
        }
    }

    /// The first steps of a Fisher-Yates shuffle, which are undone afterwards: a draw takes time for
    /// its own size only, and depends on nothing but the random stream.
    fn draw_without(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        let (size, end) = (self.rows.len() as u32, draws.rows.len() + count);
        self.swaps.clear();
        for step in 0..size {
            if draws.rows.len() == end {
                break;
            }
            let other = rng.random_range(step..size);
            self.rows.swap(step as usize, other as usize);
            self.swaps.push(other);
            let row = self.rows[step as usize];
            if row != own {
                draws.push(row);
            }
        }
        assert_eq!(draws.rows.len(), end, "a block no larger than the pool without the outer row");
        for (step, &other) in self.swaps.iter().enumerate().rev() {
            self.rows.swap(step, other as usize);
        }
    }
}

impl Source for Pool {
    fn largest_block(&self) -> usize {
        match self.replacement {
            Replacement::Without => self.rows.len() - 1,
            Replacement::With => usize::MAX,
        }
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        match self.replacement {
            Replacement::Without => self.draw_without(own, count, rng, draws),
            Replacement::With => {
                let size = self.rows.len();
                (0..count).for_each(|_| draws.push(self.rows[rng.random_range(0..size)]));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    /// Over many blocks every other row comes equally often to every place, with or without own row
    /// in the pool, and the pool is as before.
    #[test]
    fn draws_are_uniform_over_rows_and_places() {
        let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
        let mut pool = Pool::new([10, 11, 12, 13, 14], Replacement::Without).unwrap();
        let mut counts = [[0u32; 5]; 3];
        let blocks = 60_000;
        for _ in 0..blocks {
            let mut draws = Draws::default();
            pool.draw(12, 3, &mut rng, &mut draws);
            draws
                .rows()
                .iter()
                .zip(&mut counts)
                .for_each(|(row, place)| place[*row as usize - 10] += 1);
        }
        assert_eq!(pool.rows, [10, 11, 12, 13, 14]);
        let expected = f64::from(blocks) / 4.0;
        // Binomial with p = 1/4: 4.5 standard deviations for 12 counts.
        let error = 4.5 * (f64::from(blocks) * 0.25 * 0.75).sqrt();
        for place in counts {
            for (row, count) in place.into_iter().enumerate() {
                match row {
                    2 => assert_eq!(count, 0),
                    _ => assert!((f64::from(count) - expected).abs() < error, "{row} {count}"),
                }
            }
        }
    }

    #[test]
    fn with_replacement_the_own_row_and_repetitions_occur() {
        let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
        let mut pool = Pool::new(0..4, Replacement::With).unwrap();
        let mut draws = Draws::default();
        pool.draw(2, 4000, &mut rng, &mut draws);
        let own = draws.rows().iter().filter(|&&row| row == 2).count() as f64;
        assert!((own - 1000.0).abs() < 4.0 * 750f64.sqrt()); // binomial, 4 standard deviations
    }
}
