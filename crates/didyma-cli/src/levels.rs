//! `didyma levels`: moments of the level differences, and the rates fitted to them.

use crate::args::LevelsArgs;
use anyhow::{Context, anyhow};
use didyma::diagnostics::{LevelReport, LevelStudy};
use didyma::estimator::Named;
use didyma::files::write_whole;
use didyma::report::level_plot;
use didyma::rng::Streams;
use serde::Serialize;
use std::fmt;

/// What was measured; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct ToyLevels {
    toy: &'static str,
    method: &'static str,
    coupling: &'static str,
    difference: &'static str,
    m0: usize,
    top: Option<u32>,
    budget: u64,
    seed: u64,
    #[serde(flatten)]
    report: LevelReport,
}

pub fn levels(args: &LevelsArgs) -> anyhow::Result<ToyLevels> {
    let (toy, settings) = (args.toy(), args.settings());
    let budget = usize::try_from(args.budget)?;
    let study = LevelStudy { highest: args.levels, budget, settings: settings.clone() };
    let report = study.run(&mut toy.queries(), Streams::new(args.seed))?;
    let found = ToyLevels {
        toy: toy.name,
        method: settings.method.name(),
        coupling: settings.coupling.name(),
        difference: settings.difference.name(),
        m0: settings.m0,
        top: settings.top,
        budget: args.budget,
        seed: args.seed,
        report,
    };
    Ok(found)
}

impl ToyLevels {
    /// Writes the picture, if one was asked for.
    pub fn plot(&self, args: &LevelsArgs) -> anyhow::Result<()> {
        let Some(path) = &args.plot else { return Ok(()) };
        let svg = level_plot(&self.report, &self.title()).map_err(|error| anyhow!("{error}"))?;
        write_whole(path, svg.as_bytes()).with_context(|| {
            format!("could not write the plot {}: choose a folder that exists", path.display())
        })
    }

    fn title(&self) -> String {
        let Self { toy, coupling, difference, m0, .. } = self;
        format!("levels of the {toy} toy, {coupling} coupling, {difference} differences, M0 = {m0}")
    }
}

impl fmt::Display for ToyLevels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let report = &self.report;
        writeln!(f, "{}", self.title())?;
        writeln!(
            f,
            "  level  samples  queries      mean loss         E|loss|^2     E|gradient|^2  kurtosis"
        )?;
        for l in &report.levels {
            let mean = format!("{:.3e} ± {:.0e}", l.mean_loss, l.mean_loss_se);
            writeln!(
                f,
                "  {:>5}  {:>7}  {:>7}  {mean:>19}  {:>12.3e}  {:>16.3e}  {:>8.1}",
                l.level,
                l.cost,
                l.queries,
                l.second_moment_loss,
                l.second_moment_gradient,
                l.kurtosis
            )?;
        }
        let last = report.levels.len() - 1;
        let (last, bias) = (last.min(6), last.min(4));
        writeln!(f, "rates, fitted to levels 1 to {last} (bias: 1 to {bias})")?;
        let LevelReport { r1, r1_se, r2, r2_se, r2_safe, bias_rate, bias_rate_se, .. } = report;
        writeln!(f, "  r1    {r1:.2} ± {r1_se:.2}   E|loss|^2 falls like 2^(-r1 l)")?;
        writeln!(
            f,
            "  r2    {r2:.2} ± {r2_se:.2}   E|gradient|^2; plan with r2 - 2 s.e. = {r2_safe:.2}"
        )?;
        writeln!(
            f,
            "  bias  {bias_rate:.2} ± {bias_rate_se:.2}   the mean falls like 2^(-bias l)"
        )?;
        let base = &report.base;
        let tails: Vec<_> = report.tails.iter().map(|p| format!("{p:.3}")).collect();
        writeln!(f, "{} from base level {}", self.method, base.level)?;
        let (variance, unit) = (base.variance_gradient, base.base_variance);
        write!(
            f,
            "  variance of its gradient {variance:.3}, or {unit:.3} B with E|gradient|^2 = B 2^(-r2 l)"
        )?;
        if !tails.is_empty() {
            write!(f, "\n  best P(L >= {}), ... = {}", base.level + 1, tails.join(", "))?;
        }
        if *r2 > 0.0 {
            let from =
                if base.level > 0 { format!(" --base {}", base.level) } else { String::new() };
            let method = self.method;
            write!(
                f,
                "\n  see: didyma alpha --method {method} --r2 {r2:.2}{from} --base-variance {unit:.3}"
            )?;
        }
        report.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}
