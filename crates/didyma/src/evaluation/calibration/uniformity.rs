//! Are numbers between 0 and 1 uniform? A test of their distribution function, with exact p-values and bands.

use crate::error::{Error, Result};
use crate::math::binomial::BinomialTails;
use crate::math::ecdf::{Gate, passing_probability};
use crate::math::{kolmogorov, mean_and_deviation};
use crate::rows::Rows;
use serde::Serialize;

/// Fewest rows of a calibration: of fewer, even posteriors half as wide as they should be mostly pass.
pub const LEAST_ROWS: usize = 20;

/// Most places at which a distribution function is compared with its law.
pub const MOST_POINTS: usize = 100;

/// Tails that differ by less than this share are the same: z and 1 − z give equal ones but for rounding.
const SAME: f64 = 1e-9;

/// How far numbers in [0, 1] are from uniform.
///
/// Their distribution function F is compared with z at K = min(N, [`MOST_POINTS`]) places z_i = i/K. N F(z) is then a
/// draw of Bin(N, z), and
///
/// γ = 2 min over i < K of min( P(Bin(N, z_i) ≤ N F(z_i)), P(Bin(N, z_i) ≥ N F(z_i)) )
///
/// is small where F leaves its law (Säilynoja, Bürkner and Vehtari 2022). The p-value, P(γ is this small or smaller for
/// uniform numbers), is exact: the counts N F(z_i) are a Markov chain, whose probability to stay in the band of γ is a
/// sum over the counts. Since they are whole numbers, P(p ≤ α) ≤ α with a little to spare.
///
/// ```
/// use didyma::calibration::Uniformity;
/// let even: Vec<f64> = (0..100).map(|i| (f64::from(i) + 0.5) / 100.0).collect();
/// let narrow: Vec<f64> = even.iter().map(|u| 0.5 + 0.5 * (u - 0.5)).collect();
/// assert!(Uniformity::of(&even)?.p_value > 0.99 && Uniformity::of(&narrow)?.p_value < 1e-6);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Uniformity {
    /// How many numbers there are: N.
    pub rows: usize,
    /// The statistic: twice the smallest tail.
    pub gamma: f64,
    /// The probability of a γ this small or smaller, if the numbers are uniform.
    pub p_value: f64,
    /// sup |F(z) − z| over all z: the statistic of Kolmogorov and Smirnov.
    pub deviation: f64,
    /// The p-value of `deviation`, exact up to 10,000 rows.
    pub ks_p_value: f64,
    /// Their mean: ½ if they are uniform.
    pub mean: f64,
    /// Their standard deviation over √(1/12): below 1 they gather in the middle, above 1 at the ends.
    pub spread: f64,
}

impl Uniformity {
    /// Of at least [`LEAST_ROWS`] numbers in [0, 1].
    pub fn of(values: &[f64]) -> Result<Self> {
        check_unit(values)?;
        let mut sorted = values.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        let rows = sorted.len();
        let laws = Laws::new(rows, &grid(rows.min(MOST_POINTS)));
        let counts = |at: f64| sorted.partition_point(|&value| value <= at);
        let gamma = laws.gamma(counts);
        let (mean, deviation) = mean_and_deviation(values);
        let farthest = kolmogorov::deviation(&sorted);
        Ok(Self {
            rows,
            gamma,
            p_value: laws.p_value(gamma),
            deviation: farthest,
            ks_p_value: kolmogorov::p_value(rows, farthest),
            mean,
            spread: deviation * 12f64.sqrt(),
        })
    }
}

/// Numbers of a calibration: enough of them, finite, and in [0, 1].
pub(super) fn check_unit(values: &[f64]) -> Result<()> {
    let rows = Rows::new("values", values, 1)?;
    rows.expect_rows_from(LEAST_ROWS, "at least, to say anything; simulate more")?;
    rows.expect_finite()?;
    match values.iter().position(|value| !(0.0..=1.0).contains(value)) {
        None => Ok(()),
        Some(row) => Err(Error::Setting {
            name: format!("values[{row}]").into(),
            value: values[row].to_string(),
            expected: "between 0 and 1, as shares and randomised ranks are".into(),
        }),
    }
}

/// Simultaneous bands: the distribution function of uniform numbers is inside of all of them at once with at least a
/// given probability.
///
/// ```
/// use didyma::calibration::Bands;
/// let bands = Bands::simultaneous(250, 50, 0.95)?;
/// let middle = bands.points.iter().position(|&z| z == 0.5).unwrap();
/// assert!(bands.low[middle] < 0.42 && bands.high[middle] > 0.58); // one point alone: 0.44 and 0.56
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Bands {
    /// The places.
    pub points: Vec<f64>,
    /// Smallest share of the numbers at or below each place.
    pub low: Vec<f64>,
    /// Largest share of the numbers at or below each place.
    pub high: Vec<f64>,
    /// The exact probability that all shares are inside: the level, or a little more.
    pub probability: f64,
}

