//! Settings that no run can have, and why.

use super::{Config, DensityKind, EnsembleConfig, Inner, Proposal, Start};
use crate::density::DensityConfig;
use crate::density::coordinates::{Scale, Space};
use crate::error::{Error, Result};
use crate::math::Net;
use crate::named::Named;
use crate::problem::prior::{Parameter, Prior};
use crate::training::estimator::{Estimator, Method};

/// The least width of a prior in steps of single precision: a posterior a hundred times narrower has 40 of them.
const STEPS: f64 = 4096.0;
/// Widths of a prior that are taken for all of it.
const WIDTHS: f64 = 5.0;

impl Config {
    /// Refuses numbers of rounds and samples that no memory has room for.
    pub(crate) fn check_sizes(&self) -> Result<()> {
        whole("rounds", self.rounds.into(), 10_000)?;
        whole("samples", self.samples as u64, 10_000_000)
    }

    /// Refuses a prior with more parameters than nets have dimensions, and one that the flow cannot learn as it is, where
    /// parameters are neither scaled nor unbounded: one that single precision cannot tell apart, or that lies where splines do
    /// not act.
    pub(crate) fn check_prior(&self, prior: &Prior) -> Result<()> {
        if self.train.inner == Inner::Sobol && prior.dim() >= Net::MOST {
            let why = format!("mixture for more than {} parameters", Net::MOST - 1);
            return Err(Error::setting("train.inner", "sobol", why));
        }
        if self.coordinates.theta != Scale::None || self.coordinates.space != Space::Bounded {
            return Ok(());
        }
        for Parameter { name, marginal } in prior.parameters() {
            let (place, width) = marginal.place();
            let single = place as f32;
            let steps = f64::from(single.abs().next_up() - single.abs());
            let outside =
                self.density == DensityKind::Flow && place.abs() - WIDTHS * width > self.flow.bound;
            if !single.is_finite() || width < STEPS * steps || outside {
                let why = format!(
                    "pool or first, for {name} ({marginal}): the flow works in single precision, within ±{}",
                    self.flow.bound
                );
                return Err(Error::setting("coordinates.theta", "none", why));
            }
        }
        Ok(())
    }

    /// Refuses settings outside their range.
    pub fn check(&self) -> Result<()> {
        self.check_sizes()?;
        whole("ensemble.members", self.ensemble.members as u64, EnsembleConfig::MOST as u64)?;
        if !(10..=100_000_000).contains(&self.simulations) {
            let why = "between 10 and 100000000";
            return Err(Error::setting("simulations", self.simulations, why));
        }
        self.check_training()?;
        self.check_inner()?;
        self.check_proposal()?;
        self.check_start()?;
        self.coordinates.check()?;
        self.flow.flow(1, 1).check().map_err(|error| error.within("flow"))?;
        if let DensityConfig::Score(score) = self.shape(1, 1) {
            score.check().map_err(|error| error.within("score"))?;
        }
        let estimator = Estimator::new(self.estimator.clone());
        estimator.map(|_| ()).map_err(|error| error.within("estimator"))
    }

