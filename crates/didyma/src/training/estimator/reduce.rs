//! From the log-densities of a group to its loss and the loss's derivatives.

use super::{Group, Plan, Term};

/// Loss of a group of the plan, and its derivative with respect to each log q, into `d_log_q`.
///
/// `log_g[j]` = log q(θ_j | x) − log p(θ_j), to which the plan's log-weights are added here;
/// `log_q0` = log q of the first atom, which `own` multiplies. The derivative of a log-mean-exp is the
/// softmax over its block, so that of an antithetic difference is the softmax of all minus half of the
/// softmax of the atom's half: it sums to 0. If a block has no density at all (every log g is −∞) the
/// loss is infinite, which an engine refuses.
///
/// ```
/// use didyma::estimator::{Plan, reduce};
/// let mut plan = Plan::default();
/// plan.group(0, [1, 2]).log_mean_exp(1.0);
/// let (mut log_g, mut d) = ([3.0f64.ln(), 1.0f64.ln()], [0.0; 2]);
/// let loss = reduce(&plan, &plan.groups()[0], 0.0, &mut log_g, &mut d);
/// assert!((loss - 2.0f64.ln()).abs() < 1e-15); // log of the mean of 3 and 1
/// assert!((d[0] - 0.75).abs() < 1e-15 && (d[1] - 0.25).abs() < 1e-15);
/// ```
///
/// # Panics
/// Unless `log_g` and `d_log_q` are as long as the group.
pub fn reduce(
    plan: &Plan,
    group: &Group,
    log_q0: f64,
    log_g: &mut [f64],
    d_log_q: &mut [f64],
) -> f64 {
    assert!(log_g.len() == group.pairs() && d_log_q.len() == group.pairs(), "one for each atom");
    log_g.iter_mut().zip(plan.log_weights(group)).for_each(|(u, w)| *u += w);
    d_log_q.fill(0.0);
    let mut loss: f64 =
        plan.terms(group).iter().map(|term| add_term(term, group.shared, log_g, d_log_q)).sum();
    if group.own != 0.0 {
        loss -= group.own * log_q0;
        d_log_q[0] -= group.own;
    }
    loss
}

/// The loss of [`reduce`] alone, for half of the exponentials.
pub fn reduce_loss(plan: &Plan, group: &Group, log_q0: f64, log_g: &mut [f64]) -> f64 {
    log_g.iter_mut().zip(plan.log_weights(group)).for_each(|(u, w)| *u += w);
    let (shared, u) = log_g.split_at(usize::from(group.shared));
    let term = |term: &Term| {
        let blocks = u.chunks_exact(term.size).take(term.blocks);
        let sum: f64 = blocks.map(|block| log_mean_exp(shared, block)).sum();
        term.weight / term.blocks as f64 * sum
    };
    plan.terms(group).iter().map(term).sum::<f64>() - group.own * log_q0
}

/// log (1/n Σ exp u) of a block and the atom it shares, if any.
fn log_mean_exp(shared: &[f64], block: &[f64]) -> f64 {
    let all = || shared.iter().chain(block);
    let top = all().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return top;
    }
    let sum: f64 = all().map(|u| (u - top).exp()).sum();
    top + (sum / (shared.len() + block.len()) as f64).ln()
}

fn add_term(term: &Term, shared: bool, u: &[f64], d: &mut [f64]) -> f64 {
    let (shared_u, u) = u.split_at(usize::from(shared));
    let (shared_d, d) = d.split_at_mut(usize::from(shared));
    let factor = term.weight / term.blocks as f64;
    let blocks = u.chunks_exact(term.size).zip(d.chunks_exact_mut(term.size)).take(term.blocks);
    blocks.map(|(u, d)| add_log_mean_exp(factor, (shared_u, u), (&mut *shared_d, d))).sum()
}

/// factor · log (1/n Σ exp u), and factor · softmax added to `d`, for a block and the atom it shares,
/// if any. Every block takes out its own maximum, so that u may span any range: one taken from
/// another block could underflow it.
fn add_log_mean_exp(factor: f64, u: (&[f64], &[f64]), d: (&mut [f64], &mut [f64])) -> f64 {
    let all = || u.0.iter().chain(u.1);
    let top = all().copied().fold(f64::NEG_INFINITY, f64::max);
    if top == f64::NEG_INFINITY {
        return factor * top;
    }
    let sum: f64 = all().map(|u| (u - top).exp()).sum();
    let scale = factor / sum;
    for (d, u) in d.0.iter_mut().chain(d.1).zip(all()) {
        *d += scale * (u - top).exp();
    }
    factor * (top + (sum / (u.0.len() + u.1.len()) as f64).ln())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every kind of term at once, against central differences.
    #[test]
    fn derivatives_are_exact_over_a_wide_range() {
        let mut plan = Plan::default();
        plan.group(0, 0..5).own(1.0).share_first().antithetic_difference(0.7).log_mean_exp(0.2);
        plan.last().term(Term { weight: 0.3, size: 1, blocks: 3 });
        plan.last().log_weights(&[2.0, 1.0, 0.0, -1.0, 3.0]);
        let log_q = [640.0, -700.0, 650.0, 649.0, -3.0];
        let loss = |log_q: [f64; 5], d: &mut [f64]| {
            reduce(&plan, &plan.groups()[0], log_q[0], &mut log_q.clone(), d)
        };
        let mut d = [0.0; 5];
        assert!(loss(log_q, &mut d).is_finite());
        let alone = reduce_loss(&plan, &plan.groups()[0], log_q[0], &mut log_q.clone());
        assert!((alone - loss(log_q, &mut d)).abs() < 1e-12); // a few roundings of numbers up to 700
        for j in 0..5 {
            // Central differences of a smooth function of size 1e3: ε |f| / h = 2e-9, h² = 1e-8.
            let h = 1e-4;
            let shifted = |h: f64| {
                let mut moved = log_q;
                moved[j] += h;
                loss(moved, &mut [0.0; 5])
            };
            assert!((d[j] - (shifted(h) - shifted(-h)) / (2.0 * h)).abs() < 2e-8, "{j}");
        }
    }

    #[test]
    fn a_block_without_density_is_not_masked() {
        let mut plan = Plan::default();
        plan.group(0, 0..4).antithetic_difference(1.0);
        let none = f64::NEG_INFINITY;
        let value =
            |u: [f64; 4]| reduce(&plan, &plan.groups()[0], 0.0, &mut u.clone(), &mut [0.0; 4]);
        assert!(value([none, 1.0, none, 0.0]).is_finite());
        assert_eq!(value([0.0, 1.0, none, none]), f64::INFINITY);
        assert!(value([f64::NAN, 1.0, 0.0, 0.0]).is_nan());
    }
}