impl Bands {
    /// For so many rows, at so many places; `level` is the probability that no band is left, 0.95 for example. The
    /// bands are those of the test of [`Uniformity`]: at as many places, they are left where its p-value is 1 − `level`
    /// or less.
    pub fn simultaneous(rows: usize, points: usize, level: f64) -> Result<Self> {
        if !(2..=10_000).contains(&points) {
            return Err(Error::setting("points", points, "between 2 and 10000"));
        }
        let mut bands = Self::at(rows, &grid(points), level)?;
        // The last share is certain.
        for (list, end) in
            [&mut bands.points, &mut bands.low, &mut bands.high].into_iter().zip([1.0; 3])
        {
            list.push(end);
        }
        Ok(bands)
    }

    /// Bands at given places, which rise and lie between 0 and 1.
    pub fn at(rows: usize, places: &[f64], level: f64) -> Result<Self> {
        if rows == 0 {
            return Err(Error::setting("rows", rows, "at least 1"));
        }
        check_levels(places)?;
        if !(level > 0.0 && level < 1.0) {
            return Err(Error::setting("level", level, "between 0 and 1, not on an end (0.95)"));
        }
        let laws = Laws::new(rows, places);
        let gates = laws.gates(laws.gamma_of(1.0 - level));
        let share = |count: usize| count as f64 / rows as f64;
        Ok(Self {
            points: places.to_vec(),
            low: gates.iter().map(|gate| share(gate.low)).collect(),
            high: gates.iter().map(|gate| share(gate.high)).collect(),
            probability: passing_probability(rows, &gates),
        })
    }
}

/// Places or levels: at least one, rising, between 0 and 1.
pub(super) fn check_levels(levels: &[f64]) -> Result<()> {
    let inside = levels.iter().all(|level| 0.0 < *level && *level < 1.0);
    if levels.is_empty() || !inside || !levels.is_sorted_by(|a, b| a < b) {
        let given = format!("{levels:?}");
        return Err(Error::setting(
            "levels",
            given,
            "rising numbers between 0 and 1, not on an end",
        ));
    }
    Ok(())
}

/// 1/K, 2/K, …, (K − 1)/K.
fn grid(points: usize) -> Vec<f64> {
    (1..points).map(|i| i as f64 / points as f64).collect()
}

/// The laws of the counts at the places before 1, where a count is certain.
struct Laws {
    rows: usize,
    places: Vec<(f64, BinomialTails)>,
}

impl Laws {
    fn new(rows: usize, places: &[f64]) -> Self {
        let places = places.iter().map(|&at| (at, BinomialTails::new(rows, at))).collect();
        Self { rows, places }
    }

    /// γ of a count at every place.
    fn gamma(&self, count: impl Fn(f64) -> usize) -> f64 {
        let tail = |(at, law): &(f64, BinomialTails)| {
            let count = count(*at);
            law.at_most(count).min(law.at_least(count))
        };
        2.0 * self.places.iter().map(tail).fold(f64::INFINITY, f64::min)
    }

    /// The counts whose γ is larger than this one.
    fn gates(&self, gamma: f64) -> Vec<Gate> {
        let gate = |(at, law): &(f64, BinomialTails)| {
            // Where no count is possible, an empty gate says so.
            let (low, high) = law.range_above(0.5 * gamma * (1.0 + SAME)).unwrap_or((1, 0));
            Gate { at: *at, low, high }
        };
        self.places.iter().map(gate).collect()
    }

    /// P(γ of uniform numbers is at most this one).
    fn p_value(&self, gamma: f64) -> f64 {
        let outside = 1.0 - passing_probability(self.rows, &self.gates(gamma));
        // One tail is γ/2, and there are two at each place: bounds that hold where the difference has lost its digits.
        outside.max(0.5 * gamma).min(gamma * self.places.len() as f64).min(1.0)
    }

