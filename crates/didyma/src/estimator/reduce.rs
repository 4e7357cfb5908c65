//! From the log-densities of a group to its loss and the loss's derivatives.

use super::{Group, Term};

/// Loss of a group, and its derivative with respect to each log q, into `d_log_q`.
///
/// `log_g[j]` = log q(θ_j | x) − log p(θ_j); `log_q0` = log q of the first atom. The derivative of
/// log-mean-exp is the softmax; that of the antithetic difference is the softmax of all minus half of
/// the softmax of the atom's half, which sums to 0.
///
/// ```
/// use didyma::estimator::{Group, Term, reduce};
/// let (own, weight, term) = (0.0, 1.0, Term::LogMeanExp);
/// let group = Group { context: 0, first: 0, len: 2, own, weight, term };
/// let mut d = [0.0; 2];
/// let loss = reduce(&group, -1.0, &[3.0f64.ln(), 1.0f64.ln()], &mut d);
/// assert!((loss - 2.0f64.ln()).abs() < 1e-15); // log of the mean of 3 and 1
/// assert!((d[0] - 0.75).abs() < 1e-15 && (d[1] - 0.25).abs() < 1e-15);
/// ```
pub fn reduce(group: &Group, log_q0: f64, log_g: &[f64], d_log_q: &mut [f64]) -> f64 {
    let mut loss = 0.0;
    d_log_q.fill(0.0);
    if group.weight != 0.0 {
        let value = match group.term {
            Term::LogMeanExp => add_log_mean_exp(1.0, log_g, d_log_q),
            Term::AntitheticDifference => antithetic_difference(log_g, d_log_q),
        };
        loss += group.weight * value;
        d_log_q.iter_mut().for_each(|d| *d *= group.weight);
    }
    if group.own != 0.0 {
        loss -= group.own * log_q0;
        d_log_q[0] -= group.own;
    }
    loss
}

fn antithetic_difference(u: &[f64], d: &mut [f64]) -> f64 {
    let half = u.len() / 2;
    let all = add_log_mean_exp(1.0, u, d);
    // Each half has its own maximum: one taken from the other half could underflow it.
    let first = add_log_mean_exp(-0.5, &u[..half], &mut d[..half]);
    let second = add_log_mean_exp(-0.5, &u[half..], &mut d[half..]);
    all + first + second
}

/// factor · log (1/n Σ exp u), and factor · softmax added to `d`. The maximum is taken out first, so
/// that u may span any range.
fn add_log_mean_exp(factor: f64, u: &[f64], d: &mut [f64]) -> f64 {
    let top = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let sum: f64 = u.iter().map(|u| (u - top).exp()).sum();
    let scale = factor / sum;
    for (d, u) in d.iter_mut().zip(u) {
        *d += scale * (u - top).exp();
    }
    factor * (top + (sum / u.len() as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivatives_are_exact_over_a_wide_range() {
        for term in [Term::LogMeanExp, Term::AntitheticDifference] {
            let group = Group { context: 0, first: 0, len: 4, own: 1.0, weight: 0.7, term };
            let log_q = [-700.0, 650.0, 649.0, -3.0];
            let shift = [2.0, 1.0, 0.0, -1.0];
            let loss = |log_q: [f64; 4], d: &mut [f64]| {
                let log_g: Vec<f64> = log_q.iter().zip(shift).map(|(q, s)| q + s).collect();
                reduce(&group, log_q[0], &log_g, d)
            };
            let mut d = [0.0; 4];
            assert!(loss(log_q, &mut d).is_finite());
            for j in 0..4 {
                // Central differences of a smooth function of size 1e3: ε |f| / h = 2e-9, h² = 1e-8.
                let h = 1e-4;
                let shifted = |h: f64| {
                    let mut moved = log_q;
                    moved[j] += h;
                    loss(moved, &mut [0.0; 4])
                };
                assert!(
                    (d[j] - (shifted(h) - shifted(-h)) / (2.0 * h)).abs() < 2e-8,
                    "{term:?} {j}"
                );
            }
        }
    }

    #[test]
    fn an_antithetic_difference_is_never_negative_and_ignores_constants() {
        let term = Term::AntitheticDifference;
        let group = Group { context: 0, first: 0, len: 4, own: 0.0, weight: 1.0, term };
        let mut d = [0.0; 4];
        let value = reduce(&group, 0.0, &[0.3, -2.0, 1.5, 0.1], &mut d);
        let moved = reduce(&group, 0.0, &[300.3, 298.0, 301.5, 300.1], &mut d);
        assert!(value > 0.0 && (value - moved).abs() < 1e-12);
        assert!(d.iter().sum::<f64>().abs() < 1e-15);
    }
}
