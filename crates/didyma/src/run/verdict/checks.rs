//! The checks behind a verdict, each from what the run already knows.

use super::calibration::{self, RARE};
use super::{Check, Outcome, training};
use crate::error::Result;
use crate::evaluation::calibration::Surprise;
use crate::inference::failures::{Correction, ValidityReport};
use crate::inference::{RoundReport, sound};
use crate::math::mean_and_deviation;
use crate::rows::Rows;
use crate::run::summary::{APART, VISIBLE};
use crate::run::{Checked, Findings, Summary};

/// How far apart members are from which a run is bad; from [`APART`] on it is doubtful (docs/choices.md).
const FAR_APART: f64 = 0.3;
/// Shares of q outside of the prior.
const LEAKED: f64 = 0.05;
const MOSTLY_LEAKED: f64 = 0.5;
/// C2ST from which a posterior is far from the reference; from [`VISIBLE`] on it is visibly not the reference.
const PLAIN: f64 = 0.8;
/// The standard deviation over half the width of the central 68 %, from which a few draws make it.
const HEAVY: f64 = 1.3;

/// Views of a joint test: the smallest p-value that one of them alone can give is this share of one row.
const VIEWS: f64 = 3.0;

/// All checks of what a run found.
pub(super) fn all(findings: &Findings, calibrated: &Checked) -> Result<Vec<Check>> {
    let summary = findings.results();
    let mut checks = Vec::new();
    if !summary.finished {
        let (done, all) = (summary.rounds.len(), summary.config.rounds);
        let words = format!("{done} of {all} rounds are done");
        checks.push(Check::new("run", Outcome::Doubtful, words, "resume the run"));
    }
    let Some(last) = summary.rounds.last() else { return Ok(checks) };
    checks.extend(calibration::checks(calibrated));
    checks.extend(observation(findings)?);
    checks.extend(members(last));
    checks.extend(training::checks(findings));
    checks.extend(leakage(last));
    checks.extend(failures(summary, last));
    checks.extend(tails(findings)?);
    checks.extend(reference(last));
    Ok(checks)
}

/// x_o among the simulations of the last round: each summary, and all of them together. Of rounds that drew from the prior the
/// p-value is exact; proposals are around x_o, which then lies nearer to the middle than they do: the check is a mild one.
fn observation(findings: &Findings) -> Result<Vec<Check>> {
    let name = "observation";
    let next = "look at the simulator, the prior and the units of the observation";
    let (Some(posterior), Some(last)) = (findings.posterior(), findings.results().rounds.last())
    else {
        return Ok(Vec::new());
    };
    let manifest = findings.run().manifest();
    let names: Vec<String> =
        (0..posterior.observation().len()).map(|i| manifest.summary_name(i)).collect();
    let ranges = posterior.ranges.as_ref();
    if let Some(words) = ranges.and_then(|ranges| ranges.far(posterior.observation(), &names)) {
        return Ok(vec![Check::new(name, Outcome::Bad, words, next)]);
    }
    let rows = findings.run().rows()?;
    let of_round = rows.iter().filter(|row| row.round == last.round);
    let x: Vec<&Vec<f64>> = of_round.filter_map(|row| row.x.as_ref().ok()).collect();
    let x = x.into_iter().flatten().copied().collect::<Vec<f64>>();
    let (own, threads) = (posterior.observation(), findings.threads());
    let Ok(found) = Surprise::of(own, Rows::new("x", &x, own.len())?, threads) else {
        let why = "too few simulations succeeded to compare it with";
        return Ok(vec![Check::new(name, Outcome::NotChecked, why, "")]);
    };
    let p = found.p_value;
    let check = if p < RARE {
        let odd: Vec<&str> = found.foremost.iter().take(3).map(|&i| &*names[i]).collect();
        let words = format!(
            "it is unlike the {} simulations of the last round (p = {p:.3}), above all in {}: the model may not be able to \
             give it",
            found.rows,
            odd.join(", ")
        );
        Check::new(name, Outcome::Doubtful, words, next)
    } else if VIEWS / (found.rows + 1) as f64 > RARE {
        let words =
            format!("{} simulations are too few to tell whether it is like them", found.rows);
        Check::new(name, Outcome::NotChecked, words, "simulate more a round")
    } else {
        let like = if p < 0.05 { "not plainly unlike" } else { "like" };
        let words =
            format!("it is {like} the {} simulations of the last round (p = {p:.2})", found.rows);
        Check::good(name, words)
    };
    Ok(vec![check])
}

