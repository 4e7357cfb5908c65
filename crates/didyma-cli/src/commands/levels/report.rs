//! `didyma levels`: moments of the level differences, and the rates fitted to them.

use crate::args::LevelsArgs;
use anyhow::{Context, anyhow};
use didyma::diagnostics::{LevelReport, LevelStudy, Problem, TrainedFlow};
use didyma::estimator::{Named, Settings};
use didyma::files::write_whole;
use didyma::report::level_plot;
use didyma::rng::Streams;
use didyma::run::{Manifest, RunDir, reports};
use didyma::toy::Toy;
use serde::Serialize;
use std::fmt;
use std::path::{Path, PathBuf};

/// What was measured; its field names are the JSON keys.
#[derive(Debug, Serialize)]
pub struct Levels {
    #[serde(flatten)]
    subject: Subject,
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

/// What it was measured on.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Subject {
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

pub fn levels(args: &LevelsArgs) -> anyhow::Result<Levels> {
    match (&args.dir, args.toy()) {
        (Some(dir), _) => of_run(args, dir),
        (None, Some(toy)) => of_toy(args, toy),
        (None, None) => Err(anyhow!("give the directory of a run, or --toy")),
    }
}

fn of_toy(args: &LevelsArgs, toy: Toy) -> anyhow::Result<Levels> {
    let subject = Subject::Toy { toy: toy.name };
    measure(args, args.toy_settings(), args.toy_levels(), &mut toy.queries(), subject)
}

/// Measures on the flow of the last finished round.
fn of_run(args: &LevelsArgs, dir: &Path) -> anyhow::Result<Levels> {
    let run = RunDir::read(dir)?;
    let (config, rounds) = (Manifest::of(&run)?.config, reports(&run)?.len());
    let mut flow = TrainedFlow::of_run(&run, args.threads())?;
    let (settings, note) = args.run_settings(&config, &flow);
    let highest = args.run_levels(&settings, &flow)?;
    let subject = Subject::Run {
        run: dir.to_owned(),
        task: Manifest::of(&run)?.task,
        run_method: config.method_name(),
        rounds,
        simulations: flow.rows(),
        note,
    };
    measure(args, settings, highest, &mut flow, subject)
}

fn measure(
    args: &LevelsArgs,
    settings: Settings,
    highest: u32,
    problem: &mut impl Problem,
    subject: Subject,
) -> anyhow::Result<Levels> {
    let budget = usize::try_from(args.budget())?;
    let study = LevelStudy { settings, highest, budget };
    let report = study.run(problem, Streams::new(args.seed))?;
    let settings = study.settings;
    Ok(Levels {
        subject,
        method: settings.method.name(),
        coupling: settings.coupling.name(),
        difference: settings.difference.name(),
        m0: settings.m0,
        top: settings.top,
        budget: args.budget(),
        seed: args.seed,
        report,
    })
}

impl Levels {
    /// Writes the picture, if one was asked for.
    pub fn plot(&self, args: &LevelsArgs) -> anyhow::Result<()> {
        let Some(path) = &args.plot else { return Ok(()) };
        let svg = level_plot(&self.report, &self.title());
        write_whole(path, svg.as_bytes()).with_context(|| {
            format!("could not write the plot {}: choose a folder that exists", path.display())
        })
    }

    fn title(&self) -> String {
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

impl Subject {
    /// What a run is, on a line of its own.
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
        let report = &self.report;
        writeln!(f, "{}", self.title())?;
        self.subject.about().map_or(Ok(()), |about| writeln!(f, "{about}"))?;
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
            let Self { method, m0, top, .. } = self;
            let to = top.map_or(String::new(), |top| format!(" --top {top}"));
            write!(
                f,
                "\n  see: didyma alpha --method {method} --r2 {r2:.2} --m0 {m0}{from}{to} --base-variance {unit:.3}"
            )?;
        }
        report.warnings.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))
    }
}
