//! P-values of the Kolmogorov–Smirnov tests of one sample and of two.

use super::ecdf::{Gate, passing_probability};

/// Most numbers for which the p-value is exact; of more, the law of the limit has the same four digits.
const MOST_EXACT: usize = 10_000;

/// sup |F(z) − z| of the distribution function F of numbers in [0, 1], which are in order.
pub(crate) fn deviation(sorted: &[f64]) -> f64 {
    let n = sorted.len() as f64;
    let sides = |(i, &z): (usize, &f64)| (z - i as f64 / n).max((i + 1) as f64 / n - z);
    sorted.iter().enumerate().map(sides).fold(0.0, f64::max)
}

/// The probability that `n` uniform numbers deviate by `deviation` or more.
///
/// The count at z must stay between n (z − d) and n (z + d). Counts and bounds only rise, so that it is enough to look
/// where a bound is about to exclude one more count: 2n gates at most.
pub(crate) fn p_value(n: usize, deviation: f64) -> f64 {
    let rate = n as f64;
    if n > MOST_EXACT {
        // Vrbik (2018): the limit at a shifted place, with an error of order n^(−3/2).
        let x = rate.sqrt() * deviation;
        return limit(x + 1.0 / (6.0 * rate.sqrt()) + (x - 1.0) / (4.0 * rate));
    }
    let reach = rate * deviation;
    let count = |value: f64| value.max(0.0) as usize;
    let above = (1..=n).map(|j| Gate {
        at: (j as f64 - reach) / rate,
        low: count((j as f64 - 2.0 * reach).floor() + 1.0),
        high: j - 1,
    });
    let below = (0..n).map(|j| Gate {
        at: (j as f64 + reach) / rate,
        low: j + 1,
        high: count((j as f64 + 2.0 * reach).ceil() - 1.0).min(n),
    });
    let mut gates: Vec<Gate> =
        above.chain(below).filter(|gate| 0.0 < gate.at && gate.at <= 1.0).collect();
    gates.sort_by(|a, b| a.at.total_cmp(&b.at));
    (1.0 - passing_probability(n, &gates)).max(0.0)
}

/// Kolmogorov's limit: 2 Σ (−1)^(k − 1) exp(−2 k² x²).
fn limit(x: f64) -> f64 {
    if x < 0.2 {
        return 1.0; // To the last digit, and the series converges slowly there.
    }
    let term = |k: i32| f64::from(1 - 2 * ((k + 1) % 2)) * (-2.0 * f64::from(k * k) * x * x).exp();
    (2.0 * (1..40).map(term).sum::<f64>()).clamp(0.0, 1.0)
}

/// The probability that two samples of the same law, `n` numbers each, deviate by `steps`/n or more: by reflection,
/// 2 Σ (−1)^(k − 1) C(2n, n − k·steps) / C(2n, n) (Gnedenko and Korolyuk 1951).
pub(crate) fn two_sample_p_value(n: usize, steps: usize) -> f64 {
    if steps == 0 {
        return 1.0;
    }
    let share = |k: usize| {
        let outside = k * steps;
        (0..outside).map(|i| (n - i) as f64 / (n + outside - i) as f64).product::<f64>()
    };
    let signed = |k: usize| if k % 2 == 1 { share(k) } else { -share(k) };
    (2.0 * (1..=n / steps).map(signed).sum::<f64>()).clamp(0.0, 1.0)
}

/// Largest difference of the distribution functions of two samples of one size, in steps of 1/n.
pub(crate) fn two_sample_steps(a: &[f64], b: &[f64]) -> usize {
    let at_most = |of: &[f64], value: f64| of.iter().filter(|&&other| other <= value).count();
    let differences = a.iter().chain(b).map(|&v| at_most(a, v).abs_diff(at_most(b, v)));
    differences.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn p_values_of_small_samples_are_those_of_closed_forms() {
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-13, "{a} {b}");
        // One number: |F − z| reaches max(z, 1 − z), which is below d with probability 2d − 1.
        close(p_value(1, 0.7), 0.6);
        // P(D_n < d) = n! (2d − 1/n)^n for 1/(2n) ≤ d ≤ 1/n.
        close(p_value(3, 0.3), 1.0 - 6.0 * (0.6f64 - 1.0 / 3.0).powi(3));
        // P(D_n ≥ d) = 2 (1 − d)^n for d ≥ 1 − 1/n.
        close(p_value(4, 0.8), 2.0 * 0.2f64.powi(4));
        assert_eq!((p_value(5, 0.05), p_value(5, 1.0)), (1.0, 0.0));
        // Marsaglia, Tsang and Wang (2003): P(D_10 < 0.274) = 0.6284796154565043.
        close(p_value(10, 0.274), 1.0 - 0.628_479_615_456_504_3);
    }

    #[test]
    fn exact_numbers_go_over_into_the_limit() {
        for x in [0.6, 1.0, 1.5] {
            let d = x / (MOST_EXACT as f64).sqrt();
            let (exact, limit) = (p_value(MOST_EXACT, d), p_value(MOST_EXACT + 1, d));
            // One number more moves x by 1e-4/2 of itself, and the limit has an error of 1e-4².
            assert!((exact - limit).abs() < 2e-4, "{exact} {limit}");
        }
    }

    #[test]
    fn two_samples_deviate_as_often_as_paths_do() {
        // Of the 6 orders of two and two numbers, 2 deviate by 2/2, and all by 1/2.
        assert!((two_sample_p_value(2, 2) - 2.0 / 6.0).abs() < 1e-15);
        assert!((two_sample_p_value(2, 1) - 1.0).abs() < 1e-15);
        assert_eq!((two_sample_p_value(2, 0), two_sample_p_value(30, 30) > 0.0), (1.0, true));
        assert_eq!(two_sample_steps(&[0.1, 0.2, 0.9], &[0.3, 0.4, 0.95]), 2);
        assert!((deviation(&[0.25, 0.5]) - 0.5).abs() < 1e-15);
    }
}
