//! An estimator's settings, and what is legal.

use super::{
    Alpha, Blocks, Coupling, Difference, LevelLaw, Levels, Method, Replacement, Source, Tails,
};
use crate::error::{Error, Result};
use crate::named::Named;
use serde::{Deserialize, Serialize};

/// An estimator's choices, as they are written down; [`super::Estimator::new`] checks them.
///
/// ```
/// use didyma::estimator::{Coupling, Estimator, Method, Settings};
/// let settings = Settings { coupling: Coupling::Inclusive, ..Settings::paper(Method::Tgrr) };
/// let estimator = Estimator::new(settings)?;
/// assert_eq!(estimator.target().to_string(), "the atomic loss with 129 atoms");
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The method.
    pub method: Method,
    /// Inner samples of the nested method; atoms of the atomic one, the true one among them.
    pub atoms: usize,
    /// M₀, inner samples of level 0; level l has M₀ 2^l.
    pub m0: usize,
    /// m, the lowest level.
    pub base: u32,
    /// The highest level. RU, RR and GRR have none unless they are capped: then L is replaced by
    /// min(L, top), and they are truncated methods, unbiased for the nested loss at the top only.
    pub top: Option<u32>,
    /// How fast the probability of a level falls.
    pub alpha: Alpha,
    /// The form of the tails.
    pub tails: Tails,
    /// What the outer θ has to do with the inner samples.
    pub coupling: Coupling,
    /// How levels are compared.
    pub difference: Difference,
    /// Inner samples of the levels of one query.
    pub blocks: Blocks,
    /// Levels of a batch.
    pub levels: Levels,
    /// How inner samples are drawn from a pool.
    pub replacement: Replacement,
}

impl Settings {
    /// The paper's settings: M₀ = 8; base 2 for GRR and TGRR, top level 4 for the truncated methods;
    /// its α; 100 atoms.
    pub fn paper(method: Method) -> Self {
        let atomic = method == Method::Atomic;
        Self {
            method,
            atoms: 100,
            m0: 8,
            base: if matches!(method, Method::Grr | Method::Tgrr) { 2 } else { 0 },
            top: method.is_truncated().then_some(4),
            alpha: Alpha::Paper,
            tails: Tails::Paper,
            coupling: if atomic { Coupling::Inclusive } else { Coupling::Excluded },
            difference: Difference::default(),
            blocks: Blocks::default(),
            levels: Levels::default(),
            replacement: Replacement::default(),
        }
    }

    /// α as a number.
    pub fn alpha(&self) -> f64 {
        match self.alpha {
            Alpha::Paper => self.method.paper_alpha(),
            Alpha::Value(value) => value,
        }
    }

    /// The same method, with a top level if it draws a level and has none: the highest whose block the source can
    /// give. It is then a truncated method.
    pub fn capped_for(self, source: &impl Source) -> Self {
        let highest = highest_level(self.m0, source);
        let top = self.top.or(highest.filter(|_| self.method.is_multilevel()));
        Self { top, ..self }
    }

    /// The same method with blocks no larger than this source can give: a lower top level, a lower base, fewer atoms,
    /// as far as needed. A method without a top level gets one.
    pub fn fitted_to(self, source: &impl Source) -> Self {
        let most = source.largest_block().min(LARGEST_BLOCK);
        let m0 = self.m0.min(most);
        let highest = (most / m0.max(1)).checked_ilog2().unwrap_or(0);
        let base = self.base.min(highest);
        // A level that has no bound would outgrow any source; above the highest it would be refused.
        let levels = self.top.is_some() || self.method.is_multilevel();
        let top = levels.then(|| self.top.map_or(highest, |top| top.min(highest)));
        let tails = match (self.tails, top) {
            (Tails::Free(mut tails), Some(top)) => {
                tails.truncate((top - base) as usize);
                Tails::Free(tails)
            }
            (tails, _) => tails,
        };
        let own = usize::from(self.method == Method::Atomic);
        Self { atoms: self.atoms.min(most + own), m0, base, top, tails, ..self }
    }

    /// Evaluations that a sample of a level above the base costs, where the level is drawn: levels of a roulette that reuse one
    /// block take half of the next one's for free. A single term has no other levels.
    pub(crate) fn share_of_a_block(&self) -> f64 {
        let shared = self.blocks == Blocks::Reused && !self.method.is_single_term();
        if shared { 0.5 } else { 1.0 }
    }

    /// The law of the level, if everything that it depends on is legal.
    pub(super) fn law(&self) -> Result<LevelLaw> {
        self.check_sizes()?;
        if !self.method.is_multilevel() {
            return Ok(LevelLaw::point(0));
        }
        self.check_levels()?;
        self.check_coupling()?;
        let (alpha, base) = (self.alpha(), self.base);
        let law = match (&self.tails, self.top) {
            (Tails::Free(tails), _) => LevelLaw::free(base, tails)?,
            (Tails::Paper, Some(top)) if self.method.is_truncated() => {
                LevelLaw::truncated(alpha, base, top)
            }
            (Tails::Paper, _) => LevelLaw::geometric(alpha, base),
            (Tails::Scaled { kappa }, _) => LevelLaw::scaled(*kappa, alpha, base),
        };
        let law = match self.top {
            Some(top) => law.capped(top),
            None => law,
        };
        self.check_masses(&law)?;
        Ok(law)
    }

