//! Where the inner samples of a round come from, and what has to be made for that.

mod proposal;
mod stock;

pub(crate) use proposal::ProposalLaw;
pub(crate) use stock::{Stocking, measured_rows};

#[cfg(test)]
mod tests;

use super::rounds::Run;
use crate::density::Dataset;
use crate::density::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::inference::config::Inner;
use crate::inference::failures::Failing;
use crate::inference::posterior::Posterior;
use crate::named::Named;
use crate::rng::{Purpose, Streams};
use crate::training::Reservoir;
use crate::training::estimator::{Method, Neighbours};

impl Run<'_> {
    /// The law of the round's inner samples, if it has any: that of the settings, or the pool where somebody else drew
    /// parameters, so that nobody knows the density of p̃.
    pub(super) fn inner_law(&self, round: u32) -> Option<Inner> {
        if round == 1 || self.config.estimator.method == Method::Likelihood {
            return None;
        }
        let asked = self.config.train.inner;
        let unknown = self.drawn_elsewhere && asked.needs_posteriors();
        Some(if unknown { Inner::Pool } else { asked })
    }

    /// The reservoir of the round's inner samples, and the dataset with the samples that were made for it.
    pub(super) fn reservoir(
        &self,
        round: u32,
        coordinates: &Coordinates,
        data: Dataset,
    ) -> Result<(Dataset, Reservoir)> {
        let reservoir = match self.inner_law(round) {
            None | Some(Inner::Pool | Inner::Batch) => Reservoir::Pool,
            Some(Inner::Near) => {
                Reservoir::Near(Neighbours::new(data.x(), self.machine.threads)?.into())
            }
            Some(Inner::Normalised) => {
                let law = self.proposal_law(round, coordinates)?;
                let (theta, log_prior) = (data.theta(), data.log_prior());
                Reservoir::Normalised(
                    law.log_ratios(theta, log_prior, self.machine.threads)?.into(),
                )
            }
            Some(law @ (Inner::Mixture | Inner::Sobol)) => {
                return self.stock(law, round, coordinates, data);
            }
        };
        Ok((data, reservoir))
    }

    fn proposal_law<'a>(
        &'a self,
        round: u32,
        coordinates: &'a Coordinates,
    ) -> Result<ProposalLaw<'a>> {
        if self.posteriors.len() as u32 + 1 < round {
            let why = "pool or near in a state without the posteriors of its finished rounds";
            return Err(Error::setting("train.inner", self.config.train.inner.name(), why));
        }
        let counts: Vec<usize> = (1..=round).map(|round| self.records.counts(round).0).collect();
        let (prior, selection) = (self.problem.prior(), self.failing.1.as_ref());
        let law = ProposalLaw::new(self.config, prior, coordinates, &counts, &self.posteriors)?;
        Ok(law.selected(selection.and_then(Failing::selection)))
    }

    /// The samples of all rows by the posterior that the round begins with.
    fn stock(
        &self,
        inner: Inner,
        round: u32,
        coordinates: &Coordinates,
        data: Dataset,
    ) -> Result<(Dataset, Reservoir)> {
        let of: Vec<u32> = (0..data.x().len() as u32).collect();
        let made = Made {
            snapshot: &self.posteriors[round as usize - 2],
            nets: inner == Inner::Sobol,
            streams: self.streams,
            purposes: [Purpose::InnerPool, Purpose::InnerStock],
        };
        self.stock_of(&of, made, round, coordinates, data)
    }

    /// The samples of these rows.
    pub(super) fn stock_of(
        &self,
        of: &[u32],
        made: Made,
        round: u32,
        coordinates: &Coordinates,
        data: Dataset,
    ) -> Result<(Dataset, Reservoir)> {
        let law = self.proposal_law(round, coordinates)?;
        let Made { snapshot, nets, streams, purposes } = made;
        let stocking = Stocking {
            law: &law,
            snapshot,
            width: self.config.width,
            size: self.config.train.stock,
            nets,
            streams,
            purposes,
            round,
            threads: self.machine.threads,
        };
        let pool = self.records.pool();
        let (data, stock) = stocking.make(data, of, pool.rows()?.1)?;
        Ok((data, Reservoir::Stock(stock.into())))
    }
}

/// By what samples are made.
pub(super) struct Made<'a> {
    pub snapshot: &'a Posterior,
    pub nets: bool,
    pub streams: Streams,
    pub purposes: [Purpose; 2],
}
