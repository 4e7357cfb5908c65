//! `didyma check`: a few simulations of a problem, and what they say.

use crate::arguments::{
    ConfigArgs, LoadedProblem, ProblemArgs, ProgramArgs, ThreadsArgs, count, whole,
};
use crate::output::{check_out, show, tell};
use crate::terminal::{bar, bars, bin, stop_on_interrupt, unless};
use crate::{ExitCode, STOPPED};
use clap::Parser;
use didyma::check::{SimulatorCheck, SummaryCheck};
use didyma::report::check_page;
use didyma::simulator;
use didyma::storage::write_whole;
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Try a problem: a few simulations, and what they say of shapes, speed, failures, seeds and the observation.
///
/// Exit code 1 if no run makes sense: every simulation fails, or the same seed does not give the same.
#[derive(Debug, Parser)]
#[command(after_help = "Examples:
  didyma check problem.toml
  didyma check problem.toml -n 500 --report check.html")]
pub struct CheckArgs {
    #[command(flatten)]
    pub problem: ProblemArgs,

    /// Number of simulations.
    #[arg(short = 'n', long = "count", default_value = "100", value_name = "COUNT")]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub count: usize,

    #[command(flatten)]
    pub config: ConfigArgs,

    /// Seed of all random numbers [default: 1, or what the problem file says].
    #[arg(long, value_name = "NUMBER", value_parser = whole::<u64>, allow_negative_numbers = true)]
    pub seed: Option<u64>,

    #[command(flatten)]
    pub threads: ThreadsArgs,

    #[command(flatten)]
    pub program: ProgramArgs,

    /// Write a page with the figures as well.
    #[arg(long, value_name = "FILE.html")]
    pub report: Option<PathBuf>,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &CheckArgs) -> anyhow::Result<ExitCode> {
    let Some(checked) = check(args)? else { return Ok(STOPPED) };
    show(&checked, args.json)?;
    // The reason of a failure is no part of the text: it goes where errors go.
    if let Some(first) = &checked.check.first_failure {
        tell(&format!("the first failure: {first}"));
    }
    Ok(u8::from(!checked.passed))
}

/// A problem that was tried; the field names are the JSON keys.
#[derive(Debug, Serialize)]
struct Checked {
    #[serde(flatten)]
    check: SimulatorCheck,
    notes: Vec<String>,
    passed: bool,
    /// Simulations of a whole run by the problem's settings.
    simulations_of_a_run: usize,
    report: Option<PathBuf>,
}

/// After so long without an answer a hint is given.
const SILENCE: Duration = Duration::from_secs(10);
/// Columns of a picture.
const WIDTH: usize = 40;
/// Summaries that are drawn, at most: those furthest out.
const DRAWN: usize = 20;

/// Tries the problem; none if the user stopped it.
fn check(args: &CheckArgs) -> anyhow::Result<Option<Checked>> {
    check_out(args.report.as_deref())?;
    let LoadedProblem { task, file } =
        args.problem.load_with(|problem| args.program.apply(problem))?;
    args.program.check(file.as_ref().map(|(problem, _)| problem))?;
    let config = args.config.config(args.seed, file.as_ref().map(|(_, settings)| settings))?;
    let stop = stop_on_interrupt();
    let bar = bar(args.count as u64, "{bar:40} {pos}/{len} simulations, {per_sec}");
    let (begun, mut told) = (Instant::now(), false);
    let mut observe = |now: simulator::Progress| {
        bar.set_position(now.done as u64);
        if now.done == 0 && !told && begun.elapsed() > SILENCE {
            told = true;
            tell(
                "no answer so far: does the program flush its output after each line? (Ctrl-C stops)",
            );
        }
        unless(&stop)
    };
    let check =
        SimulatorCheck::run(&task, args.count, config.seed, args.threads.count(), &mut observe)?;
    bar.finish_and_clear();
    if stop.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if let Some(path) = &args.report {
        write_whole(path, check_page(&check).as_bytes())?;
    }
    Ok(Some(Checked {
        notes: check.notes(),
        passed: check.passed(),
        simulations_of_a_run: config.rounds as usize * config.simulations,
        report: args.report.clone(),
        check,
    }))
}

impl fmt::Display for Checked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let SimulatorCheck { name, parameters, simulations, seconds, workers, .. } = &self.check;
        let summaries = &self.check.summaries;
        let each = seconds * *workers as f64 / *simulations as f64;
        let whole = seconds / *simulations as f64 * self.simulations_of_a_run as f64;
        writeln!(
            f,
            "{name}: {} parameters ({}), {} summaries",
            parameters.len(),
            parameters.join(", "),
            summaries.len()
        )?;
        writeln!(
            f,
            "{simulations} simulations in {seconds:.2} s, {workers} at once: {} each, {} for the {} of a run",
            duration(each),
            duration(whole),
            self.simulations_of_a_run
        )?;
        let known =
            |fact: Option<bool>| fact.map_or("not known", |yes| if yes { "yes" } else { "NO" });
        writeln!(
            f,
            "failed: {}; the same seed gives the same: {}; another seed gives another: {}",
            self.check.failed(),
            known(self.check.repeatable),
            known(self.check.random)
        )?;
        for (reason, count) in &self.check.failures {
            writeln!(f, "  {count} × {reason}")?;
        }
        picture(f, summaries)?;
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        if let Some(path) = &self.report {
            writeln!(f, "report: {}", path.display())?;
        }
        write!(f, "{}", if self.passed { "passed" } else { "FAILED" })
    }
}

/// A line for each summary: simulations as a histogram, and where the observation lies.
fn picture(f: &mut fmt::Formatter<'_>, summaries: &[SummaryCheck]) -> fmt::Result {
    let mut shown: Vec<&SummaryCheck> = summaries.iter().filter(|s| !s.values.is_empty()).collect();
    if shown.is_empty() {
        return Ok(());
    }
    let all = shown.len();
    if all > DRAWN {
        shown.sort_by(|a, b| a.tail.total_cmp(&b.tail));
        shown.truncate(DRAWN);
    }
    let width = shown.iter().map(|s| s.name.chars().count()).max().unwrap_or(0).clamp(7, 24);
    writeln!(
        f,
        "{:<width$}  {:<WIDTH$}  {:>11}  above",
        "summary", "simulations at draws of the prior", "observed"
    )?;
    for s in shown {
        let (low, high) = (s.range.0.min(s.observed), s.range.1.max(s.observed));
        let bars = bars(&s.values, (low, high), WIDTH, 1).concat();
        writeln!(
            f,
            "{:<width$}  {bars}  {:>11.4}  {:>3.0} %",
            s.name,
            s.observed,
            100.0 * s.below
        )?;
        let place = bin(s.observed, (low, high), WIDTH).unwrap_or(0);
        writeln!(f, "{:<width$}  {:>place$}▲", "", "")?;
    }
    match all > DRAWN {
        true => {
            writeln!(f, "{} summaries whose observation is less far out are left out", all - DRAWN)
        }
        false => Ok(()),
    }
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.0} µs", 1e6 * s),
        s if s < 1.0 => format!("{:.1} ms", 1e3 * s),
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}