/// Members of an ensemble that are apart, or were left out.
fn members(last: &RoundReport) -> Vec<Check> {
    let name = "members";
    let mut checks = Vec::new();
    let kept = sound(&last.members, |member| Some(member.stop_reason));
    let gone = kept.iter().filter(|kept| kept.is_none()).count();
    if gone > 0 {
        let words = format!("{gone} of {} diverged and were left out", kept.len());
        checks.push(Check::new(name, Outcome::Doubtful, words, "lower train.rate"));
    }
    let Some(apart) = last.disagreement else { return checks };
    let outcome = match apart {
        apart if apart > FAR_APART => Outcome::Bad,
        apart if apart > APART => Outcome::Doubtful,
        _ => Outcome::Good,
    };
    let (words, next) = match outcome {
        Outcome::Good => (format!("they are {apart:.3} apart, less than {APART}"), ""),
        _ => (
            format!(
                "they are {apart:.3} apart at the observation, more than {APART} (1 is no overlap)"
            ),
            "simulate more, or compare other seeds",
        ),
    };
    checks.push(Check::new(name, outcome, words, next));
    checks
}

/// Mass of q outside of the prior.
fn leakage(last: &RoundReport) -> Option<Check> {
    let outside = last.outside_prior;
    let outcome = match outside {
        outside if outside > MOSTLY_LEAKED => Outcome::Bad,
        outside if outside > LEAKED => Outcome::Doubtful,
        _ => return None,
    };
    let words =
        format!("{:.0} % of the flow lies outside of the prior and is cut off", 100.0 * outside);
    Some(Check::new("leakage", outcome, words, "take unbounded coordinates"))
}

/// Simulations that failed.
fn failures(summary: &Summary, last: &RoundReport) -> Option<Check> {
    let (failed, all) = summary
        .rounds
        .iter()
        .fold((0, 0), |(failed, all), r| (failed + r.failures, all + r.simulations));
    if failed == 0 {
        return Some(Check::good("failures", format!("none of {all} simulations failed")));
    }
    let validity = last.validity.as_ref();
    let share = 100.0 * failed as f64 / all as f64;
    let words = format!("{failed} of {all} simulations failed ({share:.1} %)");
    let beyond = |v: &ValidityReport| v.beyond.is_some_and(|beyond| beyond > 0.02);
    let mended = |v: &ValidityReport| !v.depends || v.corrected != Correction::None;
    let (outcome, words) = match validity {
        Some(v) if beyond(v) => (
            Outcome::Doubtful,
            format!("{words}, and nearly all where a part of the posterior lies"),
        ),
        Some(v) if v.depends => (
            Outcome::Doubtful,
            format!(
                "{words}, more often for some parameters than for others{}",
                if mended(v) { ": the posterior is corrected for it" } else { "" }
            ),
        ),
        _ if share > 20.0 => (Outcome::Doubtful, words),
        _ => (Outcome::Good, format!("{words}, with no sign that it depends on the parameters")),
    };
    let next = if outcome == Outcome::Good { "" } else { "repair the simulator where it fails" };
    Some(Check::new("failures", outcome, words, next))
}

/// Parameters whose standard deviation a few draws make.
fn tails(findings: &Findings) -> Result<Option<Check>> {
    let Some(posterior) = findings.posterior() else { return Ok(None) };
    // A posterior that cannot be drawn from is told of by its leakage.
    let Ok(Some(samples)) = findings.samples() else { return Ok(None) };
    let dim = posterior.dim();
    let heavy = |i: usize| -> Option<String> {
        let mut column: Vec<f64> = samples.iter().skip(i).step_by(dim).copied().collect();
        column.sort_unstable_by(f64::total_cmp);
        let at = |share: f64| column[(share * (column.len() - 1) as f64) as usize];
        let (central, (_, deviation)) = (0.5 * (at(0.84) - at(0.16)), mean_and_deviation(&column));
        // Beyond the outer tenths a law of several modes has no more than a normal one.
        let inner = 0.5 * (at(0.9) - at(0.1)) / 1.2816;
        (deviation > HEAVY * central.max(inner))
            .then(|| posterior.prior().parameters()[i].name.clone())
    };
    let names: Vec<String> = (0..dim).filter_map(heavy).collect();
    if names.is_empty() {
        return Ok(None);
    }
    let words = format!(
        "a few far draws make the standard deviation of {}: it is over {HEAVY} times what the central 68 % say",
        names.join(", ")
    );
    Ok(Some(Check::new("tails", Outcome::Doubtful, words, "read quantiles, or simulate more")))
}

/// The truth, where a task knows it.
fn reference(last: &RoundReport) -> Option<Check> {
    let c2st = last.scores.c2st?;
    let words = last.scores.c2st_words(3).unwrap_or_default();
    let (outcome, words) = match c2st {
        c2st if c2st > PLAIN => {
            (Outcome::Bad, format!("a classifier tells it apart (C2ST {words})"))
        }
        c2st if c2st > VISIBLE => {
            (Outcome::Doubtful, format!("a classifier tells it apart (C2ST {words})"))
        }
        _ => (Outcome::Good, format!("a classifier hardly tells it apart (C2ST {words})")),
    };
    let next = if outcome == Outcome::Good { "" } else { "simulate more" };
    Some(Check::new("reference", outcome, words, next))
}
