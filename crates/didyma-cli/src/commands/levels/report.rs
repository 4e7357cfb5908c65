//! Levels that were measured, as text, JSON and a picture.

use anyhow::Context;
use didyma::levels::LevelReport;
use didyma::report::level_plot;
use didyma::storage::write_whole;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// Measured levels; the field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Levels {
    #[serde(flatten)]
    pub subject: Subject,
    pub method: &'static str,
    pub coupling: &'static str,
    pub difference: &'static str,
    /// The law of the inner samples, on the flow of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub inner: Option<&'static str>,
    pub m0: usize,
    pub top: Option<u32>,
    pub budget: u64,
    pub seed: u64,
    #[serde(flatten)]
    pub report: LevelReport,
}

/// The toy or run that levels were measured on.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum Subject {
    Toy {
        toy: &'static str,
    },
    Run {
        run: PathBuf,
        task: String,
        run_method: &'static str,
        rounds: usize,
        simulations: usize,
        note: Option<String>,
    },
}

impl Levels {
    /// Writes the picture.
    pub fn plot(&self, path: &Path) -> anyhow::Result<()> {
        let svg = level_plot(&self.report, &self.title());
        write_whole(path, svg.as_bytes()).with_context(|| {
            format!("could not write the plot {}: choose a folder that exists", path.display())
        })
    }

    fn title(&self) -> String {
        let inner = self.inner.map_or(String::new(), |law| format!(", inner samples by {law}"));
        self.about() + &inner
    }

    fn about(&self) -> String {
        let Self { subject, coupling, difference, m0, .. } = self;
        let subject = match subject {
            Subject::Toy { toy } => format!("the {toy} toy"),
            Subject::Run { run, .. } => {
                // The whole path may not fit a picture.
                let name = run.file_name().unwrap_or(run.as_os_str());
                format!("the run {}", name.display())
            }
        };
        format!("levels of {subject}, {coupling} coupling, {difference} differences, M0 = {m0}")
    }
}

/// Levels by several laws of the inner samples, side by side.
#[derive(Debug, Serialize)]
#[serde(transparent)]
pub struct Laws(pub Vec<Levels>);

impl fmt::Display for Laws {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(laws) = self;
        let first = laws.first().expect("a law");
        writeln!(f, "{}", first.about())?;
        first.subject.about().map_or(Ok(()), |about| writeln!(f, "{about}"))?;
        let last = first.report.levels.len() - 1;
        write!(
            f,
            "  inner samples   r1            r2            r2 - 2 s.e.  kurtosis  variance x cost  E|gradient|^2 at levels 1 to {last}"
        )?;
        laws.iter().try_for_each(|levels| write!(f, "\n{}", levels.row()))?;
        write!(
            f,
            "\nvariance x cost: of {}'s gradient with the best tails up to its top level, cross terms left out",
            first.method
        )
    }
}

impl Levels {
    /// A law's row of the table.
    fn row(&self) -> String {
        let LevelReport { r1, r1_se, r2, r2_se, r2_safe, variance_cost, levels, .. } = &self.report;
        let above = || levels.iter().filter(|level| level.level > 0);
        let kurtosis = above().map(|level| level.kurtosis).fold(0.0, f64::max);
        let moments: Vec<_> =
            above().map(|l| format!("{:.2e}", l.second_moment_gradient)).collect();
        let [r1, r2] = [(r1, r1_se), (r2, r2_se)].map(|(r, e)| format!("{r:.2} ± {e:.2}"));
        format!(
            "  {:<14}  {r1:<12}  {r2:<12}  {r2_safe:>11.2}  {kurtosis:>8.0}  {variance_cost:>15.3e}  {}",
            self.inner.unwrap_or("pool"),
            moments.join(" ")
        )
    }
}

impl Subject {
    /// A run in short, on a line of its own.
    fn about(&self) -> Option<String> {
        let Self::Run { task, run_method, rounds, simulations, note, .. } = self else {
            return None;
        };
        let plural = if *rounds == 1 { "" } else { "s" };
        let run =
            format!("{task} by {run_method}, {rounds} round{plural}, {simulations} simulations");
        Some(note.as_ref().map_or(run.clone(), |note| format!("{run}\nnote: {note}")))
    }
}

impl fmt::Display for Levels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title())?;
        self.subject.about().map_or(Ok(()), |about| writeln!(f, "{about}"))?;
        write_levels(f, &self.report)?;
        write_rates(f, &self.report)?;
        self.write_base(f)?;
        self.report.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}

fn write_levels(f: &mut fmt::Formatter<'_>, report: &LevelReport) -> fmt::Result {
    writeln!(
        f,
        "  level  samples  queries      mean loss         E|loss|^2     E|gradient|^2  kurtosis"
    )?;
    for l in &report.levels {
        let mean = format!("{:.3e} ± {:.0e}", l.mean_loss, l.mean_loss_se);
        writeln!(
            f,
            "  {:>5}  {:>7}  {:>7}  {mean:>19}  {:>12.3e}  {:>16.3e}  {:>8.1}",
            l.level, l.cost, l.queries, l.second_moment_loss, l.second_moment_gradient, l.kurtosis
        )?;
    }
    Ok(())
}

fn write_rates(f: &mut fmt::Formatter<'_>, report: &LevelReport) -> fmt::Result {
    let last = report.levels.len() - 1;
    let (last, bias) = (last.min(6), last.min(4));
    writeln!(f, "rates, fitted to levels 1 to {last} (bias: 1 to {bias})")?;
    let LevelReport { r1, r1_se, r2, r2_se, r2_safe, bias_rate, bias_rate_se, .. } = report;
    writeln!(f, "  r1    {r1:.2} ± {r1_se:.2}   E|loss|^2 falls like 2^(-r1 l)")?;
    writeln!(
        f,
        "  r2    {r2:.2} ± {r2_se:.2}   E|gradient|^2; plan with r2 - 2 s.e. = {r2_safe:.2}"
    )?;
    writeln!(f, "  bias  {bias_rate:.2} ± {bias_rate_se:.2}   the mean falls like 2^(-bias l)")
}

impl Levels {
    /// The base level, and the command that takes the rates from here.
    fn write_base(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LevelReport { base, tails, r2, .. } = &self.report;
        let tails: Vec<_> = tails.iter().map(|p| format!("{p:.3}")).collect();
        writeln!(f, "{} from base level {}", self.method, base.level)?;
        let (variance, unit) = (base.variance_gradient, base.base_variance);
        write!(
            f,
            "  variance of its gradient {variance:.3}, or {unit:.3} B with E|gradient|^2 = B 2^(-r2 l)"
        )?;
        if !tails.is_empty() {
            let cost = self.report.variance_cost;
            write!(
                f,
                "\n  best P(L >= {}), ... = {}: variance x cost {cost:.3e}",
                base.level + 1,
                tails.join(", ")
            )?;
        }
        if *r2 > 0.0 {
            let from =
                if base.level > 0 { format!(" --base {}", base.level) } else { String::new() };
            let Self { method, m0, top, .. } = self;
            let to = top.map_or(String::new(), |top| format!(" --top {top}"));
            write!(
                f,
                "\n  see: didyma alpha --method {method} --r2 {r2:.2} --m0 {m0}{from}{to} --base-variance {unit:.3}"
            )?;
        }
        Ok(())
    }
}
