//! From the log-densities of a group to its loss and the loss's derivatives.

use super::Group;

/// Loss of a group, and its derivative with respect to each log q, into `d_log_q`.
///
/// `log_g[j]` = log q(θ_j | x) − log p(θ_j); `log_q0` = log q of the first atom. With s = softmax,
/// ∂ log-mean-exp(u) / ∂u_j = s_j.
///
/// ```
/// use didyma::estimator::{Group, reduce};
/// let group = Group { context: 0, first: 0, len: 2, own: 0.0, weight: 1.0 };
/// let mut d = [0.0; 2];
/// let loss = reduce(&group, -1.0, &[3.0f64.ln(), 1.0f64.ln()], &mut d);
/// assert!((loss - 2.0f64.ln()).abs() < 1e-15); // log of the mean of 3 and 1
/// assert!((d[0] - 0.75).abs() < 1e-15 && (d[1] - 0.25).abs() < 1e-15);
/// ```
pub fn reduce(group: &Group, log_q0: f64, log_g: &[f64], d_log_q: &mut [f64]) -> f64 {
    let mut loss = 0.0;
    d_log_q.fill(0.0);
    if group.weight != 0.0 {
        loss += group.weight * log_mean_exp(log_g, d_log_q);
        d_log_q.iter_mut().for_each(|d| *d *= group.weight);
    }
    if group.own != 0.0 {
        loss -= group.own * log_q0;
        d_log_q[0] -= group.own;
    }
    loss
}

/// log (1/n Σ exp u), its softmax into `softmax`. The maximum is taken out first, so that u may span
/// any range.
fn log_mean_exp(u: &[f64], softmax: &mut [f64]) -> f64 {
    let top = u.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mut sum = 0.0;
    for (s, &u) in softmax.iter_mut().zip(u) {
        *s = (u - top).exp();
        sum += *s;
    }
    softmax.iter_mut().for_each(|s| *s /= sum);
    top + (sum / u.len() as f64).ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn derivative_is_exact_over_a_wide_range() {
        let group = Group { context: 0, first: 0, len: 3, own: 1.0, weight: 0.7 };
        let log_q = [-700.0, 650.0, 649.0];
        let log_g = |log_q: &[f64; 3]| [log_q[0] + 2.0, log_q[1] + 1.0, log_q[2]];
        let mut d = [0.0; 3];
        let loss = reduce(&group, log_q[0], &log_g(&log_q), &mut d);
        assert!(loss.is_finite());
        for j in 0..3 {
            // Central differences of a smooth function of size 1e3: ε |f| / h = 2e-9 and h² = 1e-8.
            let h = 1e-4;
            let shifted = |h: f64| {
                let mut moved = log_q;
                moved[j] += h;
                reduce(&group, moved[0], &log_g(&moved), &mut [0.0; 3])
            };
            assert!((d[j] - (shifted(h) - shifted(-h)) / (2.0 * h)).abs() < 2e-8);
        }
    }
}
