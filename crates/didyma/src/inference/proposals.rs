//! Where a round's parameters come from.

use super::rounds::Run;
use crate::error::Result;
use crate::inference::config::{Proposal, Truncation};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::truncation::TruncatedPrior;
use crate::rng::Purpose;

impl Run<'_> {
    /// Parameters of the round: draws of the prior, then where the posterior so far says, but for a share of them.
    pub(super) fn propose(&self, round: u32) -> Result<Vec<f64>> {
        let simulations = self.config.simulations;
        let posterior = match self.config.proposal {
            Proposal::Prior => None,
            _ => self.posterior()?,
        };
        let of_prior = match posterior {
            None => simulations,
            Some(_) => self.config.draws_of_prior(simulations),
        };
        let streams = self.streams.simulations(Purpose::Parameters, round.into());
        let mut theta = self.problem.prior().sample_rows(of_prior, &streams, self.machine.threads);
        if let Some(posterior) = posterior {
            theta.extend(self.propose_by(&posterior, simulations - of_prior, round)?);
        }
        Ok(theta)
    }

    /// So many parameters of the round where the posterior so far says.
    fn propose_by(&self, posterior: &Posterior, count: usize, round: u32) -> Result<Vec<f64>> {
        let streams = SampleStreams::new(self.streams, Purpose::Parameters, round);
        let (Truncation { share, draws }, threads) = (self.config.truncation, self.machine.threads);
        let flat = match self.config.proposal {
            Proposal::Prior | Proposal::Posterior => 0,
            Proposal::Mixed => count / 2,
            Proposal::Truncated => count,
        };
        let mut theta = Vec::new();
        if flat > 0 {
            let region = TruncatedPrior::new(posterior, share, draws, streams, threads)?;
            theta = region.sample(flat, threads)?.theta;
        }
        if count > flat {
            // The region was found by draws of the same streams: those beside it are others.
            let purpose = if flat > 0 { Purpose::Beside } else { streams.purpose };
            let (width, streams) = (self.config.width, SampleStreams { purpose, ..streams });
            theta.extend(posterior.propose(count - flat, width, streams, threads)?.theta);
        }
        Ok(theta)
    }
}
