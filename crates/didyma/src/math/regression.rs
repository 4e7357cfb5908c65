//! Weighted least squares of a straight line.

use serde::Serialize;

/// A fitted slope.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Slope {
    /// The slope.
    pub value: f64,
    /// Its standard error.
    pub error: f64,
    /// log₂ at level 0, by the line.
    pub intercept: f64,
}

impl Slope {
    /// How fast it falls, less two standard errors: the rate to plan with.
    pub fn safe_rate(&self) -> f64 {
        -self.value - 2.0 * self.error
    }
}

/// Variance of log₂ that even an exact mean is given: the law is a power of 2 only asymptotically.
const FLOOR: f64 = 1e-3;

/// The slope of log₂ |mean| against the level, from (level, mean, variance of the mean).
///
/// Points are weighted by 1 / (relative variance + 10⁻³). The standard error is the one that follows from
/// these variances, enlarged by the scatter of the points around the line where that is larger.
pub(crate) fn log2_slope(points: &[(u32, f64, f64)]) -> Slope {
    let ln_2 = std::f64::consts::LN_2;
    let point = |&(level, mean, variance): &(u32, f64, f64)| {
        let weight = 1.0 / (variance / (mean * mean) + FLOOR);
        (f64::from(level), mean.abs().log2(), weight)
    };
    let points: Vec<_> = points.iter().filter(|p| p.1 != 0.0).map(point).collect();
    let total: f64 = points.iter().map(|p| p.2).sum();
    let mean =
        |of: fn(&(f64, f64, f64)) -> f64| points.iter().map(|p| p.2 * of(p)).sum::<f64>() / total;
    let (level, log) = (mean(|p| p.0), mean(|p| p.1));
    let spread: f64 = points.iter().map(|p| p.2 * (p.0 - level).powi(2)).sum();
    let value = points.iter().map(|p| p.2 * (p.0 - level) * (p.1 - log)).sum::<f64>() / spread;
    let residual = |p: &(f64, f64, f64)| ln_2 * (p.1 - log - value * (p.0 - level));
    let chi_squared: f64 = points.iter().map(|p| p.2 * residual(p).powi(2)).sum();
    let scatter = chi_squared / (points.len() as f64 - 2.0).max(1.0);
    let error = (scatter.max(1.0) / spread).sqrt() / ln_2;
    Slope { value, error, intercept: log - value * level }
}

/// A straight line y = intercept + slope · x through points of known precision.
#[derive(Clone, Copy, Debug)]
pub struct Line {
    /// The slope.
    pub slope: f64,
    /// Its standard error.
    pub slope_error: f64,
    /// y at x = 0.
    pub intercept: f64,
    /// Its standard error.
    pub intercept_error: f64,
    /// Σ (residual / standard error)², to be compared with the number of points less 2.
    pub chi_squared: f64,
}

/// The line through (x, y, variance of y) of least Σ residual² / variance. Its standard errors are those
/// that follow from the variances; x has none.
pub fn line(points: &[(f64, f64, f64)]) -> Line {
    let sum = |of: &dyn Fn(f64, f64) -> f64| -> f64 {
        points.iter().map(|&(x, y, variance)| of(x, y) / variance).sum()
    };
    let total = sum(&|_, _| 1.0);
    let (x_mean, y_mean) = (sum(&|x, _| x) / total, sum(&|_, y| y) / total);
    let spread = sum(&|x, _| (x - x_mean).powi(2));
    let slope = sum(&|x, y| (x - x_mean) * (y - y_mean)) / spread;
    Line {
        slope,
        slope_error: spread.recip().sqrt(),
        intercept: y_mean - slope * x_mean,
        intercept_error: (total.recip() + x_mean * x_mean / spread).sqrt(),
        chi_squared: sum(&|x, y| (y - y_mean - slope * (x - x_mean)).powi(2)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_the_errors_of_least_squares() {
        // Three points of variance 1/4 at −1, 0, 1: slope 0.5 with 1/√8, intercept 1 with 1/√12, and
        // residuals ±(1/6, −1/3, 1/6).
        let found = line(&[(-1.0, 0.5, 0.25), (0.0, 1.0, 0.25), (1.0, 1.5, 0.25)]);
        assert!((found.slope - 0.5).abs() < 1e-15 && (found.intercept - 1.0).abs() < 1e-15);
        assert!((found.slope_error - 8f64.sqrt().recip()).abs() < 1e-15);
        assert!((found.intercept_error - 12f64.sqrt().recip()).abs() < 1e-15);
        let bent = line(&[(-1.0, 0.5, 0.25), (0.0, 0.5, 0.25), (1.0, 1.5, 0.25)]);
        assert!((bent.chi_squared - 4.0 / 6.0).abs() < 1e-14);
    }

    #[test]
    fn a_power_law_has_its_slope_and_an_error_that_shrinks_with_precision() {
        let law = |level: u32| 3.0 * (-1.7 * f64::from(level)).exp2();
        let fit = |relative: f64| {
            let points: Vec<_> = (1..7).map(|l| (l, law(l), relative * law(l) * law(l))).collect();
            log2_slope(&points)
        };
        assert!((fit(0.01).value + 1.7).abs() < 1e-12);
        assert!((fit(0.01).intercept - 3f64.log2()).abs() < 1e-12);
        // Levels 1 to 6: Σ (l − 3.5)² = 17.5.
        let expected = (0.011f64 / 17.5).sqrt() / std::f64::consts::LN_2;
        assert!((fit(0.01).error - expected).abs() < 1e-12);
        assert!(fit(0.0).error < fit(0.01).error);
    }

    #[test]
    fn scatter_beyond_the_stated_variances_enlarges_the_error() {
        let points = [(1, 1.0, 0.0), (2, 2.0, 0.0), (3, 0.5, 0.0), (4, 3.0, 0.0)];
        assert!(log2_slope(&points).error > 0.3);
    }
}
