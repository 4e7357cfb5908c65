//! Mean, variance and kurtosis of a stream of numbers.

use serde::Serialize;
use std::fmt;

/// A mean and its standard error.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Estimate {
    /// The mean.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Estimate {
    /// The mean of independent numbers, and its standard error: their standard deviation by the root of their number.
    /// The error of fewer than two is NaN.
    pub fn of(values: &[f64]) -> Self {
        let (mean, deviation) = mean_and_deviation(values);
        let error = deviation / (values.len() as f64).sqrt();
        Self { mean, error: if values.len() < 2 { f64::NAN } else { error } }
    }
}

/// As `0.521 ± 0.004`, with as many digits as are asked for, or three.
impl fmt::Display for Estimate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = f.precision().unwrap_or(3);
        write!(f, "{:.digits$} ± {:.digits$}", self.mean, self.error)
    }
}

/// Sums of powers of deviations from the mean, updated one number at a time without cancellation (Pébay, 2008).
#[derive(Clone, Copy, Debug, Default)]
pub struct Moments {
    count: f64,
    mean: f64,
    /// Σ (x − mean)^k for k = 2, 3, 4.
    sums: [f64; 3],
}

impl Moments {
    /// Takes in a number.
    pub fn add(&mut self, value: f64) {
        let before = self.count;
        self.count += 1.0;
        let n = self.count;
        let step = (value - self.mean) / n;
        let square = (value - self.mean) * step * before;
        let [second, third, _] = self.sums;
        self.mean += step;
        self.sums[2] += square * step * step * (n * n - 3.0 * n + 3.0) + 6.0 * step * step * second
            - 4.0 * step * third;
        self.sums[1] += square * step * (n - 2.0) - 3.0 * step * second;
        self.sums[0] += square;
    }

    /// The mean so far.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The unbiased estimate.
    pub fn variance(&self) -> f64 {
        self.sums[0] / (self.count - 1.0)
    }

    /// E (X − mean)⁴ / Var²: 3 for a normal variable.
    pub fn kurtosis(&self) -> f64 {
        self.count * self.sums[2] / (self.sums[0] * self.sums[0])
    }

    /// The mean with its standard error.
    pub fn estimate(&self) -> Estimate {
        Estimate { mean: self.mean, error: (self.variance() / self.count).sqrt() }
    }
}

/// Mean and unbiased standard deviation of some numbers: (NaN, 0) of none, deviation 0 of one.
///
/// Numbers that share a large offset keep their digits, and the squares of the smallest and largest ones, which would be
/// 0 or infinite, are never formed.
///
/// ```
/// use didyma::math::mean_and_deviation;
/// let dates = [2459000.25, 2459000.5, 2459000.75];
/// assert_eq!(mean_and_deviation(&dates), (2459000.5, 0.25));
/// let (mean, deviation) = mean_and_deviation(&[1e-300, 3e-300]);
/// assert!((mean / 2e-300 - 1.0).abs() < 1e-15 && (deviation / 2f64.sqrt() / 1e-300 - 1.0).abs() < 1e-15);
/// ```
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let first = values.first().copied().unwrap_or(f64::NAN);
    let mean = first + values.iter().map(|value| (value - first) / n).sum::<f64>();
    let farthest = values.iter().map(|value| (value - mean).abs()).fold(0.0, f64::max);
    if farthest == 0.0 || values.len() < 2 {
        return (mean, 0.0);
    }
    let squares: f64 = values.iter().map(|value| ((value - mean) / farthest).powi(2)).sum();
    (mean, farthest * (squares / (n - 1.0)).sqrt())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_those_of_their_definitions() {
        let values = [3.0, -1.5, 0.25, 8.0, 2.0, 2.0, -4.75];
        let mut moments = Moments::default();
        values.iter().for_each(|&v| moments.add(1e3 + v));
        let n = values.len() as f64;
        let mean = values.iter().sum::<f64>() / n;
        let central = |k: i32| values.iter().map(|v| (v - mean).powi(k)).sum::<f64>() / n;
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b.abs(), "{a} {b}");
        close(moments.mean(), 1e3 + mean);
        close(moments.variance(), central(2) * n / (n - 1.0));
        close(moments.kurtosis(), central(4) / central(2).powi(2));
        close(moments.estimate().error, (central(2) / (n - 1.0)).sqrt());
        let found = Estimate::of(&values);
        close(found.mean, mean);
        close(found.error, moments.estimate().error);
        assert_eq!(format!("{found:.2}"), "1.29 ± 1.50");
        assert!(Estimate::of(&[3.0]).error.is_nan());
    }
}
