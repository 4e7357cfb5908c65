//! Where the inner samples of a fit come from.

use crate::error::Result;
use crate::rng::Stream;
use crate::training::estimator::{
    Bank, Draws, Near, Neighbours, Plan, Pool, Replacement, Source, Stock,
};
use std::sync::Arc;

/// A supply of inner samples for a round, made once for all members; a member adds its own training rows.
#[derive(Clone, Debug, Default)]
pub enum Reservoir {
    /// The training rows, or those of the batch.
    #[default]
    Pool,
    /// The training rows, near ones more often.
    Near(Arc<Neighbours>),
    /// Samples that were made for every row.
    Stock(Arc<Stock>),
    /// The training rows, with log p − log p̃ of every row to normalise by.
    Normalised(Arc<[f64]>),
}

/// A source of inner samples by one of the laws.
#[derive(Clone, Debug)]
pub(crate) enum InnerSource {
    Pool(Pool),
    Near(Near),
    Bank(Bank),
}

impl Reservoir {
    /// Its source, where these are the training rows.
    pub(crate) fn source(
        &self,
        rows: impl Iterator<Item = u32>,
        replacement: Replacement,
    ) -> Result<InnerSource> {
        Ok(match self {
            Self::Pool | Self::Normalised(_) => InnerSource::Pool(Pool::new(rows, replacement)?),
            Self::Near(neighbours) => InnerSource::Near(Near::new(neighbours.clone(), rows)),
            Self::Stock(stock) => InnerSource::Bank(Bank::new(stock.clone())),
        })
    }

    /// Divides by the normaliser, where there is one.
    pub(crate) fn complete(&self, plan: &mut Plan) {
        if let Self::Normalised(ratios) = self {
            plan.self_normalise(ratios);
        }
    }
}

impl InnerSource {
    /// True if the outer θ may be one of the atoms: its density under the law is known, and samples are independent.
    pub(crate) fn allows_outer(&self) -> bool {
        match self {
            Self::Pool(_) => true,
            Self::Near(_) => false,
            Self::Bank(bank) => !bank.has_nets(),
        }
    }
}

impl Source for InnerSource {
    fn largest_block(&self) -> usize {
        match self {
            Self::Pool(pool) => pool.largest_block(),
            Self::Near(near) => near.largest_block(),
            Self::Bank(bank) => bank.largest_block(),
        }
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        match self {
            Self::Pool(pool) => pool.draw(own, count, rng, draws),
            Self::Near(near) => near.draw(own, count, rng, draws),
            Self::Bank(bank) => bank.draw(own, count, rng, draws),
        }
    }

    fn outer_log_weight(&self, own: u32) -> f64 {
        match self {
            Self::Pool(pool) => pool.outer_log_weight(own),
            Self::Near(near) => near.outer_log_weight(own),
            Self::Bank(bank) => bank.outer_log_weight(own),
        }
    }
}
