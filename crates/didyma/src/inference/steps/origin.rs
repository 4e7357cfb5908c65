//! Where parameters that were handed in come from.

use super::draws::{COMPARED, unlike, unlike_prior};
use super::{Drawn, Steps};
use crate::error::{Advice, Error, Remedy, Result};
use crate::inference::config::Proposal;
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use std::collections::HashSet;

/// Deviations of the prior that single precision may move a parameter, at most.
const ROUNDING: f64 = 1e-4;

impl Steps {
    /// Refuses parameters that were not drawn where the round needs them. Those of one round are looked at together: a few at
    /// a time could be drawn from anything.
    pub(super) fn check_drawn(&mut self, theta: Rows, drawn: Drawn) -> Result<()> {
        let from = self.appended() * self.prior.dim();
        let proposed = self.proposed.get(from..from + theta.data().len());
        if proposed.is_some_and(|proposed| self.is_given_back(proposed, theta.data())) {
            return Ok(());
        }
        self.check_new(theta)?;
        let place = usize::from(matches!(drawn, Drawn::Posterior(_)));
        let all = [self.claimed[place].as_slice(), theta.data()].concat();
        let rows = Rows::new("theta", &all, self.prior.dim())?;
        match drawn {
            Drawn::Unsaid if !self.proposed.is_empty() => self.refused(Advice::new(
                "takes the parameters that were proposed for it, and these are others: append those, or",
                Remedy::StateProposal,
            )),
            Drawn::Unsaid if self.round() > 1 => self.refused(Advice::new(
                "was given parameters that nobody proposed, and its loss needs to know where they were drawn: draw them with \
                 propose, or",
                Remedy::StateProposal,
            )),
            Drawn::Unsaid => self.check_prior(rows, &self.prior),
            Drawn::Prior(prior) => self.check_prior(rows, prior),
            Drawn::Posterior(posterior) => self.check_posterior(rows, posterior),
        }?;
        self.claimed[place] = all;
        self.drawn_elsewhere |= self.round() > 1;
        Ok(())
    }

    /// Whether these are parameters that were proposed: the same, or the same in single precision, as many a simulator
    /// takes them, where that loses next to nothing.
    pub(super) fn is_given_back(&self, proposed: &[f64], theta: &[f64]) -> bool {
        if proposed == theta {
            return true;
        }
        let rounded = |(a, b): (&f64, &f64)| f64::from(*a as f32) == *b;
        let dim = self.prior.dim();
        let z = |row: &[f64]| {
            let mut z = vec![0.0; dim];
            self.prior.unbounded(row, &mut z);
            z
        };
        let near = |(a, b): (&[f64], &[f64])| {
            self.prior.contains(b) && z(a).iter().zip(z(b)).all(|(a, b)| (a - b).abs() < ROUNDING)
        };
        proposed.len() == theta.len()
            && proposed.iter().zip(theta).all(rounded)
            && proposed.chunks_exact(dim).zip(theta.chunks_exact(dim)).all(near)
    }

    /// Refuses what was appended before, and some of what was proposed: a choice among draws is no draw.
    fn check_new(&self, theta: Rows) -> Result<()> {
        let Some(first) = theta.iter().next() else { return Ok(()) };
        if let Some(row) = self.rows.iter().find(|row| row.theta == first) {
            return self.refused(format!(
                "was given parameters that round {} has already: each is appended once",
                row.round
            ));
        }
        let bits = |row: &[f64]| row.iter().map(|t| t.to_bits()).collect::<Vec<u64>>();
        let proposed: HashSet<_> = self.proposed.chunks_exact(self.prior.dim()).map(bits).collect();
        match !proposed.is_empty() && theta.iter().all(|row| proposed.contains(&bits(row))) {
            true => self.refused(
                "takes all parameters that were proposed, in their order, and some are missing or out of it here: leave failed \
                 ones in, with NaN in x",
            ),
            false => Ok(()),
        }
    }

    fn refused(&self, fault: impl Into<Advice>) -> Result<()> {
        Err(Error::Proposal { round: self.round(), fault: fault.into() })
    }

    fn check_prior(&self, theta: Rows, prior: &Prior) -> Result<()> {
        if *prior != self.prior {
            return self.refused("needs draws of its own prior, and this is another one");
        }
        match unlike_prior(prior, theta) {
            None => Ok(()),
            Some(unlike) => self.refused(format!(
                "needs draws of the prior, and {unlike}: draw parameters with propose, or from the prior itself"
            )),
        }
    }

    fn check_posterior(&self, theta: Rows, posterior: &Posterior) -> Result<()> {
        if !matches!(self.config.proposal, Proposal::Posterior | Proposal::Mixed) {
            let method = self.config.method_name();
            return self.refused(format!(
                "by {method} cannot be proposed from the posterior, which its loss does not correct for: draw parameters with \
                 propose"
            ));
        }
        if !self.posterior().is_some_and(|own| own.is_same(posterior)) {
            return self.refused(
                "can be proposed from the posterior of the round before, and this is another one: draw parameters with propose",
            );
        }
        let streams = Streams::new(self.config.seed);
        let from = SampleStreams::new(streams, Purpose::Comparison, self.round());
        let known = posterior.draw(COMPARED, from, 1)?.theta;
        match unlike(&self.prior, Rows::new("samples", &known, self.prior.dim())?, theta) {
            None => Ok(()),
            Some(unlike) => self.refused(format!(
                "was said to be drawn from the posterior, but {unlike}: draw parameters with propose"
            )),
        }
    }
}
