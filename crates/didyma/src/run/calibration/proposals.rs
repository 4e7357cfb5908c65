//! Where the parameters of new simulations for a calibration come from.

use crate::error::Result;
use crate::inference::config::{Config, Proposal};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::truncation::TruncatedPrior;
use crate::rng::{Purpose, Streams};

/// How parameters of new simulations spread. Rows of both kinds may lie beside each other, as of two rounds after the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Spread {
    /// By the law that the next round would propose from: near the observation.
    Next,
    /// Evenly: by the prior, or by the prior where the posterior is not negligible, as conformal levels need it.
    Even,
}

impl Spread {
    /// The law's kind. A round of both kinds is half of each; either would do.
    pub(super) fn proposal(self, config: &Config) -> Proposal {
        match (config.proposal, self) {
            (Proposal::Prior, _) => Proposal::Prior,
            (Proposal::Truncated, _) | (_, Self::Even) => Proposal::Truncated,
            (Proposal::Posterior | Proposal::Mixed, Self::Next) => Proposal::Posterior,
        }
    }

    /// The round whose numbers they have: the one after the last, or the next where that is of another law.
    pub(super) fn round(self, config: &Config, after: u32) -> u32 {
        after + u32::from(self.proposal(config) != Self::Next.proposal(config))
    }

    /// θ of so many simulations, row after row: fewer are the first of more. (Only where a region is so thin that particles
    /// walk in it are they others, of the same law.)
    pub(super) fn theta(
        self,
        posterior: &Posterior,
        config: &Config,
        (round, count): (u32, usize),
        threads: usize,
    ) -> Result<Vec<f64>> {
        let streams = Streams::new(config.seed);
        let drawing = SampleStreams::new(streams, Purpose::Parameters, round);
        let (share, draws) = (config.truncation.share, config.truncation.draws);
        Ok(match self.proposal(config) {
            Proposal::Prior => {
                let streams = streams.simulations(Purpose::Parameters, round.into());
                posterior.prior().sample_rows(count, &streams, threads)
            }
            Proposal::Truncated => {
                let region = TruncatedPrior::new(posterior, share, draws, drawing, threads)?;
                region.sample(count, threads)?.theta
            }
            _ => posterior.propose(count, config.width, drawing, threads)?.theta,
        })
    }
}
