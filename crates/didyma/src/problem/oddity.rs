//! Oddities of summaries that a user should know of: values that recur exactly, and simulations far from all others.

use crate::math::masses::Masses;
use crate::rows::Rows;
use crate::storage::table::digits;
use serde::{Deserialize, Serialize};

/// Share of the simulations, and how many of them, that lie far away at least.
const LEAST_SHARE: f64 = 0.02;
const LEAST_COUNT: usize = 5;
/// Share of the simulations from which a value is odd that was not observed, whatever the others are.
const MOST: f64 = 0.8;
/// Width of the gap before them, at least, in widths of the simulations on the other side of it.
const GAP: f64 = 10.0;

/// A summary whose simulations are of two kinds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Oddity {
    /// The summary, from 0.
    pub summary: usize,
    /// The value that recurs, or the nearest of those far away.
    pub value: f64,
    /// True if it recurs exactly.
    pub recurs: bool,
    /// Share of the simulations that are so.
    pub share: f64,
    /// The least and the greatest of the others.
    pub others: (f64, f64),
}

impl Oddity {
    /// The oddity of a summary, if it has one.
    pub(crate) fn of(summary: usize, x_o: f64, mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let all = values.len() as f64;
        let others = (*values.first()?, *values.last()?);
        let commonest = values.chunk_by(|a, b| a == b).max_by_key(|same| same.len())?;
        let share = commonest.len() as f64 / all;
        if (MOST..1.0).contains(&share) && commonest[0] != x_o {
            return Some(Self { summary, value: commonest[0], recurs: true, share, others });
        }
        if let Some(Masses { values, rest }) = Masses::of(&values) {
            let (value, count) = *values.first()?;
            let others = (*rest.first()?, *rest.last()?);
            return Some(Self { summary, value, recurs: true, share: count as f64 / all, others });
        }
        let (far, value, others) = cluster(&values)?;
        Some(Self { summary, value, recurs: false, share: far as f64 / all, others })
    }

    /// The oddities of rows of summaries around an observation.
    pub(crate) fn of_rows(x_o: &[f64], rows: Rows) -> Vec<Self> {
        let column = |i: usize| rows.iter().map(|row| row[i]).collect();
        x_o.iter().enumerate().filter_map(|(i, &x_o)| Self::of(i, x_o, column(i))).collect()
    }

    /// The oddity in a sentence, of a summary of this name.
    pub fn sentence(&self, name: &str) -> String {
        let [value, low, high] = [self.value, self.others.0, self.others.1].map(digits);
        let percent = 100.0 * self.share;
        if self.recurs {
            format!(
                "{name} is exactly {value} in {percent:.0} % of the simulations: if that means missing, give NaN instead"
            )
        } else {
            format!(
                "{name} is {value} or beyond in {percent:.0} % of the simulations, far from the others ({low} to {high}): if \
                 those failed, give NaN instead"
            )
        }
    }
}

/// The smaller of two clusters with a wide gap between them: how many it has, its number next to the gap, and the range
/// of the larger. Numbers are in order.
fn cluster(sorted: &[f64]) -> Option<(usize, f64, (f64, f64))> {
    let n = sorted.len();
    let least = LEAST_COUNT.max((LEAST_SHARE * n as f64).ceil() as usize);
    let (first, last) = (*sorted.first()?, *sorted.last()?);
    let gap = |i: &usize| sorted[*i] - sorted[*i - 1];
    let at = (1..n).max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let low = (first, sorted[at - 1]);
    let high = (sorted[at], last);
    let (count, nearest, others) =
        if at < n - at { (at, low.1, high) } else { (n - at, high.0, low) };
    let wide = gap(&at) > GAP * (others.1 - others.0) && others.1 > others.0;
    (wide && count >= least).then_some((count, nearest, others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand::RngExt;
    use rand_distr::{Cauchy, Distribution, Poisson};

    #[test]
    fn sentinels_and_far_clusters_are_told_and_tails_and_counts_are_not() {
        let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
        let mut plain: Vec<f64> = (0..1000).map(|_| rng.random()).collect();
        assert_eq!(Oddity::of(0, 0.5, plain.clone()), None);
        plain[..200].fill(-999.0);
        let found = Oddity::of(0, 0.5, plain.clone()).unwrap();
        assert!(found.recurs && found.value == -999.0 && found.share == 0.2, "{found:?}");
        assert!(found.sentence("x1").starts_with("x1 is exactly -999 in 20 % of the simulations"));
        plain[..200].iter_mut().for_each(|v| *v = 500.0 + rng.random::<f64>());
        let found = Oddity::of(0, 0.5, plain).unwrap();
        assert!(!found.recurs && found.value >= 500.0 && found.share == 0.2, "{found:?}");
        assert!(found.sentence("x1").contains(" or beyond in 20 % of the simulations"));
        let cauchy = Cauchy::new(0.0, 1.0).unwrap();
        assert_eq!(Oddity::of(0, 0.5, (0..1000).map(|_| cauchy.sample(&mut rng)).collect()), None);
        let wide = (0..1000).map(|_| 10f64.powf(12.0 * rng.random::<f64>())).collect();
        assert_eq!(Oddity::of(0, 0.5, wide), None);
        for mean in [0.5, 3.0, 40.0] {
            let counts = Poisson::new(mean).unwrap();
            assert_eq!(
                Oddity::of(0, 0.5, (0..1000).map(|_| counts.sample(&mut rng)).collect()),
                None
            );
        }
        assert_eq!(Oddity::of(0, 0.5, vec![3.0; 100]), None);
        let mostly: Vec<f64> =
            (0..100).map(|i| if i < 95 { -999.0 } else { f64::from(i) }).collect();
        assert!(Oddity::of(0, 0.5, mostly.clone()).is_some_and(|odd| odd.share == 0.95));
        assert_eq!(Oddity::of(0, -999.0, mostly), None);
        assert_eq!(Oddity::of(0, 0.5, Vec::new()), None);
    }
}
