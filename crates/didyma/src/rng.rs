//! Random streams addressed by what they are for: a seed and (purpose, round, index).
//!
//! # Guarantee
//! A stream is the ChaCha8 keystream whose 256-bit key *is* the address: seed, purpose, round and
//! index, 64 bits each. Two different addresses have different keys, never merely different offsets
//! of one sequence, so no two streams of a run overlap, and distinguishing them from independent
//! uniform bits would mean breaking ChaCha8. A stream depends on its address alone: not on the order
//! in which streams are asked for, on threads, or on the clock. Each yields 2⁷⁰ bytes. Whatever is drawn
//! for another reason has a purpose of its own, not a range of another purpose's rounds or indices; the
//! few that need a third number (a stage, a tile) have it as ChaCha8's nonce. A member of an ensemble has its number in the
//! upper half of the purpose.

use rand::rand_core::Infallible;
use rand::{Rng, SeedableRng, TryRng};
use rand_chacha::ChaCha8Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

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
    /// Folds, classifiers and directions of a metric.
    Metric = 9,
    /// Times and noise of a score network's loss.
    Noise = 10,
    /// Networks that tell which simulations fail.
    Validity = 11,
    /// Keys of the cheap streams of a round ([`Streams::simulations`]), whose purpose is the index.
    Keys = 12,
    /// Rows of a round that are held out.
    Split = 13,
    /// Inner samples of a validation loss.
    ValidationPlan = 14,
    /// Times and noise of a score network's validation loss.
    ValidationNoise = 15,
    /// Candidates inside the region of a truncated proposal.
    Candidates = 16,
    /// Particles that walk in the region of a truncated proposal.
    Walk = 17,
    /// Draws that tell the posterior's mass inside the prior.
    Mass = 18,
    /// Folds by which the networks of [`Purpose::Validity`] are judged.
    ValidityFolds = 19,
    /// Draws of the posterior that tell how much of it lies where simulations fail.
    ValidityDraws = 20,
    /// Parameters of the simulations by which summaries are scaled.
    PilotParameters = 21,
    /// Simulations by which summaries are scaled.
    PilotSimulation = 22,
    /// Draws of a posterior that are compared with parameters said to come from it.
    Comparison = 23,
    /// Simulations at parameters that nobody proposed.
    OtherSimulation = 24,
    /// Draws that tell how far the members of an ensemble are apart.
    Disagreement = 25,
    /// Draws of the posterior that are proposed beside those of a region that other draws found.
    Beside = 26,
    /// Pairs that a thinned backward pass keeps.
    Thinning = 27,
    /// Draws of p̃ that are inner samples of all rows.
    InnerPool = 28,
    /// Inner samples that are made for each row.
    InnerStock = 29,
    /// Outer rows of a study of levels.
    LevelRows = 30,
    /// [`Purpose::InnerPool`] of a study of levels, which must not have the samples that the flow was trained on.
    LevelPool = 31,
    /// [`Purpose::InnerStock`] of a study of levels.
    LevelStock = 32,
    /// Queries by which the levels of a round are chosen.
    LevelChoice = 33,
    /// Held-out rows and candidates of a calibration.
    Calibration = 34,
    /// Places of a rank among its ties, and inside its step.
    RankTies = 35,
    /// Points of reference of a coverage test.
    References = 36,
    /// Folds, first weights and batches of the classifiers of a local test.
    LocalTest = 37,
    /// Data of a local test's null hypothesis.
    LocalNull = 38,
    /// Noise on the summaries of training rows.
    SummaryNoise = 40,
    /// Redraws of the candidates that made x, under the assumption that q is exact.
    CalibrationNull = 41,
    /// Draws of q at the x of simulations that were held out.
    HeldOut = 42,
    /// Uniform numbers that share out the weight at the place of held-out parameters.
    HeldOutPlaces = 43,
    /// Candidates that a local test tells held-out parameters from.
    LocalPairs = 44,
    /// Draws of q at the observation that a local test evaluates its classifiers at.
    LocalDraws = 45,
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
    member: u32,
}

impl Streams {
    /// The streams of a run with this seed.
    pub const fn new(seed: u64) -> Self {
        Self { seed, member: 0 }
    }

    /// Streams of a member of an ensemble, by its number from 0; the first has the run's own.
    pub const fn of_member(self, member: u32) -> Self {
        Self { member, ..self }
    }

    /// The seed.
    pub const fn seed(&self) -> u64 {
        self.seed
    }

    /// The member of an ensemble whose streams these are.
    pub const fn member(&self) -> u32 {
        self.member
    }

    /// The stream for this purpose, round and index (of a simulation, a batch, …), from its start.
    pub fn stream(&self, purpose: Purpose, round: u64, index: u64) -> Stream {
        let mut key = [0; 32];
        let purpose = purpose as u64 | u64::from(self.member) << 32;
        for (bytes, word) in key.chunks_exact_mut(8).zip([self.seed, purpose, round, index]) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        ChaCha8Rng::from_seed(key)
    }
}

