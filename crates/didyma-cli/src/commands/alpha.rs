//! `didyma alpha`: the paper's level law and the recipe's, side by side.

use crate::args::AlphaArgs;
use didyma::estimator::alpha::{Model, advise};
use didyma::estimator::{Estimator, Named, Tails};
use serde::Serialize;
use std::fmt;

/// What was found; its field names are the JSON keys. Infinite numbers are null there.
#[derive(Debug, Serialize)]
pub struct AlphaReport {
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

pub fn alpha(args: &AlphaArgs) -> anyhow::Result<AlphaReport> {
    let (settings, remark) = args.settings();
    if let Some(remark) = remark {
        crate::tell(&format!("note: {remark}"));
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