    /// The largest γ with a p-value of at most `p`, but for its last digits, by bisection between the bounds of γ.
    fn gamma_of(&self, p: f64) -> f64 {
        let (mut low, mut high) = ((p / self.places.len() as f64).ln(), (2.0 * p).ln());
        while high - low > 1e-4 {
            let middle = 0.5 * (low + high);
            if self.p_value(middle.exp()) <= p {
                low = middle;
            } else {
                high = middle;
            }
        }
        low.exp()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand::RngExt;

    /// Every way in which seven numbers fall between the quarters, with its probability and its γ.
    fn outcomes(laws: &Laws) -> Vec<(f64, f64)> {
        let factorial = |n: usize| (1..=n).product::<usize>() as f64;
        let mut outcomes = Vec::new();
        for code in 0..8usize.pow(3) {
            let [a, b, c] = [code % 8, code / 8 % 8, code / 64];
            if a + b + c > 7 {
                continue;
            }
            let ways = [a, b, c, 7 - a - b - c].iter().map(|&n| factorial(n)).product::<f64>();
            let sums = [a, a + b, a + b + c];
            let gamma = laws.gamma(|at| sums[(4.0 * at) as usize - 1]);
            outcomes.push((factorial(7) / ways / 4f64.powi(7), gamma));
        }
        outcomes
    }

    #[test]
    fn p_values_are_those_of_all_outcomes() {
        let laws = Laws::new(7, &grid(4));
        let outcomes = outcomes(&laws);
        assert!((outcomes.iter().map(|(mass, _)| mass).sum::<f64>() - 1.0).abs() < 1e-14);
        for (_, gamma) in &outcomes {
            let as_small = outcomes.iter().filter(|(_, other)| *other <= gamma * (1.0 + SAME));
            let expected: f64 = as_small.map(|(mass, _)| mass).sum();
            let found = laws.p_value(*gamma);
            assert!((found - expected).abs() < 1e-13, "{gamma}: {found} {expected}");
        }
    }

    #[test]
    fn the_test_rejects_as_often_as_it_says() -> Result<()> {
        const TRIALS: usize = 4000;
        let bands = Bands::simultaneous(200, 100, 0.9)?;
        assert!((0.9..0.92).contains(&bands.probability), "{}", bands.probability);
        let (mut rejected, mut left) = ([0.0; 3], 0.0);
        for trial in 0..TRIALS {
            let mut rng = Streams::new(4).stream(Purpose::Synthetic, 0, trial as u64);
            let values: Vec<f64> = (0..200).map(|_| rng.random()).collect();
            let p_value = Uniformity::of(&values)?.p_value;
            let levels = [0.05, 1.0 - bands.probability, 0.5];
            levels.iter().zip(&mut rejected).for_each(|(level, count)| {
                *count += f64::from(u8::from(p_value <= level + SAME)) / TRIALS as f64;
            });
            let share = |at: f64| values.iter().filter(|&&v| v <= at).count() as f64 / 200.0;
            let mut places = bands.points.iter().zip(bands.low.iter().zip(&bands.high));
            let inside =
                |(&at, (low, high)): (&f64, (&f64, &f64))| *low <= share(at) && share(at) <= *high;
            left += f64::from(u8::from(!places.all(inside))) / TRIALS as f64;
        }
        // Four binomial standard errors: 4 √(p (1 − p) / 4000) is .014 at .05, .019 at .1 and .032 at .5. Steps of the
        // p-value, of which it is allowed to stay below its level, are finer than .01.
        assert!((0.026..0.064).contains(&rejected[0]), "{rejected:?}");
        assert!((rejected[1] - (1.0 - bands.probability)).abs() < 0.019, "{rejected:?}");
        assert!((0.458..0.532).contains(&rejected[2]), "{rejected:?}");
        // Where the bands are left is where the test of their own level rejects.
        assert!((left - rejected[1]).abs() < 1e-9, "{left} {rejected:?}");
        Ok(())
    }

    #[test]
    fn p_values_rise_with_gamma_and_bands_widen_with_their_level() -> Result<()> {
        let laws = Laws::new(1000, &grid(100));
        let p_values: Vec<f64> = (0..40).map(|i| laws.p_value(0.8f64.powi(40 - i))).collect();
        assert!(p_values.is_sorted() && p_values[0] < 1e-2 && p_values[39] > 0.9);
        let [narrow, wide] = [0.5, 0.99].map(|level| Bands::simultaneous(1000, 100, level));
        let (narrow, wide) = (narrow?, wide?);
        assert!(narrow.low.iter().zip(&wide.low).all(|(a, b)| a >= b));
        assert!(narrow.high.iter().zip(&wide.high).all(|(a, b)| a <= b));
        assert_eq!((narrow.low[99], narrow.points[99]), (1.0, 1.0));
        Ok(())
    }

    #[test]
    fn numbers_that_cannot_be_tested_are_refused() {
        let message = |values: &[f64]| Uniformity::of(values).unwrap_err().to_string();
        assert!(message(&[0.5; 19]).contains("values has 19 rows, but 20 are needed"));
        assert!(message(&[f64::NAN; 20]).contains("NaN in row 0"));
        assert!(message(&[1.5; 20]).contains("values[0] is 1.5"));
        // All at one place: as far out as can be, and still a probability.
        let found = Uniformity::of(&[0.0; 2000]).unwrap();
        assert!(found.p_value < 1e-15 && found.ks_p_value < 1e-10 && found.spread == 0.0);
        assert!(
            Bands::simultaneous(10, 10, 1.0).is_err() && Bands::at(10, &[0.5, 0.5], 0.9).is_err()
        );
    }
}
