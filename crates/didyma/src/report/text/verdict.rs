//! The verdict of a page: that of the run, with simulations at the posterior among its checks.

use super::commands::predicting;
use super::words::SURPRISING;
use crate::report::data::{RunData, checks, joint_check};
use crate::run::{Check, Outcome, Verdict, still_falling};

/// The name of the check that only a page makes.
const PREDICTIVE: &str = "simulations at the posterior";
/// What to do if they are unlike the observation.
const NEXT: &str = "look at the simulator and the summaries, then simulate more";

/// The verdict on a run, with simulations at its posterior, and a loss that still fell, as more checks.
pub fn verdict(run: &RunData) -> Verdict {
    let round = run.summary.rounds.len() as u32;
    let more = still_falling(&run.training, round).into_iter().chain(predictive(run));
    more.fold(run.verdict.clone(), |verdict, check| verdict.with(check))
}

/// Do simulations at the posterior reproduce the observation? None before there is a posterior.
fn predictive(run: &RunData) -> Option<Check> {
    run.samples.as_ref()?;
    if checks(run).is_empty() {
        let next = format!("ask for them: {}", predicting(run));
        return Some(Check::new(PREDICTIVE, Outcome::NotChecked, "none were made", &next));
    }
    let missed = missed(run).or_else(|| missed_together(run));
    Some(match missed {
        Some(words) => Check::new(PREDICTIVE, Outcome::Doubtful, words, NEXT),
        None => Check::good(PREDICTIVE, reproduced(run)),
    })
}

/// Summaries that are not reproduced, one by one.
fn missed(run: &RunData) -> Option<String> {
    let checks = checks(run);
    let rare = SURPRISING / checks.len().max(1) as f64;
    let missed: Vec<String> =
        checks.into_iter().filter(|check| check.tail < rare).map(|check| check.name).collect();
    (!missed.is_empty()).then(|| {
        format!(
            "they do not reproduce the observed {}: the model may be wrong there, or the posterior not yet good",
            missed.join(", ")
        )
    })
}

/// Summaries that are fine one by one, and not together.
fn missed_together(run: &RunData) -> Option<String> {
    let found = joint_check(run).filter(|found| found.p_value < SURPRISING)?;
    let names: Vec<String> = run.observation.iter().map(|(name, _)| name.clone()).collect();
    Some(format!(
        "they do not reproduce the observed summaries together (p = {:.3}), above all {}: the model may be wrong there, or \
         the posterior not yet good",
        found.p_value,
        found.names(&names).join(", ")
    ))
}

fn reproduced(run: &RunData) -> String {
    let summaries = match checks(run).len() {
        1 => "the observed summary".to_owned(),
        count => format!("all {count} observed summaries"),
    };
    match joint_check(run).filter(|_| run.observation.len() > 1) {
        Some(found) => {
            format!("they reproduce {summaries}, each and together (p = {:.2})", found.p_value)
        }
        None => format!("they reproduce {summaries}"),
    }
}