    /// A single term is divided by the probability of its level: a level that is never drawn would be missing from
    /// the sum.
    fn check_masses(&self, law: &LevelLaw) -> Result<()> {
        let last = law.top().unwrap_or(law.base() + 64);
        let never = (law.base()..=last).find(|&level| law.mass(level) <= 0.0);
        match never.filter(|_| self.method.is_single_term()) {
            Some(level) => {
                let (what, name) =
                    (format!("such that level {level} is never drawn"), self.method.name());
                let why = format!(
                    "falling from level to level for {name}, which takes one level at a time"
                );
                Err(Error::setting("tails", what, why))
            }
            None => Ok(()),
        }
    }

    fn check_sizes(&self) -> Result<()> {
        let least = match (self.method, self.coupling) {
            (Method::Atomic, Coupling::Excluded) => {
                let why = "inclusive or planted for atomic: the outer θ is one of its atoms (nested excludes it)";
                return Err(Error::setting("coupling", "excluded", why));
            }
            (Method::Atomic, _) | (_, Coupling::Planted) => 2,
            _ => 1,
        };
        let (name, size) = match self.method {
            Method::Likelihood => return Ok(()),
            Method::Atomic | Method::Nested => ("atoms", self.atoms),
            _ => ("m0", self.m0),
        };
        if !(least..=LARGEST_BLOCK).contains(&size) {
            let expected = format!("between {least} and {LARGEST_BLOCK}, the samples of a block");
            return Err(Error::setting(name, size, expected));
        }
        Ok(())
    }

    fn check_levels(&self) -> Result<()> {
        let Self { method, base, top, .. } = self;
        let highest = (LARGEST_BLOCK / self.m0).ilog2();
        if method.is_truncated() && top.is_none() {
            let why = format!("given for {}: a level from base ({base}) on", method.name());
            return Err(Error::setting("top", "missing", why));
        }
        if *base > highest {
            let why = format!(
                "at most {highest}, where a block has m0 · 2^base = {LARGEST_BLOCK} samples or less"
            );
            return Err(Error::setting("base", base, why));
        }
        if let Some(top) = top.filter(|top| !(*base..=highest).contains(top)) {
            let why = format!(
                "between base ({base}) and {highest}, where a block has m0 · 2^top = {LARGEST_BLOCK} samples or less"
            );
            return Err(Error::setting("top", top, why));
        }
        match &self.tails {
            Tails::Free(tails) if top.map(|top| top - base) != Some(tails.len() as u32) => {
                let why = "one probability for each level above base up to top";
                Err(Error::setting("tails", format!("{} numbers", tails.len()), why))
            }
            Tails::Free(_) => Ok(()),
            Tails::Scaled { kappa } if !(*kappa > 0.0 && *kappa <= 1e6) => {
                Err(Error::setting("kappa", kappa, "above 0 and up to a million"))
            }
            _ => self.check_alpha(),
        }
    }

    fn check_alpha(&self) -> Result<()> {
        let alpha = self.alpha();
        if self.top.is_none() && !(alpha > 1.0 && alpha < 2.0) {
            let why = "between 1 and 2, both excluded, without a top level: at 1 and below the expected \
                       cost is infinite, at 2 and above (more exactly, from the decay rate r2 ≤ 2 of the \
                       levels on) the variance; choose such an alpha, or set top";
            return Err(Error::setting("alpha", alpha, why));
        }
        if !(0.01..=8.0).contains(&alpha) {
            let why = "between 0.01 and 8: probabilities of levels must fall, and at 8 a level is already \
                       256 times rarer than the one before, with a weight as much larger";
            return Err(Error::setting("alpha", alpha, why));
        }
        Ok(())
    }

    fn check_coupling(&self) -> Result<()> {
        if self.coupling == Coupling::Planted && self.blocks == Blocks::Reused {
            let why = "fresh with planted coupling, as in the authors' code that it reproduces";
            return Err(Error::setting("blocks", "reused", why));
        }
        if self.difference == Difference::Naive && self.top.is_none() {
            let why = "antithetic without a top level: naive differences fall like 2^(−l) in mean square, \
                       so that no alpha gives a finite variance at a finite cost; set top to compare them";
            return Err(Error::setting("difference", "naive", why));
        }
        Ok(())
    }
}

/// Samples of a block, at most.
pub(crate) const LARGEST_BLOCK: usize = 1 << 24;

/// The highest level whose block a source can give.
pub(super) fn highest_level(m0: usize, source: &impl Source) -> Option<u32> {
    (source.largest_block().min(LARGEST_BLOCK) / m0.max(1)).checked_ilog2()
}