/// The random stream of one simulation: as statistically sound as needed for Monte Carlo, and ready after a
/// few nanoseconds, where a ChaCha8 stream takes longer than a whole cheap simulation.
///
/// It remembers where it starts, so that a program outside of this process can be told: by a [`seed`](Self::seed)
/// for whatever generator it has, or by the [`words`](Self::words) from which it can draw these very numbers.
///
/// ```
/// use didyma::rng::{Purpose, Streams};
/// use rand::{Rng, SeedableRng};
/// use rand_xoshiro::Xoshiro256PlusPlus;
/// let mut stream = Streams::new(7).simulations(Purpose::Simulation, 1).stream(41);
/// let bytes: Vec<u8> = stream.words().iter().flat_map(|word| word.to_le_bytes()).collect();
/// let mut same = Xoshiro256PlusPlus::from_seed(bytes.try_into().unwrap());
/// assert_eq!(stream.next_u64(), same.next_u64());
/// assert!(stream.seed() < 1 << 53);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationStream {
    rng: Xoshiro256PlusPlus,
    words: [u64; 4],
}

impl SimulationStream {
    #[inline]
    fn from_words(words: [u64; 4]) -> Self {
        let mut state = [0; 32];
        for (bytes, word) in state.chunks_exact_mut(8).zip(words) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        Self { rng: Xoshiro256PlusPlus::from_seed(state), words }
    }

    /// The state of xoshiro256++ from which the stream starts, however much was drawn since.
    pub fn words(&self) -> [u64; 4] {
        self.words
    }

    /// A seed for another generator: 53 bits, which every language holds exactly in a double.
    pub fn seed(&self) -> u64 {
        self.words.iter().fold(0, |seed: u64, word| mix(seed.wrapping_add(ODD) ^ word)) >> 11
    }
}

impl TryRng for SimulationStream {
    type Error = Infallible;

    #[inline]
    fn try_next_u32(&mut self) -> Result<u32, Infallible> {
        self.rng.try_next_u32()
    }

    #[inline]
    fn try_next_u64(&mut self) -> Result<u64, Infallible> {
        self.rng.try_next_u64()
    }

    #[inline]
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), Infallible> {
        self.rng.try_fill_bytes(bytes)
    }
}

/// The streams of a round's simulations, one for each index.
///
/// A stream is xoshiro256++ whose 256-bit state is a bijective mix of the index under four keys, which
/// are the first words of the ChaCha8 stream of (seed, [`Purpose::Keys`], round, purpose). Different
/// indices thus differ in every word of their state, and a stream depends on its address alone.
#[derive(Clone, Debug)]
pub struct SimulationStreams {
    keys: [u64; 4],
}

impl Streams {
    /// The streams of the simulations (or of anything else as cheap) of a round.
    pub fn simulations(&self, purpose: Purpose, round: u64) -> SimulationStreams {
        let mut rng = self.stream(Purpose::Keys, round, purpose as u64);
        SimulationStreams { keys: std::array::from_fn(|_| rng.next_u64()) }
    }
}

impl SimulationStreams {
    /// The stream of one simulation.
    #[inline]
    pub fn stream(&self, index: u64) -> SimulationStream {
        let index = index.wrapping_mul(ODD);
        SimulationStream::from_words(self.keys.map(|key| mix(key.wrapping_add(index))))
    }
}

/// 2⁶⁴ divided by the golden ratio, made odd: neighbouring indices are far apart before they are mixed.
const ODD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A bijection of 64 bits in which every bit of the input flips every bit of the output with probability
/// about one half (Stafford's thirteenth variant, as in SplitMix64).
#[inline]
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

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

    /// The numbers are those of xoshiro256++, and seeds of neighbouring simulations differ in about half their bits.
    #[test]
    fn a_stream_knows_where_it_starts() {
        let streams = Streams::new(3).simulations(Purpose::Simulation, 1);
        let (mut stream, mut flips) = (streams.stream(5), 0);
        let bytes: Vec<u8> = stream.words().iter().flat_map(|word| word.to_le_bytes()).collect();
        let mut same = Xoshiro256PlusPlus::from_seed(bytes.try_into().unwrap());
        assert!((0..9).all(|_| stream.next_u64() == same.next_u64()));
        assert_eq!(
            (stream.words(), stream.seed()),
            (streams.stream(5).words(), streams.stream(5).seed())
        );
        for i in 0..1000 {
            let (a, b) = (streams.stream(i).seed(), streams.stream(i + 1).seed());
            assert!(a < 1 << 53);
            flips += (a ^ b).count_ones();
        }
        // 53,000 fair coins: ±4 standard deviations of √53000 / 2.
        assert!((f64::from(flips) - 26_500.0).abs() < 4.0 * 53_000f64.sqrt() / 2.0, "{flips}");
    }

    /// First outputs of neighbouring simulations: uniform, and uncorrelated from one to the next.
    #[test]
    fn simulation_streams_are_uniform_and_independent() {
        let streams = Streams::new(3).simulations(Purpose::Simulation, 1);
        let first = |i| streams.stream(i).next_u64() as f64 / 2f64.powi(64) - 0.5;
        let n = 100_000;
        let (mut sum, mut squares, mut products) = (0.0, 0.0, 0.0);
        for i in 0..n {
            sum += first(i);
            squares += first(i) * first(i);
            products += first(i) * first(i + 1);
        }
        // Standard deviations of u − ½, its square and a product: 1/√12, 1/√180, 1/12. Four of them.
        let bound = |sd: f64| 4.0 * sd * (n as f64).sqrt();
        assert!(sum.abs() < bound(12f64.sqrt().recip()));
        assert!((squares - n as f64 / 12.0).abs() < bound(180f64.sqrt().recip()));
        assert!(products.abs() < bound(1.0 / 12.0));
        let other = Streams::new(3).simulations(Purpose::Simulation, 2);
        assert_ne!(other.stream(5).next_u64(), streams.stream(5).next_u64());
    }
}
