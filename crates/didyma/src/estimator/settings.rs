//! The choices that make an estimator: a method by name, and its options.

use super::LevelLaw;
use crate::error::{Error, Result};

/// A choice that has a name on the command line and in files.
pub trait Named: Copy + PartialEq + 'static {
    /// All of them with their names.
    const ALL: &'static [(&'static str, Self)];

    /// The one of this name.
    fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| *known == name).map(|(_, choice)| *choice)
    }

    /// Its name.
    fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, choice)| *choice == self);
        known.map(|(name, _)| *name).expect("every choice has a name")
    }
}

/// The estimators by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// −log q of the outer θ: round 1, where the proposal is the prior.
    Likelihood,
    /// Atomic APT: the outer θ among others. Exact minimiser for any number of atoms.
    Atomic,
    /// Nested APT: ψ_M with M inner samples, biased by O(1/M).
    Nested,
    /// Randomly chosen single term: Δψ_L / P(L). Unbiased.
    Ru,
    /// RU up to a top level: unbiased for the nested loss there.
    Tru,
    /// Russian roulette: Σ_{j≤L} Δψ_j / P(L ≥ j). Unbiased.
    Rr,
    /// RR from a base level on: ψ at the base, and corrections. Unbiased.
    Grr,
    /// GRR up to a top level: unbiased for the nested loss there.
    Tgrr,
}

impl Named for Method {
    const ALL: &'static [(&'static str, Self)] = &[
        ("likelihood", Self::Likelihood),
        ("atomic", Self::Atomic),
        ("nested", Self::Nested),
        ("ru", Self::Ru),
        ("tru", Self::Tru),
        ("rr", Self::Rr),
        ("grr", Self::Grr),
        ("tgrr", Self::Tgrr),
    ];
}

impl Method {
    /// Whether it draws a random level.
    pub fn is_multilevel(self) -> bool {
        matches!(self, Self::Ru | Self::Tru | Self::Rr | Self::Grr | Self::Tgrr)
    }

    /// Whether its level law is renormalised to end at a top level.
    pub fn is_truncated(self) -> bool {
        matches!(self, Self::Tru | Self::Tgrr)
    }

    /// Whether it takes the term of its level alone instead of all up to it.
    pub fn is_single_term(self) -> bool {
        matches!(self, Self::Ru | Self::Tru)
    }

    /// The paper's α (its Table 1; RR and truncated RU as RU).
    pub fn paper_alpha(self) -> f64 {
        match self {
            Self::Grr => 1.209,
            Self::Tgrr => 1.673,
            _ => 1.4,
        }
    }
}

/// What the outer θ has to do with the inner samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Coupling {
    /// Nothing: the paper's estimators. Unbiased, but a finite block can make the loss unbounded below.
    #[default]
    Excluded,
    /// It is one more atom of the fine block and of each half. The levels still telescope, now to
    /// atomic APT, whose minimiser is exact and whose loss is bounded.
    Inclusive,
    /// It takes the first place of a block, and the last one too in differences and in blocks without
    /// corrections: what the authors' code does. The levels do not telescope, so every method is
    /// biased. Only for reproducing their results.
    Planted,
}

impl Named for Coupling {
    const ALL: &'static [(&'static str, Self)] =
        &[("excluded", Self::Excluded), ("inclusive", Self::Inclusive), ("planted", Self::Planted)];
}

/// How a level's fine block is compared with the coarse one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Difference {
    /// With the mean over both halves: second moments fall like M^(−2).
    #[default]
    Antithetic,
    /// With the first half: like M^(−1). For diagnostics.
    Naive,
}

impl Named for Difference {
    const ALL: &'static [(&'static str, Self)] =
        &[("antithetic", Self::Antithetic), ("naive", Self::Naive)];
}

/// Whether the levels of one query have inner samples of their own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Blocks {
    /// Each level its own block.
    #[default]
    Fresh,
    /// One block of M_L samples; lower levels average over its disjoint sub-blocks. Costs half of the
    /// corrections less. No difference to a single-term method.
    Reused,
}

impl Named for Blocks {
    const ALL: &'static [(&'static str, Self)] =
        &[("fresh", Self::Fresh), ("reused", Self::Reused)];
}

/// How the levels of a batch are drawn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Levels {
    /// Independently.
    #[default]
    Independent,
    /// At the n quantiles (i + U)/n in random order: every query keeps its law, and the batch has
    /// nearly the expected number at each level.
    Systematic,
}

impl Named for Levels {
    const ALL: &'static [(&'static str, Self)] =
        &[("independent", Self::Independent), ("systematic", Self::Systematic)];
}

/// The tails of the level law above the base.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Tails {
    /// Geometric in the absolute level, as in the paper.
    #[default]
    Paper,
    /// min(1, κ 2^(−α(j−m))).
    Scaled {
        /// κ.
        kappa: f64,
    },
    /// P(L ≥ m + 1), P(L ≥ m + 2), …, one for each level up to the top.
    Free(Vec<f64>),
}

/// An estimator's choices, as they are written down; [`super::Estimator::new`] checks them.
///
/// ```
/// use didyma::estimator::{Coupling, Estimator, Method, Settings};
/// let settings = Settings { coupling: Coupling::Inclusive, ..Settings::paper(Method::Tgrr) };
/// let estimator = Estimator::new(settings)?;
/// assert_eq!(estimator.target().to_string(), "the atomic loss with 129 atoms");
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
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
    pub alpha: f64,
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
            alpha: method.paper_alpha(),
            tails: Tails::Paper,
            coupling: if atomic { Coupling::Inclusive } else { Coupling::Excluded },
            difference: Difference::default(),
            blocks: Blocks::default(),
            levels: Levels::default(),
        }
    }

    /// The law of the level, if everything that it depends on is legal.
    pub(super) fn law(&self) -> Result<LevelLaw> {
        self.check_sizes()?;
        if !self.method.is_multilevel() {
            return Ok(LevelLaw::point(0));
        }
        self.check_levels()?;
        self.check_coupling()?;
        let (alpha, base) = (self.alpha, self.base);
        let law = match (&self.tails, self.top) {
            (Tails::Free(tails), _) => LevelLaw::free(base, tails)?,
            (Tails::Paper, Some(top)) if self.method.is_truncated() => {
                LevelLaw::truncated(alpha, base, top)
            }
            (Tails::Paper, _) => LevelLaw::geometric(alpha, base),
            (Tails::Scaled { kappa }, _) => LevelLaw::scaled(*kappa, alpha, base),
        };
        Ok(match self.top {
            Some(top) => law.capped(top),
            None => law,
        })
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
            Tails::Scaled { kappa } if !(*kappa > 0.0 && kappa.is_finite()) => {
                Err(Error::setting("kappa", kappa, "a number above 0"))
            }
            _ => self.check_alpha(),
        }
    }

    fn check_alpha(&self) -> Result<()> {
        let alpha = self.alpha;
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
