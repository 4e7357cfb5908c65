//! A calibration as a table, and as JSON.

use crate::error::{Error, Fault, Result};
use crate::evaluation::calibration::{
    Calibration, ConformalLevel, ConformalLevels, Evidence, Population, RankCheck,
};
use crate::run::{CALIBRATION, Findings, Verdict, p_words};
use serde::Serialize;
use std::fmt;
use std::path::PathBuf;

/// A calibration with the verdict that follows from it; its field names are the JSON keys.
#[derive(Clone, Debug, Serialize)]
pub struct CalibrationReport {
    /// The directory of the run.
    pub dir: PathBuf,
    /// The task.
    pub task: String,
    /// New simulations that are stored.
    pub new_simulations: usize,
    /// Those of them that failed.
    pub new_failures: usize,
    /// Every statistic.
    pub calibration: Calibration,
    /// The verdict.
    pub verdict: Verdict,
}

impl CalibrationReport {
    /// The calibration of a run, with the numbers of new simulations that are stored and failed. A run without one is an error.
    pub fn new(findings: &Findings, made: (usize, usize)) -> Result<Self> {
        let run = findings.run();
        let calibration = findings.calibration().clone().map_err(|why| Error::Run {
            path: run.path().to_owned(),
            file: run.file(CALIBRATION),
            fault: Fault::Uncalibrated { why },
        })?;
        Ok(Self {
            dir: run.path().to_owned(),
            task: run.manifest().task.clone(),
            new_simulations: made.0,
            new_failures: made.1,
            calibration,
            verdict: findings.verdict()?.clone(),
        })
    }

    /// The simulations that were asked.
    fn evidence(&self) -> String {
        let rows = self.calibration.rows;
        match self.calibration.evidence {
            Evidence::New => {
                let failed = match self.new_failures {
                    0 => String::new(),
                    failed => format!(" ({failed} more failed)"),
                };
                format!("{rows} new simulations{failed}")
            }
            Evidence::HeldOut(first, last) if first == last => {
                format!("{rows} held-out simulations of round {last}")
            }
            Evidence::HeldOut(first, last) => {
                format!("{rows} held-out simulations of rounds {first} to {last}")
            }
        }
    }
}

impl fmt::Display for CalibrationReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { calibration: found, verdict, task, .. } = self;
        writeln!(f, "{task}, by {}", self.evidence())?;
        writeln!(
            f,
            "strength: {:.0} of them near the observation, sets worth {:.0} draws; a shift of {:.2} sd would be seen in four of \
             five cases",
            found.near, found.effective, found.visible
        )?;
        let width = found.ranks().map(|rank| rank.name.len()).max().unwrap_or(0).max(9);
        writeln!(
            f,
            "{:<width$}  {:>8}  {:>9}  {:>6}  {:>5}",
            "places by", "p", "deviation", "shift", "width"
        )?;
        for rank in found.ranks() {
            let RankCheck { name, p_value, deviation, shift, width: wide, .. } = rank;
            let p = p_words(*p_value);
            writeln!(f, "{name:<width$}  {p:>8}  {deviation:>9.3}  {shift:>6.2}  {wide:>5.2}")?;
        }
        writeln!(f, "moments: p = {}", p_words(found.moments_p_value))?;
        for moment in found.moments.iter().take(3) {
            let place = if moment.near { "near the observation" } else { "over all" };
            let size = match moment.shift {
                true => format!(" by {:.2} sd", moment.tilt.abs()),
                false => String::new(),
            };
            writeln!(f, "  z = {:>5.1}  {}{size} ({place})", moment.z, moment.words)?;
        }
        match &found.local {
            Some(local) => writeln!(
                f,
                "local test at the observation: p = {}, a classifier is {:.3} away from a guess",
                p_words(local.p_value),
                local.statistic.sqrt()
            )?,
            None => writeln!(f, "local test at the observation: not made")?,
        }
        found.conformal.iter().try_for_each(|levels| conformal(levels, f))?;
        write!(f, "{verdict}")
    }
}

fn conformal(found: &ConformalLevels, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let over = match found.over {
        Population::Prior => "the prior",
        Population::Region => "the prior where the posterior is not negligible",
    };
    writeln!(
        f,
        "conformal levels, by {} simulations, on average over parameters of {over}:",
        found.rows
    )?;
    for ConformalLevel { coverage, level, needed } in &found.levels {
        let coverage = 100.0 * coverage;
        match level {
            Some(level) => {
                writeln!(
                    f,
                    "  {coverage:>4} % of cases lie in the region of level {:.1} %",
                    100.0 * level
                )?;
            }
            None => writeln!(
                f,
                "  {coverage:>4} %: needs {needed} simulations that succeed: give more"
            )?,
        }
    }
    Ok(())
}
