//! A trained flow whose inner samples follow another law than the pool's.

use super::TrainedFlow;
use crate::error::{Error, Result};
use crate::inference::config::{Config, Inner};
use crate::inference::failures::Failing;
use crate::inference::inner::{ProposalLaw, Stocking, measured_rows};
use crate::inference::posterior::Posterior;
use crate::inference::simulations::Records;
use crate::named::Named;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::training::Reservoir;
use crate::training::estimator::{Neighbours, Replacement};

/// A run's knowledge of its proposals.
pub(crate) struct Past<'a> {
    pub config: &'a Config,
    pub prior: &'a Prior,
    /// All simulations of the rounds that the flow was trained in.
    pub records: &'a Records,
    /// True if somebody else drew parameters of a round after the first.
    pub drawn_elsewhere: bool,
    /// The posterior that the flow is of, and those of all rounds before, from the first on.
    pub posterior: &'a Posterior,
    pub before: &'a [Posterior],
    /// True if the mixture's own half is of the posterior itself, and not of that of the round before.
    pub fresh: bool,
}

impl TrainedFlow {
    /// A flow with inner samples of this law, in blocks up to `block`. Where they are made for each row, outer samples
    /// are a thousand rows.
    pub(crate) fn with_law(mut self, law: Inner, block: usize, past: &Past) -> Result<Self> {
        match law {
            Inner::Pool | Inner::Batch => return Ok(self),
            Inner::Near => {
                let neighbours = Neighbours::new(self.data.x(), self.threads)?;
                self.reservoir = Reservoir::Near(neighbours.into());
            }
            Inner::Normalised => {
                let failing = past.failing(self.threads)?;
                let proposal = past.proposal_law(law, failing.as_ref())?;
                let (theta, log_prior) = (self.data.theta(), self.data.log_prior());
                let ratios = proposal.log_ratios(theta, log_prior, self.threads)?;
                self.reservoir = Reservoir::Normalised(ratios.into());
            }
            Inner::Mixture | Inner::Sobol => return self.stocked(law, block, past),
        }
        self.inner = self.reservoir.source(0..self.data.len() as u32, Replacement::Without)?;
        Ok(self)
    }

    fn stocked(mut self, inner: Inner, size: usize, past: &Past) -> Result<Self> {
        if inner == Inner::Sobol && !size.is_power_of_two() {
            let why = "a power of two where inner samples are nets (sobol): choose m0 so";
            return Err(Error::setting("samples of a block", size, why));
        }
        let failing = past.failing(self.threads)?;
        let law = past.proposal_law(inner, failing.as_ref())?;
        let (streams, round) = (Streams::new(past.config.seed), past.before.len() as u32 + 1);
        let rng = streams.stream(Purpose::LevelRows, round.into(), 0);
        self.outer = measured_rows(self.outer, rng);
        let earlier = past.before.last().filter(|_| !past.fresh);
        let snapshot = earlier.unwrap_or(past.posterior);
        let stocking = Stocking {
            law: &law,
            snapshot,
            width: past.config.width,
            size,
            nets: inner == Inner::Sobol,
            streams,
            purposes: [Purpose::LevelPool, Purpose::LevelStock],
            round,
            threads: self.threads,
        };
        let pool = past.records.pool();
        let (data, stock) = stocking.make(self.data, &self.outer, pool.rows()?.1)?;
        self.data = data;
        self.reservoir = Reservoir::Stock(stock.into());
        self.inner = self.reservoir.source(std::iter::empty(), Replacement::Without)?;
        Ok(self)
    }
}

impl<'a> Past<'a> {
    /// The rounds that the flow was trained in.
    fn rounds(&self) -> u32 {
        self.before.len() as u32 + 1
    }

    fn failing(&self, threads: usize) -> Result<Option<Failing>> {
        Failing::new(self.prior, self.records, self.config, self.rounds(), threads)
    }

    /// p̃ of the run's rounds; refuses runs whose proposals have no density that is known.
    fn proposal_law(&self, law: Inner, failing: Option<&'a Failing>) -> Result<ProposalLaw<'a>> {
        if self.rounds() < 2 {
            let why = "pool or near for a run of one round, whose proposal is the prior";
            return Err(Error::setting("inner", law.name(), why));
        }
        if self.drawn_elsewhere {
            let why = "pool or near for a run whose parameters were drawn elsewhere: their proposal has no density that is known";
            return Err(Error::setting("inner", law.name(), why));
        }
        let mut asked = self.config.clone();
        asked.train.inner = law;
        asked.check_density()?;
        asked.check_prior(self.prior)?;
        let counts: Vec<usize> =
            (1..=self.rounds()).map(|round| self.records.counts(round).0).collect();
        let coordinates = &self.posterior.coordinates;
        let law = ProposalLaw::new(self.config, self.prior, coordinates, &counts, self.before)?;
        Ok(law.selected(failing.and_then(Failing::selection)))
    }
}
