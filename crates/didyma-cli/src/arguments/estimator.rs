//! Arguments of the commands about estimators, and an estimator's options.

use super::{named, whole};
use clap::Parser;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use didyma::estimator::{Alpha, Blocks, Coupling, Difference, Levels, Method, Named, Settings};

/// An estimator's options; what is not given is as in the paper, or as in a run.
#[derive(Debug, Parser)]
#[command(next_help_heading = "Estimator (what is not given is as in the paper)")]
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

#[derive(Debug, Parser)]
pub struct AlphaArgs {
    /// Multilevel method.
    #[arg(long, value_name = "NAME", value_parser = multilevel())]
    method: Method,

    /// Rate at which the second moments of the gradient's differences fall with the level: 2^(−r2·l).
    #[arg(long, value_name = "NUMBER", allow_negative_numbers = true)]
    pub r2: f64,

    /// Lowest level of grr and tgrr; the others start at 0 [default: 2].
    #[arg(long, value_name = "LEVEL", value_parser = whole::<u32>, allow_negative_numbers = true)]
    base: Option<u32>,

    /// Highest level of tru and tgrr; the others have none [default: 4, or two above the base].
    #[arg(long, value_name = "LEVEL", value_parser = whole::<u32>, allow_negative_numbers = true)]
    top: Option<u32>,

    /// Inner samples of level 0.
    #[arg(long, default_value = "8", value_name = "COUNT", value_parser = whole::<usize>)]
    #[arg(allow_negative_numbers = true)]
    m0: usize,

    /// Variance of the base term, in units of B, if the levels above it have second moments B·2^(−r2·l).
    #[arg(long, default_value = "1", value_name = "NUMBER", allow_negative_numbers = true)]
    pub base_variance: f64,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

impl AlphaArgs {
    /// The settings, and a remark on what was typed without effect.
    pub fn settings(&self) -> (Settings, Option<String>) {
        let Self { method, m0, .. } = *self;
        let paper = Settings::paper(method);
        let levels = matches!(method, Method::Grr | Method::Tgrr);
        let ignored = |name: &str, typed: bool| typed.then(|| format!("--{name}"));
        let ignored: Vec<_> = ignored("base", !levels && self.base.is_some())
            .into_iter()
            .chain(ignored("top", !method.is_truncated() && self.top.is_some()))
            .collect();
        let base = self.base.filter(|_| levels).unwrap_or(paper.base);
        let top = paper.top.map(|top| self.top.unwrap_or(top.max(base + 2)));
        let name = method.name();
        let remark =
            (!ignored.is_empty()).then(|| format!("no effect on {name}: {}", ignored.join(", ")));
        (Settings { base, top, m0, ..paper }, remark)
    }
}

/// One of the methods that draw a level.
pub(super) fn multilevel() -> impl TypedValueParser<Value = Method> {
    let methods = Method::ALL.iter().filter(|(_, method)| method.is_multilevel());
    PossibleValuesParser::new(methods.map(|(name, _)| *name))
        .map(|name| Method::named(&name).expect("only known names are accepted"))
}
