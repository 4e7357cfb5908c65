//! Inner samples of another law, made beforehand for every outer row.

use super::{Draws, Source};
use crate::rng::Stream;
use rand::RngExt;
use std::sync::Arc;

/// Inner samples of outer rows: `size` independent draws each of a law r that is near the posterior of its x, as row numbers
/// of a dataset, with log p̃ − log r.
#[derive(Clone, Debug, PartialEq)]
pub struct Stock {
    /// Place of each outer row; [`Stock::NONE`] for rows that have no samples.
    places: Vec<u32>,
    size: usize,
    rows: Vec<u32>,
    log_weights: Vec<f32>,
    /// log p̃ − log r of the outer θ, by place.
    outer: Vec<f32>,
    /// True if the samples of a row are a net in its order, each aligned run of which is one.
    is_net: bool,
}

impl Stock {
    /// The place of a row that has no samples.
    const NONE: u32 = u32::MAX;

    /// Samples of the outer rows `of`, place by place: `rows` and `log_weights` have as many numbers each as there are
    /// samples, `outer` one for each place.
    ///
    /// # Panics
    /// Unless the lengths fit.
    pub fn new(of: &[u32], rows: Vec<u32>, log_weights: Vec<f32>, outer: Vec<f32>) -> Self {
        let size = rows.len().checked_div(of.len()).unwrap_or(0);
        assert!(rows.len() == size * of.len() && rows.len() == log_weights.len());
        assert_eq!(of.len(), outer.len(), "a log-weight for each outer row");
        let count = of.iter().max().map_or(0, |&row| row as usize + 1);
        let mut places = vec![Self::NONE; count];
        of.iter().zip(0..).for_each(|(&row, place)| places[row as usize] = place);
        Self { places, size, rows, log_weights, outer, is_net: false }
    }

    /// These samples, those of a row being a net in their order: every aligned run of 2^k of them has one law for its k.
    pub fn of_nets(self) -> Self {
        Self { is_net: true, ..self }
    }

    /// The place of an outer row.
    ///
    /// # Panics
    /// If it has no samples.
    fn place(&self, own: u32) -> usize {
        let place = self.places.get(own as usize).copied().filter(|place| *place != Self::NONE);
        place.expect("every outer row of a plan has samples") as usize
    }
}

/// Blocks of a [`Stock`]: a random choice without replacement among an outer row's samples. Unless they are a net, these are
/// independent and of one law, so that such a block is a block of independent samples, and the levels telescope as with fresh ones.
///
/// Of a net a block is an aligned run of 2^k samples at random. Its halves are aligned runs, too, and have the law of smaller
/// blocks, on which the telescope rests.
///
/// ```
/// use didyma::estimator::{Bank, Draws, Source, Stock};
/// use didyma::rng::{Purpose, Streams};
/// // Two samples for outer row 7: rows 3 and 4, of which the second is drawn twice as often as p̃ would.
/// let stock = Stock::new(&[7], vec![3, 4], vec![0.0, -0.69], vec![0.1]);
/// let mut bank = Bank::new(stock.into());
/// let mut draws = Draws::default();
/// bank.draw(7, 2, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
/// let mut rows = draws.rows().to_vec();
/// rows.sort();
/// assert_eq!((rows, bank.largest_block()), (vec![3, 4], 2));
/// ```
#[derive(Clone, Debug)]
pub struct Bank {
    stock: Arc<Stock>,
    order: Vec<u32>,
}

impl Bank {
    /// Blocks of these samples.
    pub fn new(stock: Arc<Stock>) -> Self {
        let order = (0..stock.size as u32).collect();
        Self { stock, order }
    }

    /// True if samples of a row are a net, and not independent.
    pub fn has_nets(&self) -> bool {
        self.stock.is_net
    }
}

impl Source for Bank {
    fn largest_block(&self) -> usize {
        self.stock.size
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        let Self { stock, order } = self;
        let size = stock.size;
        assert!(count <= size, "a block no larger than the samples of a row");
        let first = stock.place(own) * size;
        if stock.is_net {
            assert!(count.is_power_of_two() && size % count == 0, "an aligned run of a net");
            let run = first + rng.random_range(0..size / count) * count;
            for place in run..run + count {
                draws.push_weighted(stock.rows[place], stock.log_weights[place].into());
            }
            return;
        }
        // A shuffle of any order is uniform, but a plan depends on its random stream alone: the order begins anew.
        (0u32..).zip(&mut *order).for_each(|(i, place)| *place = i);
        for step in 0..count {
            order.swap(step, rng.random_range(step..size));
            let place = first + order[step] as usize;
            draws.push_weighted(stock.rows[place], stock.log_weights[place].into());
        }
    }

    fn outer_log_weight(&self, own: u32) -> f64 {
        self.stock.outer[self.stock.place(own)].into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    /// Blocks of a net are its aligned runs, equally often.
    #[test]
    fn blocks_of_a_net_are_aligned_runs() {
        let weights = (10..18).map(|i| i as f32).collect();
        let stock = Stock::new(&[5], (10..18).collect(), weights, vec![0.5]).of_nets();
        let mut bank = Bank::new(stock.into());
        let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
        for size in [1, 2, 4, 8] {
            let (mut counts, blocks) = (vec![0u32; 8 / size], 10_000);
            for _ in 0..blocks {
                let mut draws = Draws::default();
                bank.draw(5, size, &mut rng, &mut draws);
                let first = draws.rows()[0];
                assert!((first..).zip(draws.rows()).all(|(expected, &row)| row == expected));
                assert_eq!((draws.log_weights()[0], (first - 10) % size as u32), (first.into(), 0));
                counts[(first as usize - 10) / size] += 1;
            }
            // Binomial with p = size/8: 4.5 standard deviations.
            let p = size as f64 / 8.0;
            let error = 4.5 * (f64::from(blocks) * p * (1.0 - p)).sqrt();
            let expected = f64::from(blocks) * p;
            assert!(counts.iter().all(|&count| (f64::from(count) - expected).abs() <= error));
        }
    }

    /// Every sample of the row, and none of another one, comes equally often to every place of a block, with its weight.
    #[test]
    fn blocks_are_uniform_choices_of_the_own_samples() {
        let stock = Stock::new(
            &[5, 2],
            (10..18).collect(),
            (10..18).map(|i| i as f32).collect(),
            vec![0.5, 0.25],
        );
        let mut bank = Bank::new(stock.into());
        let mut rng = Streams::new(1).stream(Purpose::Plan, 0, 0);
        let (mut counts, blocks) = ([[0u32; 4]; 3], 40_000);
        for _ in 0..blocks {
            let mut draws = Draws::default();
            bank.draw(2, 3, &mut rng, &mut draws);
            for (place, (&row, &weight)) in draws.rows().iter().zip(draws.log_weights()).enumerate()
            {
                assert_eq!(f64::from(row), weight);
                counts[place][row as usize - 14] += 1;
            }
        }
        assert_eq!((bank.outer_log_weight(5), bank.outer_log_weight(2)), (0.5, 0.25));
        // Binomial with p = 1/4: 4.5 standard deviations for 12 counts.
        let error = 4.5 * (f64::from(blocks) * 0.25 * 0.75).sqrt();
        for count in counts.into_iter().flatten() {
            assert!((f64::from(count) - f64::from(blocks) / 4.0).abs() < error, "{counts:?}");
        }
    }
}
