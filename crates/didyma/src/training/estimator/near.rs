//! Inner samples of the pool, drawn more often where their own x is close to the outer one.

use super::{Draws, Source};
use crate::error::{Error, Result};
use crate::parallel;
use crate::rng::Stream;
use crate::rows::Rows;
use rand::RngExt;
use std::sync::Arc;

/// Share of the draws that come from the whole pool: no weight exceeds 1 / UNIFORM, wherever the neighbours are.
const UNIFORM: f64 = 0.3;

/// Neighbours of a row, at most: their lists are kept in memory.
const MOST: usize = 500;

/// Rows whose neighbours are looked for, at most: a hundred seconds of a core, or some.
const MOST_ROWS: usize = 100_000;

/// For each row, the rows whose x is nearest to its own.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbours {
    each: usize,
    rows: Vec<u32>,
}

impl Neighbours {
    /// How many neighbours rows have among so many: twice the root, a share that falls with the number.
    fn among(rows: usize) -> usize {
        ((2.0 * (rows as f64).sqrt()) as usize).clamp(1, (rows - 1).min(MOST))
    }

    /// The nearest rows of each row of x, itself left out, by Euclidean distance; where distances are equal, the lower row
    /// number. Refuses rows that are all alike.
    pub fn new(x: Rows<f32>, threads: usize) -> Result<Self> {
        let first = x.iter().next();
        if x.len() < 2 || x.iter().all(|row| Some(row) == first) {
            let why = "pool where the summaries of all simulations are the same: none is nearer than another";
            return Err(Error::setting("train.inner", "near", why));
        }
        if x.len() > MOST_ROWS {
            let why = format!(
                "pool or mixture for more than {MOST_ROWS} simulations: all are compared with all"
            );
            return Err(Error::setting("train.inner", "near", why));
        }
        let each = Self::among(x.len());
        let lists = parallel::map(x.len(), threads, |own| nearest(x, own, each));
        Ok(Self { each, rows: lists.into_iter().flatten().collect() })
    }

    /// The neighbours of a row, in the order of their numbers.
    fn of(&self, row: u32) -> &[u32] {
        &self.rows[row as usize * self.each..][..self.each]
    }
}

fn nearest(x: Rows<f32>, own: usize, each: usize) -> Vec<u32> {
    let distance =
        |row: &[f32]| -> f32 { row.iter().zip(x.row(own)).map(|(a, b)| (a - b) * (a - b)).sum() };
    let others = (0u32..).zip(x.iter()).filter(|(row, _)| *row as usize != own);
    let mut all: Vec<(f32, u32)> = others.map(|(row, x)| (distance(x), row)).collect();
    let order = |a: &(f32, u32), b: &(f32, u32)| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1));
    all.select_nth_unstable_by(each - 1, order);
    let mut rows: Vec<u32> = all[..each].iter().map(|(_, row)| *row).collect();
    rows.sort_unstable();
    rows
}

/// Rows of a pool of n, independent draws from
///
/// ```text
/// π_j = 0.3 / (n − 1) + 0.7 / k   (j one of the k neighbours of the outer row in the pool; else the first term alone)
/// ```
///
/// with log-weights −log((n − 1) π_j), so that Z stays that of the pool. The outer row itself is never drawn.
///
/// For the excluded coupling only: the density of an atom given x alone is an integral over all x' that are close, which
/// nobody knows, and with π_j in its place the inclusive form has another minimum than the posterior.
#[derive(Clone, Debug)]
pub struct Near {
    neighbours: Arc<Neighbours>,
    /// In the order of their numbers.
    pool: Vec<u32>,
    /// The outer row of the last draw, and its neighbours in the pool.
    last: Option<u32>,
    near: Vec<u32>,
}

impl Near {
    /// Draws from these rows, two at least.
    pub fn new(neighbours: Arc<Neighbours>, rows: impl IntoIterator<Item = u32>) -> Self {
        let mut pool: Vec<u32> = rows.into_iter().collect();
        pool.sort_unstable();
        Self { neighbours, pool, last: None, near: Vec::new() }
    }

    fn find(&mut self, own: u32) {
        if self.last != Some(own) {
            let Self { neighbours, pool, near, .. } = self;
            let inside = |row: &&u32| pool.binary_search(row).is_ok();
            near.clear();
            near.extend(neighbours.of(own).iter().filter(inside));
            self.last = Some(own);
        }
    }
}

