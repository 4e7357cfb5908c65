//! Point masses: values that recur exactly among numbers that otherwise do not.

/// Share of the numbers, and how many of them, that a value has at least to be a point mass.
const LEAST_SHARE: f64 = 0.02;
const LEAST_COUNT: usize = 5;
/// How much more often it occurs than any other value, at least: of counts, neighbours are as common.
const MORE: usize = 10;
/// Others that are needed to tell, and different ones among them: of rare counts there are few.
const LEAST_REST: usize = 20;
const LEAST_KINDS: usize = 10;

/// A sample of a law that is partly discrete: sentinels for missing values, zeros of a detector, a limit that is hit.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Masses {
    /// The values that recur and how often each does, the commonest first.
    pub values: Vec<(f64, usize)>,
    /// The other numbers, in order.
    pub rest: Vec<f64>,
}

impl Masses {
    /// The point masses of numbers that are in order; none if there are none, or if others recur as much, as counts do.
    pub(crate) fn of(sorted: &[f64]) -> Option<Self> {
        let least = LEAST_COUNT.max((LEAST_SHARE * sorted.len() as f64).ceil() as usize);
        let mut groups: Vec<&[f64]> = sorted.chunk_by(|a, b| a == b).collect();
        groups.sort_by_key(|group| std::cmp::Reverse(group.len()));
        // The masses are those before the first great fall in how often values occur.
        let size = |i: usize| groups.get(i).map_or(0, |group| group.len());
        let fall = (1..groups.len()).find(|&i| size(i - 1) >= MORE * size(i))?;
        let (masses, others) = groups.split_at(fall);
        if masses.iter().any(|mass| mass.len() < least) || others.len() < LEAST_KINDS {
            return None;
        }
        let values = masses.iter().map(|mass| (mass[0], mass.len())).collect();
        let mut rest = others.concat();
        rest.sort_unstable_by(f64::total_cmp);
        (rest.len() >= LEAST_REST).then_some(Self { values, rest })
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
        let mut counts: Vec<f64> = (0..100).map(|i| f64::from(i / 3)).collect();
        assert_eq!(Masses::of(&counts), None);
        counts.splice(0..0, [-1.0; 40]);
        assert_eq!(Masses::of(&counts).unwrap().values, [(-1.0, 40)]);
        assert_eq!(Masses::of(&[3.0; 50]), None);
        assert_eq!(Masses::of(&[]), None);
    }
}
