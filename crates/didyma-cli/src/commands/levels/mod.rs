//! `didyma levels`: moments of the level differences, and the rates fitted to them.

mod report;

use crate::arguments::{EstimatorArgs, multilevel, named, threads, whole};
use crate::output::show;
use crate::{DONE, ExitCode};
use anyhow::bail;
use clap::builder::PossibleValuesParser;
use clap::{ArgGroup, Parser};
use didyma::config::{Config, Inner};
use didyma::estimator::{Coupling, Difference, Method, Settings, Source};
use didyma::levels::{LevelStudy, Objective, TrainedFlow, level_settings};
use didyma::rng::Streams;
use didyma::run::RunDir;
use didyma::{Named, parallel};
use didyma_lab::{TOYS, Toy};
use report::{Laws, Levels, Subject};
use std::path::{Path, PathBuf};

/// The highest level that is measured unless another is asked for.
const HIGHEST: u32 = 6;
/// The lowest number of levels that rates can be fitted to.
const LEAST: u32 = 3;
/// Evaluations at each level, where they are those of a toy.
const TOY_BUDGET: u64 = 1_000_000;
/// Evaluations at each level of a flow: some ten seconds on two cores.
const FLOW_BUDGET: u64 = 100_000;

/// Measure the levels of a multilevel estimator: moments, kurtosis, cost, and the rates r1 and r2.
///
/// They are measured on the flow of a run with its simulations as outer and inner samples, and with its settings
/// unless others are given, not with levels that a round chose by itself; a block of the pool cannot be larger than the
/// number of simulations. Or on a toy whose loss is
/// known exactly, all Gaussian: `benign` has every moment one could wish for, `mild` some, `sharp` has a posterior
/// sharper than the proposal, `four-d` is four-dimensional. Every level gets the same number of evaluations; rates
/// are fitted to levels 1 to 6.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma levels runs/two-moons-tgrr-1
  didyma levels runs/two-moons-tgrr-1 --coupling excluded --plot levels.svg
  didyma levels runs/two-moons-tgrr-1 --coupling excluded --inner pool,near,mixture
  didyma levels --toy benign
  didyma levels --toy sharp --coupling inclusive --plot levels.svg
  didyma levels --toy four-d --method grr --json | jq .r2")]
#[command(group(ArgGroup::new("problem").required(true).args(["dir", "toy"])))]
pub struct LevelsArgs {
    /// Directory of a run, to measure on the flow of its last finished round.
    #[arg(value_name = "DIR")]
    pub dir: Option<PathBuf>,

    /// Toy to measure on.
    #[arg(long, value_name = "NAME")]
    #[arg(value_parser = PossibleValuesParser::new(TOYS.map(|toy| toy.name)))]
    toy: Option<String>,

    /// Multilevel method, for its base level and for what it needs of the rates [default: the run's, or tgrr].
    #[arg(long, value_name = "NAME", value_parser = multilevel())]
    method: Option<Method>,

    /// Law of the inner samples: rows of the run (pool), those whose summaries are close to the outer ones more often
    /// (near), half from the proposal and half from the posterior of the round before at each row's summaries (mixture), the
    /// same by nets of Sobol's sequence (sobol), or rows with an estimate of what they should sum up to (normalised); near,
    /// sobol and normalised need --coupling excluded. Several, with commas between, are compared in a table; batch counts as
    /// pool [default: the run's].
    #[arg(long, value_name = "LAW", value_parser = named::<Inner>(), requires = "dir")]
    #[arg(value_delimiter = ',', conflicts_with = "toy")]
    inner: Vec<Inner>,

    /// Make the samples of mixture and sobol by the posterior that is measured, not by that of the round before as in
    /// training: what a fresher one would bring.
    #[arg(long, requires = "inner")]
    fresh: bool,

    #[command(flatten)]
    estimator: EstimatorArgs,

