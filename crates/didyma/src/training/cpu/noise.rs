//! The random streams of a score network's loss.

use crate::error::{Error, Result};
use crate::rng::{Purpose, Stream, Streams};

/// Where the times and the noise of a score network's loss come from.
///
/// A tile of up to 64 rows has a stream of its own: the ChaCha8 stream of ([`Purpose::Noise`], round, step), moved to the
/// nonce 2³² · repeat + tile, where the step's number is that of the steps before it. An evaluation's purpose is
/// [`Purpose::ValidationNoise`], and its number 0 where the noise is fixed. So the draws depend neither on threads nor on
/// where a run was interrupted.
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
        self.stream(Purpose::Noise, steps, 0, tile)
    }

    /// The stream of a tile in one repeat of an evaluation after this many steps.
    pub(super) fn of_evaluation(&self, steps: u64, repeat: usize, tile: usize) -> Stream {
        let step = if self.fixed { 0 } else { steps };
        self.stream(Purpose::ValidationNoise, step, repeat, tile)
    }

    fn stream(&self, purpose: Purpose, step: u64, repeat: usize, tile: usize) -> Stream {
        let mut stream = self.streams.stream(purpose, u64::from(self.round), step);
        stream.set_stream(((repeat as u64) << 32) + tile as u64);
        stream
    }
}
