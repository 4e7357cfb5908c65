//! Random streams addressed by what they are for: a seed and (purpose, round, index).
//!
//! # Guarantee
//! A stream is the ChaCha8 keystream whose 256-bit key *is* the address: seed, purpose, round and
//! index, 64 bits each. Two different addresses have different keys, never merely different offsets
//! of one sequence, so no two streams of a run overlap, and distinguishing them from independent
//! uniform bits would mean breaking ChaCha8. A stream depends on its address alone: not on the order
//! in which streams are asked for, on threads, or on the clock. Each yields 2⁷⁰ bytes.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

/// A random stream; any of the `rand` crate's distributions draws from it.
pub type Stream = ChaCha8Rng;

/// What a stream is used for. The numbers are part of the format: they are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u64)]
#[non_exhaustive]
pub enum Purpose {
    /// First weights of a network.
    Weights = 1,
    /// Parameters drawn from a prior or proposal.
    Parameters = 2,
    /// One simulation.
    Simulation = 3,
    /// Order of the rows in an epoch.
    Shuffle = 4,
    /// Levels and inner samples of an estimator.
    Plan = 5,
    /// Posterior samples.
    Posterior = 6,
    /// Synthetic data of benchmarks and tests.
    Synthetic = 7,
    /// Queries of a measurement.
    Diagnostic = 8,
}

/// All random streams of a run.
///
/// ```
/// use didyma::rng::{Purpose, Streams};
/// use rand::Rng;
/// let streams = Streams::new(7);
/// let mut a = streams.stream(Purpose::Simulation, 1, 41);
/// let mut b = streams.stream(Purpose::Simulation, 1, 42);
/// let mut again = Streams::new(7).stream(Purpose::Simulation, 1, 41);
/// let first = a.next_u64();
/// assert_eq!(first, again.next_u64());
/// assert_ne!(first, b.next_u64());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Streams {
    seed: u64,
}

impl Streams {
    /// The streams of a run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The stream for this purpose, round and index (of a simulation, a batch, …), from its start.
    pub fn stream(&self, purpose: Purpose, round: u64, index: u64) -> Stream {
        let mut key = [0; 32];
        for (bytes, word) in key.chunks_exact_mut(8).zip([self.seed, purpose as u64, round, index])
        {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::Rng;

    #[test]
    fn every_word_of_the_address_counts() {
        let first = |seed, purpose, round, index| {
            Streams::new(seed).stream(purpose, round, index).next_u64()
        };
        let streams = [
            first(1, Purpose::Plan, 2, 3),
            first(2, Purpose::Plan, 2, 3),
            first(1, Purpose::Shuffle, 2, 3),
            first(1, Purpose::Plan, 3, 3),
            first(1, Purpose::Plan, 2, 4),
            first(1, Purpose::Plan, 3, 2),
        ];
        for (i, a) in streams.iter().enumerate() {
            assert!(streams[i + 1..].iter().all(|b| a != b));
        }
    }
}
