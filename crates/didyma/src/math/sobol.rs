//! Digitally shifted nets of Sobol's sequence: points that fill the unit cube more evenly than independent ones.
//!
//! Point i has the coordinates ⊕ over the bits b of i of V_b, with direction numbers V of each dimension (I. M. Sobol 1967). Numbers
//! that begin the recurrences are those of Joe and Kuo (2008), table `new-joe-kuo-6` (its licence is in `LICENSE-SOBOL`), in `sobol.txt`: for each dimension but
//! the first a primitive polynomial, as the bits of an integer, and m_1, m_2, …
//!
//! A random digital shift, the same for all points, makes each point uniform. Points i and i ⊕ c differ by the point c, so that
//! an aligned run of 2^k points is the first 2^k shifted by another number, and has the same law. This is why multilevel sums
//! telescope: half of a net is a net.

use crate::rng::Stream;
use rand::RngExt;
use std::sync::LazyLock;

/// Binary digits of a coordinate.
const BITS: usize = 32;

/// Direction numbers, dimension by dimension.
static DIRECTIONS: LazyLock<Vec<[u32; BITS]>> = LazyLock::new(|| {
    let first = std::array::from_fn(|bit| 1 << (BITS - 1 - bit));
    std::iter::once(first).chain(include_str!("sobol.txt").lines().map(directions)).collect()
});

/// The direction numbers of a line of the table.
fn directions(line: &str) -> [u32; BITS] {
    let mut numbers = line.split(' ').map(|word| word.parse::<u32>().expect("a table of numbers"));
    let polynomial = numbers.next().expect("a polynomial begins each line");
    let begin: Vec<u32> = numbers.collect();
    let degree = begin.len();
    let mut v = [0; BITS];
    for bit in 0..BITS {
        v[bit] = begin.get(bit).map_or_else(
            || {
                let last = v[bit - degree];
                let taps = (1..degree).filter(|tap| polynomial >> (degree - tap) & 1 == 1);
                taps.fold(last ^ last >> degree, |sum, tap| sum ^ v[bit - tap])
            },
            |m| m << (BITS - 1 - bit),
        );
    }
    v
}

/// The first points of Sobol's sequence with a random digital shift.
///
/// ```
/// use didyma::math::Net;
/// use didyma::rng::{Purpose, Streams};
/// let net = Net::new(2, &mut Streams::new(1).stream(Purpose::Synthetic, 0, 0));
/// // One point in each of eight intervals of the first dimension.
/// let mut cells: Vec<_> = (0..8).map(|i| (8.0 * net.point(i).next().unwrap()) as usize).collect();
/// cells.sort();
/// assert!(cells.into_iter().eq(0..8));
/// ```
#[derive(Clone, Debug)]
pub struct Net {
    /// One for each dimension.
    shift: Vec<u32>,
}

impl Net {
    /// The dimensions that a net can have, at most.
    pub const MOST: usize = 128;

    /// A net of this dimension.
    ///
    /// # Panics
    /// If there is none.
    pub fn new(dimension: usize, rng: &mut Stream) -> Self {
        assert!((1..=Self::MOST).contains(&dimension), "a net of {dimension} dimensions");
        Self { shift: (0..dimension).map(|_| rng.random()).collect() }
    }

    /// The coordinates of a point, strictly between 0 and 1.
    pub fn point(&self, index: u32) -> impl Iterator<Item = f64> {
        self.digits(index).map(|digits| (f64::from(digits) + 0.5) / (BITS as f64).exp2())
    }

    fn digits(&self, index: u32) -> impl Iterator<Item = u32> {
        self.shift.iter().zip(&*DIRECTIONS).map(move |(shift, directions)| {
            let bits = directions.iter().enumerate().filter(|(bit, _)| index >> bit & 1 == 1);
            bits.fold(*shift, |sum, (_, direction)| sum ^ direction)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};

    fn unshifted() -> Net {
        Net { shift: vec![0; Net::MOST] }
    }

    /// Points of another implementation, `scipy.stats.qmc.Sobol(128, scramble=False, bits=32)` of SciPy 1.17, whose n-th
    /// point is number n ⊕ (n >> 1) here.
    #[test]
    fn points_are_those_of_another_implementation() {
        let net = unshifted();
        assert_eq!(DIRECTIONS.len(), Net::MOST);
        let at = |index, dimension| net.point(index).nth(dimension).unwrap();
        let half = (-33f64).exp2();
        for (dimension, last, expected) in [
            (0, 0.5654296875, [0.0, 0.5, 0.25, 0.75, 0.125, 0.625, 0.375, 0.875]),
            (1, 0.1884765625, [0.0, 0.5, 0.75, 0.25, 0.625, 0.125, 0.375, 0.875]),
            (2, 0.8916015625, [0.0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125]),
            (5, 0.1279296875, [0.0, 0.5, 0.25, 0.75, 0.375, 0.875, 0.125, 0.625]),
            (50, 0.4365234375, [0.0, 0.5, 0.75, 0.25, 0.875, 0.375, 0.125, 0.625]),
            (127, 0.7568359375, [0.0, 0.5, 0.75, 0.25, 0.375, 0.875, 0.625, 0.125]),
        ] {
            for (index, expected) in (0..).zip(expected) {
                assert_eq!(at(index, dimension), expected + half);
            }
            assert_eq!(at(777, dimension), last + half);
        }
    }

    /// Every dimension of an aligned run of 2^k points has one of them in each interval of length 2^−k, shifted or not.
    #[test]
    fn aligned_runs_are_nets() {
        let net = Net::new(Net::MOST, &mut Streams::new(1).stream(Purpose::Synthetic, 0, 0));
        for (first, size) in [(0, 64), (64, 64), (96, 32), (1024, 256)] {
            let mut seen = vec![vec![false; size]; Net::MOST];
            for index in first..first + size as u32 {
                for (seen, u) in seen.iter_mut().zip(net.point(index)) {
                    assert!(0.0 < u && u < 1.0);
                    seen[(u * size as f64) as usize] = true;
                }
            }
            assert!(seen.iter().flatten().all(|&seen| seen));
        }
    }

    /// Over all shifts of three binary digits in two dimensions, every aligned run of a net has the points of the first run
    /// equally often: as sets, since a block's loss does not know their order. On this law the telescope rests.
    #[test]
    fn aligned_runs_have_one_law() {
        let law = |first: u32, size: u32| {
            let set = |shift: u32| {
                let net = Net { shift: vec![shift << 29, (shift >> 3) << 29] };
                let cell =
                    |index| net.digits(index).fold(0, |cell, digits| 8 * cell + (digits >> 29));
                let mut set: Vec<u32> = (first..first + size).map(cell).collect();
                set.sort_unstable();
                set
            };
            let mut sets: Vec<Vec<u32>> = (0..64).map(set).collect();
            sets.sort_unstable();
            sets
        };
        for size in [1, 2, 4] {
            let expected = law(0, size);
            assert!((1..8 / size).all(|run| law(run * size, size) == expected), "{size}");
        }
        assert_ne!(law(1, 4), law(0, 4), "a run that is not aligned is no net");
    }
}
