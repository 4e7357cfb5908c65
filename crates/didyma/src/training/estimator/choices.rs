//! The choices that an estimator is made of, by name.

use crate::named::{Named, serde_by_name};
use serde::{Deserialize, Serialize};
use std::fmt;

serde_by_name!(Method, Coupling, Difference, Blocks, Levels);

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
    /// Maximum likelihood on draws of the prior is neural posterior estimation.
    const ALIASES: &'static [(&'static str, Self)] = &[("npe", Self::Likelihood)];
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

/// How fast the probability of a level falls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "NumberOrText", into = "NumberOrText")]
pub enum Alpha {
    /// The paper's value for the method.
    #[default]
    Paper,
    /// This value.
    Value(f64),
}

impl std::str::FromStr for Alpha {
    type Err = String;

    /// A number, or `paper`.
    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.parse()) {
            ("paper", _) => Ok(Self::Paper),
            (_, Ok(value)) => Ok(Self::Value(value)),
            _ => Err("give a number, or paper".to_owned()),
        }
    }
}

/// How a number, or a word in its place, is written in files.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum NumberOrText {
    Number(f64),
    Text(String),
}

impl From<Alpha> for NumberOrText {
    fn from(alpha: Alpha) -> Self {
        match alpha {
            Alpha::Paper => Self::Text("paper".to_owned()),
            Alpha::Value(value) => Self::Number(value),
        }
    }
}

impl TryFrom<NumberOrText> for Alpha {
    type Error = String;

    fn try_from(written: NumberOrText) -> Result<Self, String> {
        match written {
            NumberOrText::Number(value) => Ok(Self::Value(value)),
            NumberOrText::Text(text) => text.parse(),
        }
    }
}

/// The tails of the level law above the base.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
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

impl fmt::Display for Tails {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Paper => f.write_str("paper"),
            Self::Scaled { kappa } => write!(f, "scaled {kappa}"),
            Self::Free(tails) => {
                let numbers: Vec<_> = tails.iter().map(ToString::to_string).collect();
                f.write_str(&numbers.join(" "))
            }
        }
    }
}

impl From<Tails> for String {
    fn from(tails: Tails) -> Self {
        tails.to_string()
    }
}

impl TryFrom<String> for Tails {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let number = |text: &str| {
            let why = "give paper, scaled and a number, or one probability for each level";
            text.parse().map_err(|_| format!("{text} is no number: {why}"))
        };
        match text.split_once(' ') {
            _ if text == "paper" => Ok(Self::Paper),
            Some(("scaled", kappa)) => Ok(Self::Scaled { kappa: number(kappa)? }),
            _ => text
                .split(|c: char| c == ',' || c.is_whitespace())
                .filter(|number| !number.is_empty())
                .map(number)
                .collect::<Result<_, _>>()
                .map(Self::Free),
        }
    }
}

/// What an estimator's mean is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// −log q of the outer samples.
    Likelihood,
    /// The APT loss itself.
    Exact,
    /// The loss with the normalising constant estimated by this many inner samples.
    Nested(usize),
    /// The loss with this many atoms, the true one among them.
    Atomic(usize),
    /// None of these: the levels do not telescope.
    Planted,
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Likelihood => f.write_str("the negative log-likelihood"),
            Self::Exact => f.write_str("the APT loss"),
            Self::Nested(samples) => write!(f, "the nested loss with {samples} inner samples"),
            Self::Atomic(atoms) => write!(f, "the atomic loss with {atoms} atoms"),
            Self::Planted => f.write_str("a biased loss (planted coupling does not telescope)"),
        }
    }
}