    /// Highest level to measure [default: 6, or the last that the run has simulations for].
    #[arg(long, value_name = "LEVEL", value_parser = whole::<u32>, allow_negative_numbers = true)]
    levels: Option<u32>,

    /// Evaluations of log q at each level; more where that is less than 200 queries [default: 100000 for a run, 1000000
    /// for a toy].
    #[arg(long, value_name = "COUNT", value_parser = whole::<u64>, allow_negative_numbers = true)]
    budget: Option<u64>,

    /// Seed of all random numbers.
    #[arg(long, default_value = "1", value_name = "NUMBER", value_parser = whole::<u64>)]
    #[arg(allow_negative_numbers = true)]
    pub seed: u64,

    /// Threads that evaluate a run's flow [default: all cores]. The result is the same for any number.
    #[arg(long, value_name = "N", value_parser = threads, allow_negative_numbers = true)]
    threads: Option<usize>,

    /// Print one JSON object instead of text, or a list of them where several laws are asked for.
    #[arg(long)]
    pub json: bool,

    /// Write a picture of the levels, as an SVG file.
    #[arg(long, value_name = "FILE", value_parser = svg)]
    pub plot: Option<PathBuf>,
}

impl LevelsArgs {
    /// The toy, if one was named.
    fn toy(&self) -> Option<Toy> {
        let known = |name: &String| Toy::named(name).expect("only known names are accepted");
        self.toy.as_ref().map(known)
    }

    fn toy_settings(&self) -> Settings {
        let settings = self.estimator.settings(self.method.unwrap_or(Method::Tgrr));
        // Naive differences are for looking at; they have no law without a top level.
        let naive = settings.difference == Difference::Naive;
        let top = settings.top.or(naive.then_some(self.toy_levels()));
        Settings { top, ..settings }
    }

    /// The run's settings, fitted to its simulations as its training was, with what was given in their place; and a
    /// remark if they are not of the run's method.
    fn run_settings(&self, run: &Config, flow: &TrainedFlow) -> (Settings, Option<String>) {
        let settings = self.estimator.over(level_settings(run, self.method, flow));
        let remark = || {
            let (own, coupling) = (run.method_name(), settings.coupling.name());
            let method = settings.method.name();
            format!(
                "{own}, the run's method, has no levels: these are of {method} with {coupling} coupling"
            )
        };
        let remark = (!run.estimator.method.is_multilevel()).then(remark);
        (settings, remark)
    }

    fn toy_levels(&self) -> u32 {
        self.levels.unwrap_or(HIGHEST)
    }

    /// The highest level that is asked for, or that the simulations can fill.
    fn run_levels(&self, settings: &Settings, flow: &TrainedFlow) -> anyhow::Result<u32> {
        let (m0, rows) = (settings.m0, flow.rows());
        let filled = (flow.largest_block() / m0.max(1)).checked_ilog2();
        match (self.levels, filled.unwrap_or(0)) {
            (Some(levels), _) => Ok(levels),
            (None, filled) if filled >= LEAST => Ok(filled.min(HIGHEST)),
            (None, _) => bail!(
                "the run has {rows} successful simulations, but rates need levels up to {LEAST}, and so m0 · 2^{LEAST} + 1 \
                 = {}: simulate more, or lower --m0",
                m0.saturating_mul(1 << LEAST).saturating_add(1)
            ),
        }
    }

    /// The laws of the inner samples, each once: a batch draws from the pool, too.
    fn laws(&self, run: &Config) -> Vec<Inner> {
        // Maximum likelihood has no inner samples, and so no law of them.
        let likelihood = run.estimator.method == Method::Likelihood;
        let own = if likelihood { Inner::Pool } else { run.train.inner };
        let asked = if self.inner.is_empty() { &[own][..] } else { &self.inner };
        let mut laws = Vec::new();
        for law in asked {
            let law = if *law == Inner::Batch { Inner::Pool } else { *law };
            if !laws.contains(&law) {
                laws.push(law);
            }
        }
        laws
    }

