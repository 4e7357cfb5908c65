//! `didyma evaluate`: the quality of a run's posterior.

use crate::ExitCode;
use crate::arguments::{RunArgs, columns_of};
use crate::output::show;
use clap::Parser;
use didyma::metrics::CLASSIFIER_SEEDS;
use didyma::rng::Streams;
use didyma::run::RunDir;
use didyma::{Judge, Rows, Scores, TaskJudge};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// Score a run's posterior against reference samples: C2ST, MMD², LMD, NLOG.
#[derive(Debug, Parser)]
pub struct EvaluateArgs {
    /// Directory of the run.
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,

    /// CSV file with samples of the true posterior [default: the task's own].
    #[arg(long, value_name = "FILE")]
    pub reference: Option<PathBuf>,

    #[command(flatten)]
    pub run: RunArgs,

    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &EvaluateArgs) -> anyhow::Result<ExitCode> {
    show(&evaluate(args)?, args.json)
}

/// Scores of a run's posterior.
#[derive(Debug, Serialize)]
struct Evaluation {
    task: String,
    rounds: usize,
    reference: String,
    #[serde(flatten)]
    scores: Scores,
}

fn evaluate(args: &EvaluateArgs) -> anyhow::Result<Evaluation> {
    let run = RunDir::read(&args.dir)?;
    let manifest = run.manifest().clone();
    let posterior = run.posterior()?;
    let task = manifest.task()?;
    let threads = args.run.threads.count();
    let mut judge = TaskJudge::new(&task, Streams::new(args.run.seed), threads)?;
    let mut reference = "the task's own".to_owned();
    if let Some(path) = &args.reference {
        let names: Vec<&str> = task.problem.prior().names().collect();
        let rows = columns_of("--reference", path, &names)?;
        Rows::new("reference", &rows, names.len())?.expect_rows_from(20, "to tell anything")?;
        judge = judge.with_reference(rows);
        reference = path.display().to_string();
    }
    let rounds = run.rounds()?;
    let scores = judge.score(&posterior, rounds as u32, true)?;
    if scores.c2st.is_none() {
        reference = "none, since this task has none (give one with --reference)".to_owned();
    }
    Ok(Evaluation { task: manifest.task, rounds, reference, scores })
}

impl fmt::Display for Evaluation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { task, rounds, reference, scores } = self;
        write!(f, "{task} after {rounds} rounds, reference: {reference}")?;
        let c2st = format!(
            "0.5: cannot be told from the reference, 1: always (over {CLASSIFIER_SEEDS} classifier seeds)"
        );
        for (name, value, error, about) in [
            ("C2ST", scores.c2st, scores.c2st_error, &*c2st),
            ("MMD^2", scores.mmd2, None, "0: the same law"),
            (
                "LMD",
                scores.lmd,
                None,
                "log of the median distance of simulations to the observation",
            ),
            ("NLOG", scores.nlog, None, "-log of the posterior's density at the true parameters"),
        ] {
            let error = error.map_or(String::new(), |error| format!("± {error:.4}"));
            match value {
                Some(value) => write!(f, "\n  {name:<5}  {value:>9.4} {error:<8}   {about}")?,
                None => write!(f, "\n  {name:<5}  {:>9} {:<8}   no reference samples", "-", "")?,
            }
        }
        Ok(())
    }
}
