//! The verdict on a posterior: trust, check or do not trust, with the reason of every check in a line.

mod calibration;
mod checks;
mod training;

pub(crate) use calibration::p_words;
pub(crate) use training::still_falling;

use super::{Checked, Findings};
use crate::error::Result;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The verdict in a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Word {
    /// Everything that could be checked speaks for the posterior, and its calibration was checked.
    #[serde(rename = "trust")]
    Trust,
    /// Something is doubtful, or what matters most could not be checked.
    #[serde(rename = "check")]
    Check,
    /// Something is wrong.
    #[serde(rename = "do not trust")]
    DoNotTrust,
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Trust => "trust",
            Self::Check => "check",
            Self::DoNotTrust => "do not trust",
        })
    }
}

/// The outcome of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// Nothing was found.
    Good,
    /// It was not looked at, which says nothing.
    NotChecked,
    /// Something is doubtful.
    Doubtful,
    /// Something is wrong.
    Bad,
}

impl Outcome {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::NotChecked => "not checked",
            Self::Doubtful => "doubtful",
            Self::Bad => "bad",
        }
    }
}

/// One thing that was looked at, or was not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Its name, as `calibration`.
    pub name: String,
    /// How it came out.
    pub outcome: Outcome,
    /// In a line.
    pub words: String,
    /// The remedy; empty where nothing is to be done.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub next: String,
}

impl Check {
    pub(crate) fn new(name: &str, outcome: Outcome, words: impl Into<String>, next: &str) -> Self {
        Self { name: name.to_owned(), outcome, words: words.into(), next: next.to_owned() }
    }

    pub(crate) fn good(name: &str, words: impl Into<String>) -> Self {
        Self::new(name, Outcome::Good, words, "")
    }
}

/// The verdict on a posterior.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In a word.
    pub word: Word,
    /// Why it is this word, the weightiest reason first.
    pub reasons: Vec<String>,
    /// Everything that was looked at, and what was not.
    pub checks: Vec<Check>,
    /// What to do next, if anything.
    pub next: Vec<String>,
}

impl Verdict {
    /// The verdict on what a run found so far.
    pub(super) fn of(findings: &Findings, calibration: &Checked) -> Result<Self> {
        Ok(Self::new(checks::all(findings, calibration)?))
    }

    /// The verdict of a calibration alone.
    pub fn of_calibration(calibrated: &Checked) -> Self {
        Self::new(calibration::checks(calibrated))
    }

    /// The verdict with one more check.
    #[must_use]
    pub fn with(&self, check: Check) -> Self {
        Self::new(self.checks.iter().cloned().chain([check]).collect())
    }

    /// The worst outcome decides. Without a calibration there is no trust.
    fn new(checks: Vec<Check>) -> Self {
        let worst = checks.iter().map(|check| check.outcome).max().unwrap_or(Outcome::NotChecked);
        let calibrated = |check: &Check| check.name == calibration::CALIBRATION;
        let calibrated = checks.iter().any(|c| calibrated(c) && c.outcome == Outcome::Good);
        let word = match worst {
            Outcome::Bad => Word::DoNotTrust,
            Outcome::Doubtful => Word::Check,
            Outcome::Good | Outcome::NotChecked if calibrated => Word::Trust,
            Outcome::Good | Outcome::NotChecked => Word::Check,
        };
        let of = |outcome| checks.iter().filter(move |check: &&Check| check.outcome == outcome);
        let deciding: Vec<&Check> = match word {
            Word::Trust => of(Outcome::Good).collect(),
            Word::Check if worst < Outcome::Doubtful => of(Outcome::NotChecked).collect(),
            _ => of(Outcome::Bad).chain(of(Outcome::Doubtful)).collect(),
        };
        let reasons = deciding.iter().map(|check| check.words.clone()).collect();
        // What could not be checked needs a remedy, too.
        let open = of(Outcome::NotChecked).filter(|check| check.name == calibration::CALIBRATION);
        let open = open.filter(|_| worst >= Outcome::Doubtful);
        let all: Vec<&Check> = deciding.iter().copied().chain(open).collect();
        let next = remedies(all.iter().map(|check| check.next.as_str()));
        Self { word, reasons, checks, next }
    }
}

/// Each remedy once; one that another begins with is part of that.
fn remedies<'a>(all: impl Iterator<Item = &'a str> + Clone) -> Vec<String> {
    let longer = |short: &str| all.clone().any(|other| other != short && other.starts_with(short));
    let mut found: Vec<String> = Vec::new();
    for next in all.clone().filter(|next| !next.is_empty() && !longer(next)) {
        if !found.iter().any(|known| known == next) {
            found.push(next.to_owned());
        }
    }
    found
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "verdict: {}", self.word)?;
        let mut checks: Vec<&Check> = self.checks.iter().collect();
        checks.sort_by_key(|check| std::cmp::Reverse(check.outcome));
        for Check { name, outcome, words, .. } in checks {
            write!(f, "\n  {:<11}  {name}: {words}", outcome.name())?;
        }
        self.next.iter().try_for_each(|next| write!(f, "\n  next: {next}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remedy_is_said_once() {
        let all = ["simulate more", "", "repair it", "simulate more, or wait", "repair it"];
        assert_eq!(remedies(all.into_iter()), ["repair it", "simulate more, or wait"]);
    }

    fn verdict(outcomes: &[(&str, Outcome)]) -> Verdict {
        let check =
            |(name, outcome): &(&str, Outcome)| Check::new(name, *outcome, *name, "simulate more");
        Verdict::new(outcomes.iter().map(check).collect())
    }

    #[test]
    fn the_worst_check_decides_and_nothing_is_trusted_without_calibration() {
        use Outcome::{Bad, Doubtful, Good, NotChecked};
        let calibration = calibration::CALIBRATION;
        let found =
            verdict(&[(calibration, Good), ("observation", Good), ("failures", NotChecked)]);
        assert_eq!((found.word, found.reasons.len()), (Word::Trust, 2));
        let found = verdict(&[(calibration, NotChecked), ("observation", Good)]);
        assert_eq!((found.word, &*found.reasons), (Word::Check, &[calibration.to_owned()][..]));
        let found = verdict(&[(calibration, Good), ("members", Doubtful), ("failures", Doubtful)]);
        assert_eq!((found.word, found.reasons.len(), found.next.len()), (Word::Check, 2, 1));
        let more = found.with(Check::new("more", Bad, "more", ""));
        assert_eq!((more.word, more.checks.len(), found.checks.len()), (Word::DoNotTrust, 4, 3));
        let found = verdict(&[(calibration, Doubtful), ("members", Bad)]);
        assert_eq!((found.word, &*found.reasons[0]), (Word::DoNotTrust, "members"));
        let told = found.to_string();
        assert!(told.find("members") < told.find("calibration"), "the worst first: {told}");
        let json = serde_json::to_value(&found).unwrap();
        assert_eq!(json["word"], "do not trust");
        assert!(json["reasons"].is_array());
    }
}
