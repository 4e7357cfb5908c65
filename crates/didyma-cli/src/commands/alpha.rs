//! `didyma alpha`: the paper's level law and the recipe's, side by side.

use crate::ExitCode;
use crate::arguments::{multilevel, whole};
use crate::output::{show, tell};
use clap::Parser;
use didyma::Named;
use didyma::estimator::alpha::{Model, advise};
use didyma::estimator::{Estimator, Method, Settings, Tails};
use serde::Serialize;
use std::fmt;

/// Choose how fast the probability of a level falls (α), for a rate r2 of the levels.
///
/// A multilevel estimator draws a level L and takes blocks of M₀·2^l inner samples up to it. Rare
/// high levels cost little but weigh much: alpha balances variance against cost. The paper's value
/// is shown beside the recipe's: α = (r2 + 1)/2 with tails P(L ≥ j) = min(1, κ·2^(−α(j − base))),
/// whose κ follows from the variance of the base term. Cross terms are left out, so larger tails are
/// worth trying. `didyma levels` measures r2 and the base variance.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma alpha --method tgrr --r2 1.8
  didyma alpha --method grr --r2 1.4 --base 1 --base-variance 0.5
  didyma alpha --method ru --r2 1.8 --json | jq .cost_paper")]
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
    fn settings(&self) -> (Settings, Option<String>) {
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

pub fn run(args: &AlphaArgs) -> anyhow::Result<ExitCode> {
    show(&alpha(args)?, args.json)
}

/// Both laws; the field names are the JSON keys. Infinite numbers are null there.
#[derive(Debug, Serialize)]
struct AlphaReport {
    method: &'static str,
    r2: f64,
    base: u32,
    top: Option<u32>,
    m0: usize,
    base_variance: f64,
    alpha_paper: f64,
    alpha_recipe: f64,
    /// Absent if the tails are not scaled geometric.
    kappa_recipe: Option<f64>,
    alpha_one_parameter: f64,
    cost_paper: f64,
    cost_recipe: f64,
    variance_times_cost_paper: f64,
    variance_times_cost_recipe: f64,
    tails_paper: Vec<f64>,
    tails_recipe: Vec<f64>,
}

/// Levels above the base whose tails are listed if there is no top level.
const LISTED: u32 = 4;

fn alpha(args: &AlphaArgs) -> anyhow::Result<AlphaReport> {
    let (settings, remark) = args.settings();
    if let Some(remark) = remark {
        tell(&format!("note: {remark}"));
    }
    let model = Model { rate: args.r2, base_variance: args.base_variance };
    let advice = advise(&settings, model)?;
    let base = settings.base;
    let last = settings.top.unwrap_or(base + LISTED);
    let tails = |estimator: &Estimator| {
        (base + 1..=last).map(|level| estimator.law().tail(level)).collect()
    };
    let product = |estimator: &Estimator| {
        model.variance_times_cost(settings.method, estimator.law()) * settings.m0 as f64
    };
    Ok(AlphaReport {
        method: settings.method.name(),
        r2: args.r2,
        base,
        top: settings.top,
        m0: settings.m0,
        base_variance: args.base_variance,
        alpha_paper: advice.paper.settings().alpha(),
        alpha_recipe: advice.recipe.settings().alpha(),
        kappa_recipe: match advice.recipe.settings().tails {
            Tails::Scaled { kappa } => Some(kappa),
            _ => None,
        },
        alpha_one_parameter: advice.one_parameter,
        cost_paper: advice.paper.expected_inner(),
        cost_recipe: advice.recipe.expected_inner(),
        variance_times_cost_paper: product(&advice.paper),
        variance_times_cost_recipe: product(&advice.recipe),
        tails_paper: tails(&advice.paper),
        tails_recipe: tails(&advice.recipe),
    })
}

impl fmt::Display for AlphaReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { method, r2, base, m0, base_variance, .. } = self;
        let top = self.top.map_or("no top level".to_owned(), |top| format!("top level {top}"));
        writeln!(
            f,
            "{method}, r2 = {r2}, base level {base}, {top}, M0 = {m0}, base variance {base_variance}"
        )?;
        writeln!(f, "                        paper     recipe")?;
        let mut row = |name: &str, paper: f64, recipe: f64| {
            writeln!(f, "  {name:<18} {:>9}  {:>9}", short(paper), short(recipe))
        };
        row("alpha", self.alpha_paper, self.alpha_recipe)?;
        for (level, (&paper, &recipe)) in
            (base + 1..).zip(self.tails_paper.iter().zip(&self.tails_recipe))
        {
            row(&format!("P(L >= {level})"), paper, recipe)?;
        }
        row("inner samples", self.cost_paper, self.cost_recipe)?;
        row("variance x cost", self.variance_times_cost_paper, self.variance_times_cost_recipe)?;
        match self.kappa_recipe {
            Some(kappa) => writeln!(
                f,
                "  The recipe's tails are min(1, kappa 2^(-alpha (j - base))) with kappa = {};",
                short(kappa)
            )?,
            None => {
                writeln!(f, "  The recipe's masses fall like 2^(-alpha j), the first one apart;")?
            }
        }
        let one = self.alpha_one_parameter;
        let edge = one < 0.01 || one > self.r2 + 0.99;
        let edge = if edge { " (the end of its range)" } else { "" };
        write!(
            f,
            "  with the paper's tails, tied to alpha alone, the best alpha is {}{edge}.",
            short(one)
        )
    }
}

/// Four digits, or words.
fn short(value: f64) -> String {
    match value {
        _ if value.is_infinite() => "infinite".to_owned(),
        _ if value.abs() >= 1e4 || value.abs() < 1e-3 => format!("{value:.2e}"),
        _ => format!("{value:.4}"),
    }
}
