//! Refuses inner samples and levels that cannot be right.

use super::check::whole;
use super::{Config, Inner, LevelSource, Meaning, Proposal, Start};
use crate::density::coordinates::{Scale, Space};
use crate::error::{Error, Result};
use crate::named::Named;
use crate::training::estimator::{Coupling, Method, Replacement, Settings};
use crate::training::levels::LevelChoice;

impl Config {
    /// Inner samples of the batch, and of laws that need something.
    pub(super) fn check_inner(&self) -> Result<()> {
        let train = &self.train;
        whole("train.stock", train.stock as u64, 4096)?;
        if train.inner.is_special() {
            self.check_law(train.inner)?;
        }
        self.check_nets()?;
        self.check_level_source()?;
        if train.inner == Inner::Batch && train.batch < 8 {
            let why = "at least 8 where inner samples come from the batch (train.inner=batch)";
            return Err(Error::setting("train.batch", train.batch, why));
        }
        if train.inner == Inner::Batch
            && self.failures.meaning == Meaning::Outcome
            && self.estimator.method != Method::Likelihood
        {
            let why = "missing where inner samples come from the batch (train.inner=batch), which has no failed ones: the \
                       posterior would be divided by the probability of success";
            return Err(Error::setting("failures.meaning", "outcome", why));
        }
        Ok(())
    }

    /// Laws of inner samples that are not right for every loss, or not known for every proposal.
    fn check_law(&self, law: Inner) -> Result<()> {
        let refused =
            |expected: &'static str| Err(Error::setting("train.inner", law.name(), expected));
        if self.estimator.method == Method::Likelihood {
            return refused("pool for a method without inner samples (npe, tsnpe and snse)");
        }
        let excluded = self.estimator.coupling == Coupling::Excluded;
        if self.estimator.coupling == Coupling::Planted {
            return refused(
                "pool with planted coupling, as in the authors' code that it reproduces",
            );
        }
        if !law.allows_outer() && self.estimator.method == Method::Atomic {
            return refused(
                "pool or mixture for the atomic method, whose atoms hold the outer theta",
            );
        }
        if !law.allows_outer() && !excluded {
            return refused(
                "pool or mixture where the outer theta is an inner sample, too: set estimator.coupling=excluded",
            );
        }
        if law.is_made() && self.estimator.replacement == Replacement::With {
            let why =
                "without where inner samples are made for each row (train.inner=mixture or sobol)";
            return Err(Error::setting("estimator.replacement", "with", why));
        }
        self.check_density()?;
        self.check_stock()
    }

    /// Samples that are made for each row, and the largest block that is drawn from them.
    fn check_stock(&self) -> Result<()> {
        let Settings { method, atoms, m0, base, top, coupling, .. } = self.estimator;
        let block = match top {
            _ if method == Method::Atomic && coupling == Coupling::Inclusive => {
                atoms.saturating_sub(1)
            }
            _ if !method.is_multilevel() => atoms,
            Some(top) => m0.saturating_mul(1 << top.min(16)),
            // Its levels end where the samples do: one above the base at least.
            None => m0.saturating_mul(2 << base.min(16)),
        };
        if self.train.inner.is_made() && self.train.stock < block {
            let why = format!(
                "at least {block}, the largest block of the estimator, where inner samples are made for each row"
            );
            return Err(Error::setting("train.stock", self.train.stock, why));
        }
        Ok(())
    }

    /// Nets of Sobol's sequence, which have blocks of powers of two.
    fn check_nets(&self) -> Result<()> {
        let Settings { method, atoms, m0, .. } = self.estimator;
        if self.train.inner != Inner::Sobol {
            return Ok(());
        }
        let sizes = [
            ("train.stock", self.train.stock),
            ("estimator.atoms", if method == Method::Nested { atoms } else { 1 }),
            ("estimator.m0", if method.is_multilevel() { m0 } else { 1 }),
        ];
        match sizes.into_iter().find(|(_, size)| !size.is_power_of_two()) {
            Some((name, size)) => Err(Error::setting(
                name,
                size,
                "a power of two where inner samples are nets (train.inner=sobol)",
            )),
            None => Ok(()),
        }
    }

    /// Levels that are measured on the flow of the round before.
    fn check_level_source(&self) -> Result<()> {
        if self.train.levels != LevelSource::Auto {
            return Ok(());
        }
        let refused = |why: &'static str| Err(Error::setting("train.levels", "auto", why));
        if !self.estimator.method.is_multilevel() {
            return refused("given for a method that draws no level: ru, tru, rr, grr and tgrr do");
        }
        if self.estimator.coupling == Coupling::Planted {
            return refused("given with planted coupling, whose bias depends on the base level");
        }
        if self.estimator.top.is_some() && !LevelChoice::is_possible(&self.estimator) {
            return refused(
                "given where the largest block holds fewer than three levels from two samples on: raise estimator.top",
            );
        }
        if self.train.start == Start::Fresh {
            return refused(
                "given where rounds start from new weights (train.start=fresh), on which there is nothing to measure",
            );
        }
        if self.train.inner == Inner::Batch {
            return refused(
                "given where inner samples come from the batch (train.inner=batch), which is no fixed pool",
            );
        }
        Ok(())
    }

    /// Inner samples that need the density of the proposal, where it is not known.
    pub(crate) fn check_density(&self) -> Result<()> {
        let law = self.train.inner;
        let refused =
            |expected: &'static str| Err(Error::setting("train.inner", law.name(), expected));
        if !law.needs_posteriors() {
            return Ok(());
        }
        if self.proposal != Proposal::Posterior {
            return refused(
                "pool, batch or near where proposals have no density that is known (proposal=prior, truncated or mixed)",
            );
        }
        if self.coordinates.space != Space::Unbounded {
            return refused(
                "pool, batch or near where proposals are rejected outside the prior (coordinates.space=bounded), which changes \
                 their density",
            );
        }
        if self.coordinates.theta == Scale::Pool {
            return refused(
                "pool, batch or near where parameters are scaled anew in every round (coordinates.theta=pool)",
            );
        }
        Ok(())
    }
}
