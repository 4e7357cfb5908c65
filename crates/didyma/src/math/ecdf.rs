//! The probability that the distribution function of uniform numbers stays inside of bounds.

/// Probabilities of increments below this are left out: they could not change the tenth digit of anything.
const NEGLIGIBLE: f64 = 1e-30;

/// A place in (0, 1], and how many of the numbers may lie at or below it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Gate {
    pub at: f64,
    pub low: usize,
    pub high: usize,
}

/// The probability that `n` independent uniform numbers pass all `gates`, which are in the order of their places.
///
/// The counts of a Poisson process of rate n, given that it has n points in (0, 1], are those of n uniform numbers. Its
/// increments are independent, so that
///
/// P = P(the process passes the gates, and has n points) / P(it has n points),
///
/// and one convolution a gate gives the numerator (Noé 1972, in the form of Khmaladze and Shinjikashvili 2001). Every
/// term is positive: nothing cancels. The work is gates · width of the gates · width of an increment.
pub(crate) fn passing_probability(n: usize, gates: &[Gate]) -> f64 {
    let rate = n as f64;
    let end = Gate { at: 1.0, low: n, high: n };
    let (mut at, mut low, mut mass) = (0.0, 0, vec![1.0]);
    for gate in gates.iter().chain([&end]) {
        if gate.low > gate.high {
            return 0.0;
        }
        mass = passed((low, &mass), &Increments::new(rate * (gate.at - at)), gate);
        (at, low) = (gate.at, gate.low);
    }
    let all = Increments::new(rate);
    (mass[0] / all.masses[n - all.first]).clamp(0.0, 1.0)
}

/// Masses of the counts that a gate lets through, from those of the gate before it, whose first count is `low`.
fn passed((low, mass): (usize, &[f64]), increments: &Increments, gate: &Gate) -> Vec<f64> {
    let mut after = vec![0.0; gate.high + 1 - gate.low];
    for (i, &mass) in mass.iter().enumerate().filter(|(_, mass)| **mass > 0.0) {
        // Counts that these increments lead to begin here.
        let start = low + i + increments.first;
        let skipped = gate.low.saturating_sub(start).min(increments.masses.len());
        let place = start.saturating_sub(gate.low).min(after.len());
        let steps = after[place..].iter_mut().zip(&increments.masses[skipped..]);
        steps.for_each(|(after, step)| *after += mass * step);
    }
    after
}

/// The probabilities of a Poisson law that count.
struct Increments {
    first: usize,
    masses: Vec<f64>,
}

impl Increments {
    fn new(mean: f64) -> Self {
        if mean <= 0.0 {
            return Self { first: 0, masses: vec![1.0] };
        }
        let mode = mean as usize;
        let top = (mode as f64 * mean.ln() - mean - libm::lgamma(mode as f64 + 1.0)).exp();
        let mut below = vec![top];
        for count in (1..=mode).rev() {
            let mass = below[below.len() - 1] * count as f64 / mean;
            if mass < NEGLIGIBLE {
                break;
            }
            below.push(mass);
        }
        let first = mode + 1 - below.len();
        let mut masses: Vec<f64> = below.into_iter().rev().collect();
        for count in mode + 1.. {
            let mass = masses[masses.len() - 1] * mean / count as f64;
            if mass < NEGLIGIBLE {
                break;
            }
            masses.push(mass);
        }
        Self { first, masses }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gate_is_a_binomial_probability() {
        let gate = |low, high| [Gate { at: 0.25, low, high }];
        // Bin(4, 1/4): (81, 108, 54, 12, 1) / 256.
        for (low, high, expected) in [(0, 0, 81.0), (1, 2, 162.0), (0, 4, 256.0), (3, 4, 13.0)] {
            let found = 256.0 * passing_probability(4, &gate(low, high));
            assert!((found - expected).abs() < 1e-11, "{found} {expected}");
        }
        assert_eq!(passing_probability(4, &gate(3, 2)), 0.0);
        assert!((passing_probability(4, &[]) - 1.0).abs() < 1e-14);
    }

    /// Every way in which five numbers fall between three gates, by its multinomial probability.
    #[test]
    fn several_gates_are_the_sum_over_all_outcomes() {
        let gates = [
            Gate { at: 0.2, low: 0, high: 2 },
            Gate { at: 0.5, low: 1, high: 3 },
            Gate { at: 0.9, low: 4, high: 5 },
        ];
        let shares = [0.2, 0.3, 0.4, 0.1f64];
        let factorial = |n: usize| (1..=n).product::<usize>() as f64;
        let mut expected = 0.0;
        for code in 0..6usize.pow(3) {
            let counts = [code % 6, code / 6 % 6, code / 36];
            let sums = [counts[0], counts[0] + counts[1], counts.iter().sum()];
            if sums.iter().zip(&gates).any(|(sum, gate)| !(gate.low..=gate.high).contains(sum)) {
                continue;
            }
            let counts = [counts[0], counts[1], counts[2], 5 - sums[2]];
            let ways = 120.0 / counts.iter().map(|&c| factorial(c)).product::<f64>();
            let mass = counts.iter().zip(shares).map(|(&c, share)| share.powi(c as i32));
            expected += ways * mass.product::<f64>();
        }
        assert!((passing_probability(5, &gates) - expected).abs() < 1e-14);
    }
}