    /// Numbers of training.
    fn check_training(&self) -> Result<()> {
        let train = &self.train;
        whole("train.batch", train.batch as u64, 1_000_000)?;
        whole("train.sweeps", train.sweeps.into(), 10_000)?;
        whole("train.epochs", train.epochs.into(), 1_000_000)?;
        whole("train.cycles", train.cycles.into(), 1_000)?;
        if train.cycles > 1 && !train.restore_best {
            let expected =
                "1 where train.restore_best is false: the last cycle may be the worse one";
            return Err(Error::setting("train.cycles", train.cycles, expected));
        }
        whole("train.patience", train.patience.into(), 1_000_000)?;
        train.steps.map_or(Ok(()), |steps| whole("train.steps", steps, 1_000_000_000))?;
        if !(0.01..=1.0).contains(&train.early) {
            return Err(Error::setting("train.early", train.early, "between 0.01 and 1"));
        }
        if !(0.0..=1.0).contains(&train.thinning) {
            return Err(Error::setting("train.thinning", train.thinning, "between 0 and 1"));
        }
        if !(0.0..=10.0).contains(&train.noise) {
            return Err(Error::setting("train.noise", train.noise, "between 0 and 10"));
        }
        if train.noise > 0.0 && self.coordinates.x == Scale::None {
            let why = "0 where summaries have no scale to measure noise by (coordinates.x=none)";
            return Err(Error::setting("train.noise", train.noise, why));
        }
        if !(0.0..=2.0).contains(&train.growth) {
            return Err(Error::setting("train.growth", train.growth, "between 0 and 2"));
        }
        if !(train.rate > 0.0 && train.rate <= 1.0) {
            return Err(Error::setting("train.rate", train.rate, "above 0 and up to 1"));
        }
        let (share, rows) = (train.validation_share, self.simulations as f64);
        if !(share > 0.0 && share < 1.0 && share * rows >= 1.0 && (1.0 - share) * rows >= 2.0) {
            let why =
                "a share of the simulations of a round that leaves rows on both sides, e.g. 0.1";
            return Err(Error::setting("train.validation_share", share, why));
        }
        train.adam().check().map_err(|error| error.within("train"))
    }

    /// Proposals, and losses that correct for them or do not.
    fn check_proposal(&self) -> Result<()> {
        if !(0.0..=0.9).contains(&self.prior_share) {
            return Err(Error::setting("prior_share", self.prior_share, "between 0 and 0.9"));
        }
        let from_q = matches!(self.proposal, Proposal::Posterior | Proposal::Mixed);
        if self.estimator.method == Method::Likelihood && from_q {
            let why = "prior or truncated with maximum likelihood, which does not correct for parameters that come from \
                       elsewhere (estimator.method=likelihood)";
            return Err(Error::setting("proposal", self.proposal.name(), why));
        }
        if self.density == DensityKind::Score && self.estimator.method != Method::Likelihood {
            let why = "likelihood where a score is learnt (density=score): its loss is its own";
            return Err(Error::setting("estimator.method", self.estimator.method.name(), why));
        }
        if self.density == DensityKind::Score && self.proposal != Proposal::Truncated {
            let why = "truncated where a score is learnt (density=score)";
            return Err(Error::setting("proposal", self.proposal.name(), why));
        }
        if !(self.width >= 0.1 && self.width <= 10.0) {
            return Err(Error::setting("width", self.width, "between 0.1 and 10"));
        }
        whole("score.repeats", self.score.repeats as u64, 10_000)?;
        self.truncation.check()
    }

    /// Weights that are carried from round to round, and coordinates that change.
    fn check_start(&self) -> Result<()> {
        let start = self.train.start;
        if start == Start::Carried && [Scale::Newest, Scale::Pool].contains(&self.coordinates.x) {
            let why = "warm or fresh where summaries are scaled anew in every round (coordinates.x=newest or pool): an \
                       optimiser that is carried over would meet another scale";
            return Err(Error::setting("train.start", "carried", why));
        }
        if start == Start::Carried && self.coordinates.relevance {
            let why = "warm or fresh where summaries are weighed anew in every round (coordinates.relevance=true)";
            return Err(Error::setting("train.start", "carried", why));
        }
        if start != Start::Fresh && self.coordinates.theta == Scale::Pool {
            let why = "fresh where parameters are scaled by all rounds (coordinates.theta=pool): weights of the round before \
                       mean something in its coordinates only";
            return Err(Error::setting("train.start", start.name(), why));
        }
        Ok(())
    }
}

/// Refuses a whole number outside its range.
pub(super) fn whole(name: &'static str, value: u64, most: u64) -> Result<()> {
    match (1..=most).contains(&value) {
        true => Ok(()),
        false => Err(Error::setting(name, value, format!("between 1 and {most}"))),
    }
}
