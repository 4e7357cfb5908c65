//! Oddities of summaries that a user should know of: values that recur exactly, and simulations far from all others.

use crate::math::masses::Masses;
use serde::{Deserialize, Serialize};

/// Share of the simulations, and how many of them, that lie far away at least.
const LEAST_SHARE: f64 = 0.02;
const LEAST_COUNT: usize = 5;
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
    pub(crate) fn of(summary: usize, mut values: Vec<f64>) -> Option<Self> {
        values.sort_unstable_by(f64::total_cmp);
        let all = values.len() as f64;
        if let Some(Masses { values, rest }) = Masses::of(&values) {
            let (value, count) = *values.first()?;
            let others = (*rest.first()?, *rest.last()?);
            return Some(Self { summary, value, recurs: true, share: count as f64 / all, others });
        }
        let (far, value, others) = cluster(&values)?;
        Some(Self { summary, value, recurs: false, share: far as f64 / all, others })
    }

    /// The oddities of rows of summaries.
    pub(crate) fn of_rows<'a>(rows: impl Iterator<Item = &'a [f64]> + Clone) -> Vec<Self> {
        let columns = rows.clone().next().map_or(0, <[f64]>::len);
        (0..columns).filter_map(|i| Self::of(i, rows.clone().map(|row| row[i]).collect())).collect()
    }

    /// The oddity in a sentence, of a summary of this name.
    pub fn sentence(&self, name: &str) -> String {
        let Self { value, others: (low, high), .. } = self;
        let percent = 100.0 * self.share;
        if self.recurs {
            format!(
                "{name} is exactly {value} in {percent:.0} % of the simulations, and hardly ever the same in the others: if \
                 that stands for a missing value, give NaN instead, and it counts as a failure"
            )
        } else {
            format!(
                "{name} is far away in {percent:.0} % of the simulations (as {value}, where the others are between {low} and \
                 {high}): if those are failures, give NaN instead, and they count as such"
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
        assert_eq!(Oddity::of(0, plain.clone()), None);
        plain[..200].fill(-999.0);
        let found = Oddity::of(0, plain.clone()).unwrap();
        assert!(found.recurs && found.value == -999.0 && found.share == 0.2, "{found:?}");
        assert!(found.sentence("x1").starts_with("x1 is exactly -999 in 20 % of the simulations"));
        plain[..200].iter_mut().for_each(|v| *v = 500.0 + rng.random::<f64>());
        let found = Oddity::of(0, plain).unwrap();
        assert!(!found.recurs && found.value >= 500.0 && found.share == 0.2, "{found:?}");
        assert!(found.sentence("x1").starts_with("x1 is far away in 20 % of the simulations"));
        let cauchy = Cauchy::new(0.0, 1.0).unwrap();
        assert_eq!(Oddity::of(0, (0..1000).map(|_| cauchy.sample(&mut rng)).collect()), None);
        let wide = (0..1000).map(|_| 10f64.powf(12.0 * rng.random::<f64>())).collect();
        assert_eq!(Oddity::of(0, wide), None);
        for mean in [0.5, 3.0, 40.0] {
            let counts = Poisson::new(mean).unwrap();
            assert_eq!(Oddity::of(0, (0..1000).map(|_| counts.sample(&mut rng)).collect()), None);
        }
        assert_eq!(Oddity::of(0, vec![3.0; 100]), None);
        assert_eq!(Oddity::of(0, Vec::new()), None);
    }
}
