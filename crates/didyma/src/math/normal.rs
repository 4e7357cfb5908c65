//! The standard normal law: distribution function and quantiles of its lower half, to the last digits.

/// ½ log 2π.
pub(crate) const HALF_LOG_TAU: f64 = 0.918_938_533_204_672_8;

/// log φ(z).
pub(crate) fn log_density(z: f64) -> f64 {
    -0.5 * z * z - HALF_LOG_TAU
}

/// Φ(z), without loss of digits for negative z.
pub(crate) fn distribution(z: f64) -> f64 {
    0.5 * libm::erfc(-z * std::f64::consts::FRAC_1_SQRT_2)
}

/// z with Φ(z) = p, for p up to ½: Acklam's rational approximation (relative error 1.2e-9), then one step of Halley's
/// method, which cubes the error.
pub(crate) fn quantile(p: f64) -> f64 {
    if p <= 0.0 {
        return f64::NEG_INFINITY;
    }
    let z = approximate_quantile(p);
    // The slope of Φ underflows where p does; the approximation has to do there.
    let step = (distribution(z) - p) * (HALF_LOG_TAU + 0.5 * z * z).exp();
    match step.is_finite() {
        true => z - step / (1.0 + 0.5 * z * step),
        false => z,
    }
}

/// z with Φ(z) = p for the standard normal law, for any p; near 1 with the digits that 1 − p has.
///
/// ```
/// use didyma::math::normal_quantile;
/// assert_eq!(normal_quantile(0.5), 0.0);
/// assert!((normal_quantile(0.975) - 1.959_963_984_540_054).abs() < 1e-14);
/// ```
pub fn normal_quantile(p: f64) -> f64 {
    if p <= 0.5 { quantile(p) } else { -quantile(1.0 - p) }
}

fn approximate_quantile(p: f64) -> f64 {
    let polynomial = |x: f64, terms: &[f64]| terms.iter().fold(0.0, |sum, term| sum * x + term);
    if p < 0.02425 {
        let q = (-2.0 * p.ln()).sqrt();
        return polynomial(q, &TAIL.0) / polynomial(q, &TAIL.1);
    }
    let q = p - 0.5;
    q * polynomial(q * q, &CENTRE.0) / polynomial(q * q, &CENTRE.1)
}

/// Acklam's coefficients, highest power first.
const CENTRE: ([f64; 6], [f64; 6]) = (
    [
        -3.969683028665376e+01,
        2.209460984245205e+02,
        -2.759285104469687e+02,
        1.38357751867269e+02,
        -3.066479806614716e+01,
        2.506628277459239e+00,
    ],
    [
        -5.447609879822406e+01,
        1.615858368580409e+02,
        -1.556989798598866e+02,
        6.680131188771972e+01,
        -1.328068155288572e+01,
        1.0,
    ],
);
const TAIL: ([f64; 6], [f64; 5]) = (
    [
        -7.784894002430293e-03,
        -3.223964580411365e-01,
        -2.400758277161838e+00,
        -2.549732539343734e+00,
        4.374664141464968e+00,
        2.938163982698783e+00,
    ],
    [
        7.784695709041462e-03,
        3.224671290700398e-01,
        2.445134137142996e+00,
        3.754408661907416e+00,
        1.0,
    ],
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_quantiles_and_their_way_back() {
        // To 16 digits, from tables.
        for (p, z) in [
            (0.5, 0.0),
            (0.25, -0.674_489_750_196_081_7),
            (0.025, -1.959_963_984_540_054),
            (1e-3, -3.090_232_306_167_813),
            (1e-10, -6.361_340_902_404_056),
        ] {
            assert!((quantile(p) - z).abs() < 4e-15 * (1.0 + z.abs()), "{p}: {}", quantile(p));
            assert!((distribution(quantile(p)) / p - 1.0).abs() < 1e-13);
        }
        for i in 1..300 {
            let p = 0.5 * 0.8f64.powi(i);
            assert!((distribution(quantile(p)) / p - 1.0).abs() < 1e-12, "{p}");
        }
        assert_eq!(quantile(0.0), f64::NEG_INFINITY);
        assert!(quantile(5e-324).is_finite());
    }
}
