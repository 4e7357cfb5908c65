//! Sums of numbers that are known by their logarithms.

/// The logarithm of the sum of what these are logarithms of.
pub(crate) fn log_sum_exp(logs: impl Iterator<Item = f64> + Clone) -> f64 {
    let largest = logs.clone().fold(f64::NEG_INFINITY, f64::max);
    if largest == f64::NEG_INFINITY {
        return largest;
    }
    largest + logs.map(|log| (log - largest).exp()).sum::<f64>().ln()
}

/// The logarithm of their mean.
pub(crate) fn log_mean_exp(logs: impl ExactSizeIterator<Item = f64> + Clone) -> f64 {
    let count = logs.len() as f64;
    log_sum_exp(logs) - count.ln()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_are_those_of_the_numbers_wherever_they_are() {
        let logs = [0.5f64, -1.0, 2.0];
        let sum: f64 = logs.iter().map(|log| log.exp()).sum();
        for shift in [0.0, -2000.0, 2000.0] {
            let found = log_sum_exp(logs.iter().map(|log| log + shift)) - shift;
            assert!((found - sum.ln()).abs() < 1e-12);
        }
        assert!((log_mean_exp(logs.iter().copied()) - (sum / 3.0).ln()).abs() < 1e-12);
        assert_eq!(log_sum_exp([f64::NEG_INFINITY; 2].into_iter()), f64::NEG_INFINITY);
    }
}
