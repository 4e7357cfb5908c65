//! Point masses: values that recur exactly among numbers that otherwise do not.

/// Share of the numbers, and how many of them, that a value has at least to be a point mass.
const LEAST_SHARE: f64 = 0.02;
const LEAST_COUNT: usize = 5;
/// Others that are needed to tell whether they recur.
const LEAST_REST: usize = 20;
/// Share of the others that differ from each other, at least: of counts and other discrete numbers fewer do.
const DISTINCT: f64 = 0.9;

/// A sample of a law that is partly discrete: sentinels for missing values, zeros of a detector, a limit that is hit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Masses {
    /// The values that recur and how often each does, the commonest first.
    pub values: Vec<(f64, usize)>,
    /// The other numbers, in order.
    pub rest: Vec<f64>,
}

impl Masses {
    /// The point masses of numbers that are in order; none if there are none, or if nearly all recur, as counts do.
    pub(crate) fn of(sorted: &[f64]) -> Option<Self> {
        let least = LEAST_COUNT.max((LEAST_SHARE * sorted.len() as f64).ceil() as usize);
        let (mut values, mut rest, mut distinct) = (Vec::new(), Vec::new(), 0);
        for same in sorted.chunk_by(|a, b| a == b) {
            if same.len() >= least {
                values.push((same[0], same.len()));
            } else {
                rest.extend_from_slice(same);
                distinct += 1;
            }
        }
        values.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let continuous =
            rest.len() >= LEAST_REST && distinct as f64 >= DISTINCT * rest.len() as f64;
        (continuous && !values.is_empty()).then_some(Self { values, rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_recur_are_told_from_counts_and_constants() {
        let mut mixed: Vec<f64> = (0..80).map(|i| f64::from(i) / 7.0).collect();
        assert_eq!(Masses::of(&mixed), None);
        mixed.splice(0..0, [-999.0; 20]);
        let found = Masses::of(&mixed).unwrap();
        assert_eq!((found.values, found.rest.len()), (vec![(-999.0, 20)], 80));
        let counts: Vec<f64> = (0..100).map(|i| f64::from(i / 3)).collect();
        assert_eq!(Masses::of(&counts), None);
        assert_eq!(Masses::of(&[3.0; 50]), None);
        assert_eq!(Masses::of(&[]), None);
    }
}
