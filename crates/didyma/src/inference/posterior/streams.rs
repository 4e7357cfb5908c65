//! The random numbers that samples are made of.

use crate::density::{Base, Ensemble};
use crate::error::{Error, Result};
use crate::math::Net;
use crate::named::Named;
use crate::rng::{Purpose, Stream, Streams};

/// Draws that come from one random stream.
pub(super) const BLOCK: usize = 512;

/// Which random numbers samples are made of.
#[derive(Clone, Copy, Debug)]
pub struct SampleStreams {
    /// The streams of the run.
    pub streams: Streams,
    /// What the samples are for.
    pub purpose: Purpose,
    /// The round.
    pub round: u64,
    /// How they fill the base's law.
    pub points: Points,
    /// The place of the observation among several that are drawn at together, from 0: each has numbers of its own.
    pub row: u64,
}

/// How the draws of a sample are spread.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Points {
    /// Independently.
    #[default]
    Random,
    /// More evenly, as a net of Sobol's sequence with a random digital shift: means over 2^k of them have smaller errors.
    Sobol,
}

impl Named for Points {
    const ALL: &'static [(&'static str, Self)] =
        &[("random", Self::Random), ("sobol", Self::Sobol)];
}

impl SampleStreams {
    /// Streams of a run for a purpose, of independent draws.
    pub fn new(streams: Streams, purpose: Purpose, round: u32) -> Self {
        Self { streams, purpose, round: round.into(), points: Points::Random, row: 0 }
    }

    /// The same with these points.
    pub fn by(self, points: Points) -> Self {
        Self { points, ..self }
    }

    /// The same for the observation at this place among several.
    pub fn of_row(self, row: usize) -> Self {
        Self { row: row as u64, ..self }
    }

    /// A stream of the observation's own: its place is the third number of the address.
    fn stream(&self, index: u64) -> Stream {
        let mut stream = self.streams.stream(self.purpose, self.round, index);
        stream.set_stream(self.row);
        stream
    }

    /// Refuses more parameters than nets have dimensions.
    pub(super) fn check(&self, dim: usize) -> Result<()> {
        if self.points == Points::Sobol && dim >= Net::MOST {
            let why = format!("random for more than {} parameters", Net::MOST - 1);
            return Err(Error::setting("points", self.points.name(), why));
        }
        Ok(())
    }

    /// One block of draws of the base.
    pub(super) fn base(&self, ensemble: &Ensemble, width: f64, index: u64) -> Result<Base> {
        let points = self.points;
        if points == Points::Random {
            return Ok(ensemble.base(BLOCK, width, &mut self.stream(index)));
        }
        let Ok(first) = u32::try_from(index * BLOCK as u64) else {
            return Err(Error::setting("points", points.name(), "random for more than 2^32 draws"));
        };
        // All blocks are of one net.
        let net = Net::new(ensemble.coordinates_of_a_draw(), &mut self.stream(0));
        let points: Vec<Vec<f64>> =
            (0..BLOCK as u32).map(|i| net.point(first + i).collect()).collect();
        Ok(ensemble.base_of(points.iter().map(Vec::as_slice), width))
    }
}
