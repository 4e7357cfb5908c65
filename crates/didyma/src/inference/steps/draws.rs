//! Were these drawn from that law? By the Kolmogorov-Smirnov test of each parameter.

use crate::math::normal;
use crate::problem::prior::Prior;
use crate::rows::Rows;

/// p-value, divided by the number of parameters, below which draws are refused: of right ones one set in a million.
const IMPOSSIBLE: f64 = 1e-6;
/// Draws of a law that has no formula, to compare with.
pub(super) const COMPARED: usize = 10_000;

/// What speaks against draws of the prior.
pub(super) fn unlike_prior(prior: &Prior, theta: Rows) -> Option<String> {
    // Under the prior, each is a standard normal in its unbounded coordinate.
    let z = unbounded(prior, theta);
    let distance = |z: &[f64]| {
        let n = z.len() as f64;
        let steps = z.iter().enumerate().map(|(i, &z)| {
            let share = normal::distribution(z);
            (share - i as f64 / n).max((i + 1) as f64 / n - share)
        });
        steps.fold(0.0, f64::max)
    };
    verdict(prior, z.iter().map(|z| (distance(z), z.len() as f64)), "the prior")
}

/// What speaks against draws of the law that others were drawn from.
pub(super) fn unlike(prior: &Prior, known: Rows, theta: Rows) -> Option<String> {
    let pairs = unbounded(prior, known).into_iter().zip(unbounded(prior, theta));
    let found = pairs.map(|(known, z)| {
        let (n, m) = (known.len() as f64, z.len() as f64);
        (two_sample(&known, &z), n * m / (n + m))
    });
    verdict(prior, found, "the posterior")
}

/// Each parameter's unbounded coordinate, in order of size.
fn unbounded(prior: &Prior, theta: Rows) -> Vec<Vec<f64>> {
    let mut columns = vec![Vec::with_capacity(theta.len()); prior.dim()];
    let mut z = vec![0.0; prior.dim()];
    for row in theta.iter() {
        prior.unbounded(row, &mut z);
        columns.iter_mut().zip(&z).for_each(|(column, &z)| column.push(z));
    }
    columns.iter_mut().for_each(|column| column.sort_unstable_by(f64::total_cmp));
    columns
}

/// Largest difference of two empirical distribution functions.
fn two_sample(a: &[f64], b: &[f64]) -> f64 {
    let (mut i, mut j, mut largest) = (0, 0, 0.0f64);
    while i < a.len() && j < b.len() {
        let least = a[i].min(b[j]);
        while i < a.len() && a[i] <= least {
            i += 1;
        }
        while j < b.len() && b[j] <= least {
            j += 1;
        }
        largest = largest.max((i as f64 / a.len() as f64 - j as f64 / b.len() as f64).abs());
    }
    largest
}

fn verdict(prior: &Prior, found: impl Iterator<Item = (f64, f64)>, law: &str) -> Option<String> {
    let limit = IMPOSSIBLE / prior.dim() as f64;
    let mut names = prior.names();
    let worst = found.map(|(distance, n)| (names.next(), p_value(distance, n)));
    let worst = worst.min_by(|a, b| a.1.total_cmp(&b.1))?;
    (worst.1 < limit).then(|| {
        let name = worst.0.unwrap_or_default();
        format!("those of {name} cannot be draws of {law} (p = {:.0e})", worst.1)
    })
}

/// Kolmogorov's law, with Stephens' correction for finite n.
fn p_value(distance: f64, n: f64) -> f64 {
    let root = n.sqrt();
    let lambda = (root + 0.12 + 0.11 / root) * distance;
    if lambda < 0.3 {
        return 1.0;
    }
    let term = |k: i32| {
        let sign = if k % 2 == 1 { 2.0 } else { -2.0 };
        sign * (-2.0 * f64::from(k * k) * lambda * lambda).exp()
    };
    (1..=20).map(term).sum::<f64>().clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::problem::prior::Marginal;
    use crate::rng::{Purpose, Streams};

    /// Tabulated quantiles of Kolmogorov's law: P(K > 1.36) = 0.05, P(K > 1.63) = 0.01.
    #[test]
    fn p_values_are_those_of_tables() {
        let p = |lambda: f64| p_value(lambda / 1e4, 1e8);
        assert!((p(1.3581) - 0.05).abs() < 2e-4 && (p(1.6276) - 0.01).abs() < 1e-4);
        assert!((p(0.8276) - 0.5).abs() < 1e-3);
    }

    #[test]
    fn draws_of_the_prior_pass_and_others_do_not() {
        let prior = Prior::new([
            ("a", Marginal::Uniform { low: -1.0, high: 3.0 }),
            ("b", Marginal::LogNormal { mean: 0.5, sd: 2.0 }),
        ])
        .unwrap();
        for seed in 0..20 {
            let streams = Streams::new(seed).simulations(Purpose::Parameters, 0);
            let theta = prior.sample_rows(1000, &streams, 1);
            let rows = Rows::new("theta", &theta, 2).unwrap();
            assert_eq!(unlike_prior(&prior, rows), None);
            let other = Streams::new(seed + 100).simulations(Purpose::Parameters, 0);
            let other = prior.sample_rows(500, &other, 1);
            assert_eq!(unlike(&prior, rows, Rows::new("theta", &other, 2).unwrap()), None);
            // Half the range: D = 1/2, or as far from a sample of it.
            let narrow: Vec<f64> =
                theta.chunks_exact(2).flat_map(|t| [1.0 + t[0].abs() / 2.0, t[1]]).collect();
            let narrow = Rows::new("theta", &narrow, 2).unwrap();
            let told = unlike_prior(&prior, narrow).unwrap();
            assert!(told.contains("those of a cannot be draws of the prior"), "{told}");
            assert!(unlike(&prior, rows, narrow).is_some());
        }
    }
}
