//! The random streams of a score network's loss.

use crate::error::{Error, Result};
use crate::rng::{Purpose, Stream, Streams};

/// Where the times and the noise of a score network's loss come from.
///
/// A tile of up to 64 rows has a stream of its own: the ChaCha8 stream of ([`Purpose::Noise`], round, step), moved to the
/// nonce 2³² · repeat + tile. A training step's number is that of the steps before it; an evaluation's is 2⁶³ more, or
/// 2⁶⁴ − 1 where the noise is fixed. So the draws depend neither on threads nor on where a run was interrupted.
#[derive(Clone, Copy, Debug)]
pub struct Noise {
    /// The run's streams.
    pub streams: Streams,
    /// The round.
    pub round: u32,
    /// Draws of time and noise for each row of an evaluation.
    pub repeats: usize,
    /// Whether every evaluation of the round has the same noise, or each its own.
    pub fixed: bool,
}

/// The address of an evaluation: see [`Noise`].
const EVALUATION: u64 = 1 << 63;
const FIXED_EVALUATION: u64 = u64::MAX;

impl Noise {
    /// Refuses numbers of repeats that no evaluation can have.
    pub(super) fn check(&self) -> Result<()> {
        match (1..=1 << 16).contains(&self.repeats) {
            true => Ok(()),
            false => Err(Error::setting("repeats", self.repeats, "between 1 and 65536")),
        }
    }

    /// The stream of a tile in the step after this many.
    pub(super) fn of_step(&self, steps: u64, tile: usize) -> Stream {
        self.stream(steps, 0, tile)
    }

    /// The stream of a tile in one repeat of an evaluation after this many steps.
    pub(super) fn of_evaluation(&self, steps: u64, repeat: usize, tile: usize) -> Stream {
        let step = if self.fixed { FIXED_EVALUATION } else { EVALUATION + steps };
        self.stream(step, repeat, tile)
    }

    fn stream(&self, step: u64, repeat: usize, tile: usize) -> Stream {
        let mut stream = self.streams.stream(Purpose::Noise, u64::from(self.round), step);
        stream.set_stream(((repeat as u64) << 32) + tile as u64);
        stream
    }
}
