//! An estimator's options.

use super::{named, whole};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use didyma::Named;
use didyma::estimator::{Alpha, Blocks, Coupling, Difference, Levels, Method, Settings};

/// An estimator's options; what is not given is as in the paper, or as in a run.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Estimator (what is not given is as in the run, or in the paper)")]
pub struct EstimatorArgs {
    /// Inner samples of nested; atoms of atomic, the true one among them [default: 100].
    #[arg(long, value_name = "COUNT", value_parser = whole::<usize>, allow_negative_numbers = true)]
    atoms: Option<usize>,

    /// Inner samples of level 0 [default: 8].
    #[arg(long, value_name = "COUNT", value_parser = whole::<usize>, allow_negative_numbers = true)]
    m0: Option<usize>,

    /// Lowest level [default: 2 for grr and tgrr, else 0].
    #[arg(long, value_name = "LEVEL", value_parser = whole::<u32>, allow_negative_numbers = true)]
    base: Option<u32>,

    /// Highest level, or where ru, rr and grr are capped [default for tru and tgrr: 4, or two above the base].
    #[arg(long, value_name = "LEVEL", value_parser = whole::<u32>, allow_negative_numbers = true)]
    top: Option<u32>,

    /// How fast the probability of a level falls: a number, or paper [default: paper].
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    alpha: Option<Alpha>,

    /// What the outer θ has to do with the inner samples: nothing, a member of every block, or where the paper's
    /// authors plant it [default: excluded; inclusive for atomic].
    #[arg(long, value_name = "NAME", value_parser = named::<Coupling>())]
    coupling: Option<Coupling>,

    /// How a fine block is compared with the coarse one: with both halves, or with the first [default: antithetic].
    #[arg(long, value_name = "NAME", value_parser = named::<Difference>())]
    difference: Option<Difference>,

    /// Whether the levels of a query have blocks of their own, or parts of one [default: fresh].
    #[arg(long, value_name = "NAME", value_parser = named::<Blocks>())]
    blocks: Option<Blocks>,

    /// How the levels of a batch are drawn [default: independent].
    #[arg(long, value_name = "NAME", value_parser = named::<Levels>())]
    draw_levels: Option<Levels>,
}

impl EstimatorArgs {
    pub fn settings(&self, method: Method) -> Settings {
        self.over(Settings::paper(method))
    }

    /// These settings, with what was given in their place. A base that was given raises a top that was not.
    pub fn over(&self, start: Settings) -> Settings {
        let least = self.base.map_or(0, |base| base.saturating_add(2));
        Settings {
            base: self.base.unwrap_or(start.base),
            atoms: self.atoms.unwrap_or(start.atoms),
            m0: self.m0.unwrap_or(start.m0),
            top: self.top.or(start.top.map(|top| top.max(least))),
            coupling: self.coupling.unwrap_or(start.coupling),
            levels: self.draw_levels.unwrap_or(start.levels),
            alpha: self.alpha.unwrap_or(start.alpha),
            difference: self.difference.unwrap_or(start.difference),
            blocks: self.blocks.unwrap_or(start.blocks),
            ..start
        }
    }
}

/// One of the methods that draw a level.
pub fn multilevel() -> impl TypedValueParser<Value = Method> {
    let methods = Method::ALL.iter().filter(|(_, method)| method.is_multilevel());
    PossibleValuesParser::new(methods.map(|(name, _)| *name))
        .map(|name| Method::named(&name).expect("only known names are accepted"))
}
