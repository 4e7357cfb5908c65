//! Both tails of a binomial law, each to its last digits.

/// Probabilities below this share of the largest one are 0.
const NEGLIGIBLE: f64 = 1e-300;

/// P(X ≤ c) and P(X ≥ c) for X ~ Bin(n, p) and every c.
#[derive(Clone, Debug)]
pub(crate) struct BinomialTails {
    /// Smallest c whose probability counts.
    first: usize,
    /// P(X ≤ first), P(X ≤ first + 1), …, summed from below.
    lower: Vec<f64>,
    /// P(X ≥ first), P(X ≥ first + 1), …, summed from above.
    upper: Vec<f64>,
}

impl BinomialTails {
    /// For 0 < p ≤ 1. Probabilities follow from the largest one by their ratios, outwards, and then sum to 1: no power
    /// and no factorial is formed.
    pub(crate) fn new(n: usize, p: f64) -> Self {
        let mode = (((n + 1) as f64 * p) as usize).min(n);
        let (odds, real) = (p / (1.0 - p), |c: usize| c as f64);
        let mut below = vec![1.0];
        for c in (1..=mode).rev() {
            let mass = below[below.len() - 1] * real(c) / (real(n - c + 1) * odds);
            if mass < NEGLIGIBLE {
                break;
            }
            below.push(mass);
        }
        let first = mode + 1 - below.len();
        let mut masses: Vec<f64> = below.into_iter().rev().collect();
        for c in mode..n {
            let mass = masses[masses.len() - 1] * real(n - c) * odds / real(c + 1);
            if mass < NEGLIGIBLE {
                break;
            }
            masses.push(mass);
        }
        let total: f64 = masses.iter().sum();
        let sums = |masses: &mut dyn Iterator<Item = &f64>| -> Vec<f64> {
            let sum = masses.scan(0.0, |sum, mass| {
                *sum += mass / total;
                Some(*sum)
            });
            sum.collect()
        };
        let lower = sums(&mut masses.iter());
        let mut upper = sums(&mut masses.iter().rev());
        upper.reverse();
        Self { first, lower, upper }
    }

    /// P(X ≤ c).
    pub(crate) fn at_most(&self, c: usize) -> f64 {
        if c < self.first { 0.0 } else { self.lower.get(c - self.first).copied().unwrap_or(1.0) }
    }

    /// P(X ≥ c).
    pub(crate) fn at_least(&self, c: usize) -> f64 {
        if c < self.first { 1.0 } else { self.upper.get(c - self.first).copied().unwrap_or(0.0) }
    }

    /// The smallest and the largest c both of whose tails are larger than this; `None` if there is no such c.
    pub(crate) fn range_above(&self, tail: f64) -> Option<(usize, usize)> {
        let low = self.lower.partition_point(|&p| p <= tail);
        let high = self.upper.partition_point(|&p| p > tail);
        (low < high).then(|| (self.first + low, self.first + high - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_sums_of_the_definition() {
        // Bin(4, 1/4): (81, 108, 54, 12, 1) / 256.
        let tails = BinomialTails::new(4, 0.25);
        for (c, lower, upper) in [(0, 81.0, 256.0), (1, 189.0, 175.0), (4, 256.0, 1.0)] {
            assert!((tails.at_most(c) * 256.0 - lower).abs() < 1e-12);
            assert!((tails.at_least(c) * 256.0 - upper).abs() < 1e-12);
        }
        assert_eq!(tails.range_above(0.3), Some((0, 1)));
        assert_eq!(tails.range_above(0.9), None);
        assert_eq!((tails.at_most(9), tails.at_least(9)), (1.0, 0.0));
    }

    #[test]
    fn the_far_tail_keeps_its_digits_and_certainty_is_one_point() {
        // P(X ≥ 1000) for Bin(1000, 0.6) is 0.6^1000.
        let tail = BinomialTails::new(1000, 0.6).at_least(1000);
        // A thousand ratios, each with a rounding or three of 1e-16.
        assert!((tail.ln() / (1000.0 * 0.6f64.ln()) - 1.0).abs() < 1e-12, "{tail}");
        let certain = BinomialTails::new(7, 1.0);
        assert_eq!((certain.at_most(6), certain.at_most(7), certain.at_least(7)), (0.0, 1.0, 1.0));
    }
}