    /// Evaluations at each level.
    fn budget(&self) -> u64 {
        let usual = if self.dir.is_some() { FLOW_BUDGET } else { TOY_BUDGET };
        self.budget.unwrap_or(usual)
    }

    fn threads(&self) -> usize {
        self.threads.unwrap_or_else(parallel::cores)
    }
}

fn svg(text: &str) -> Result<PathBuf, String> {
    if text.to_ascii_lowercase().ends_with(".svg") {
        return Ok(PathBuf::from(text));
    }
    Err("give a file name that ends in .svg".to_owned())
}

pub fn run(args: &LevelsArgs) -> anyhow::Result<ExitCode> {
    let mut found = match (&args.dir, args.toy()) {
        (Some(dir), _) => of_run(args, dir)?,
        (None, Some(toy)) => vec![of_toy(args, toy)?],
        (None, None) => bail!("give the directory of a run, or --toy"),
    };
    if args.inner.len() > 1 {
        return show(&Laws(found), args.json);
    }
    let levels = found.pop().expect("a law");
    show(&levels, args.json)?;
    if let Some(path) = &args.plot {
        levels.plot(path)?;
    }
    Ok(DONE)
}

fn of_toy(args: &LevelsArgs, toy: Toy) -> anyhow::Result<Levels> {
    let subject = Subject::Toy { toy: toy.name };
    measure(args, args.toy_settings(), args.toy_levels(), &mut toy.queries(), subject)
}

/// Measures on the flow of the last finished round, by each law.
fn of_run(args: &LevelsArgs, dir: &Path) -> anyhow::Result<Vec<Levels>> {
    let run = RunDir::read(dir)?;
    let config = run.manifest().config.clone();
    let laws = args.laws(&config);
    if args.inner.len() > 1 && args.plot.is_some() {
        bail!("a picture shows one law: give one law to --inner, or leave out --plot");
    }
    laws.into_iter().map(|law| of_law(args, &run, &config, law)).collect()
}

fn of_law(args: &LevelsArgs, run: &RunDir, config: &Config, law: Inner) -> anyhow::Result<Levels> {
    let flow = run.trained_flow(args.threads())?;
    let (settings, note) = args.run_settings(config, &flow);
    let highest = args.run_levels(&settings, &flow)?;
    check_coupling(law, &settings)?;
    let subject = Subject::Run {
        run: run.path().to_owned(),
        task: run.manifest().task.clone(),
        run_method: config.method_name(),
        rounds: run.rounds()?,
        simulations: flow.rows(),
        note,
    };
    LevelStudy { settings: settings.clone(), highest, budget: 0 }.check()?;
    let block = settings.m0 << highest.max(settings.base).min(16);
    let mut flow = run.with_inner(flow, law, block, args.fresh)?;
    let mut levels = measure(args, settings, highest, &mut flow, subject)?;
    levels.inner = Some(law.name());
    Ok(levels)
}

/// Refuses couplings by which a law is not right.
fn check_coupling(inner: Inner, settings: &Settings) -> anyhow::Result<()> {
    if settings.coupling == Coupling::Planted && inner.is_special() {
        bail!(
            "planted coupling takes inner samples from the pool, as the authors' code does: add --inner pool"
        );
    }
    let excluded = settings.coupling == Coupling::Excluded;
    if !inner.allows_outer() && !excluded {
        bail!(
            "inner samples of the law {} cannot have the outer theta among them, as {} coupling has it: add --coupling excluded",
            inner.name(),
            settings.coupling.name()
        );
    }
    Ok(())
}

fn measure(
    args: &LevelsArgs,
    settings: Settings,
    highest: u32,
    problem: &mut impl Objective,
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
        inner: None,
        m0: settings.m0,
        top: settings.top,
        budget: args.budget(),
        seed: args.seed,
        report,
    })
}