impl Source for Near {
    fn largest_block(&self) -> usize {
        if self.pool.len() > 1 { usize::MAX } else { 0 }
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        self.find(own);
        let Self { pool, near, .. } = self;
        let others = pool.len() - usize::from(pool.binary_search(&own).is_ok());
        let uniform = if near.is_empty() { 1.0 } else { UNIFORM };
        let (everywhere, beside) =
            (uniform / others as f64, (1.0 - uniform) / near.len().max(1) as f64);
        for _ in 0..count {
            let row = if rng.random::<f64>() < uniform {
                loop {
                    let row = pool[rng.random_range(0..pool.len())];
                    if row != own {
                        break row;
                    }
                }
            } else {
                near[rng.random_range(0..near.len())]
            };
            let is_near = near.binary_search(&row).is_ok();
            let density = everywhere + if is_near { beside } else { 0.0 };
            draws.push_weighted(row, -(others as f64 * density).ln());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    /// Rows 0 to 99 on a line, a unit apart but for the last, far away.
    fn line() -> Vec<f32> {
        (0..100).map(|i| if i < 99 { i as f32 } else { 1e4 }).collect()
    }

    #[test]
    fn neighbours_are_the_nearest_rows() {
        let x = line();
        let found = Neighbours::new(Rows::new("x", &x, 1).unwrap(), 2).unwrap();
        assert_eq!(found.each, 20);
        assert!(found.of(50).iter().copied().eq((40..50).chain(51..61)));
        // Of two at the same distance, the one with the lower number.
        assert!(found.of(99).iter().copied().eq(79..99));
        assert!(found.of(0).iter().copied().eq(1..21));
    }

    #[test]
    fn summaries_that_are_all_alike_have_no_neighbours() {
        let told = Neighbours::new(Rows::new("x", &[2.5f32; 40], 2).unwrap(), 1).unwrap_err();
        assert!(told.to_string().contains("none is nearer than another"), "{told}");
    }

    /// Each row of the pool comes as often as π_j says, none of the others, never the own one, and with its weight; so
    /// that the mean weight of a row is what it is in the pool.
    #[test]
    fn draws_follow_their_law_and_weights_make_up_for_it() {
        let x = line();
        let neighbours = Neighbours::new(Rows::new("x", &x, 1).unwrap(), 1).unwrap();
        let pool: Vec<u32> = (0..100).filter(|row| row % 4 != 1).collect();
        let mut near = Near::new(neighbours.into(), pool.iter().copied());
        let (own, count) = (52, 200_000);
        let mut draws = Draws::default();
        let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
        near.draw(own, count, &mut rng, &mut draws);
        let others = (pool.len() - 1) as f64;
        let close = |row: u32| row.abs_diff(own) <= 10 && row != own && row % 4 != 1;
        let beside = 0.7 / (0..100).filter(|&row| close(row)).count() as f64;
        for &row in &pool {
            let found = draws.rows().iter().filter(|&&r| r == row).count() as f64;
            let density = if row == own { 0.0 } else { 0.3 / others };
            let density = density + if close(row) { beside } else { 0.0 };
            // Binomial: 4.5 standard deviations for 75 counts.
            let error = 4.5 * (count as f64 * density * (1.0 - density)).sqrt();
            assert!((found - count as f64 * density).abs() <= error, "{row}: {found}");
            let place = draws.rows().iter().position(|&r| r == row);
            let weight = place.map(|place| draws.log_weights()[place].exp());
            assert!(weight.is_none_or(|w| (w * others * density - 1.0).abs() < 1e-12));
        }
        assert!(draws.rows().iter().all(|row| pool.binary_search(row).is_ok()));
    }

    /// Rows that have no neighbour in the pool are drawn from all of it.
    #[test]
    fn without_neighbours_draws_are_uniform() {
        let x = line();
        let neighbours = Neighbours::new(Rows::new("x", &x, 1).unwrap(), 1).unwrap();
        let mut near = Near::new(neighbours.into(), [0, 1, 2]);
        let mut draws = Draws::default();
        near.draw(99, 1000, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
        assert!(draws.log_weights().is_empty() && (0..3).all(|row| draws.rows().contains(&row)));
    }
}
