//! The calibration of a run: by its own held-out simulations without being asked, by new ones and in more ways where that is asked for.

mod calibrator;
mod held_out;
mod proposals;
mod rows;

pub use calibrator::{CalibrationRequest, Calibrator};
pub use proposals::Spread;
pub(in crate::run) use rows::NewRows;

use super::{CALIBRATION, RunDir};
use crate::error::Result;
use crate::evaluation::calibration::{Calibration, ConformalLevels, DRAWS, LocalMap};
use crate::inference::SimulatedRow;
use crate::inference::posterior::Posterior;
use crate::rng::Streams;
use crate::storage::files::read_inside;
use held_out::Known;
use serde::{Deserialize, Serialize};

/// A calibration, or the reason why there is none.
pub type Checked = std::result::Result<Calibration, String>;

/// A calibration as a file holds it, with the run that it is of.
#[derive(Serialize, Deserialize)]
struct Stored {
    run: String,
    round: u32,
    #[serde(flatten)]
    outcome: Outcome,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Outcome {
    Calibration(Box<Calibration>),
    NotChecked(String),
}

/// Parts of a calibration that take their time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Parts {
    local: bool,
    conformal: bool,
}

/// Simulations that were made for a calibration, of one law.
struct NewSimulations {
    spread: Spread,
    rows: Vec<SimulatedRow>,
}

impl NewSimulations {
    /// How many of them succeeded.
    fn successes(&self) -> usize {
        self.rows.iter().filter(|row| row.x.is_ok()).count()
    }
}

impl RunDir {
    /// Calibrates the posterior of the last finished round; the reason if that cannot be done. A function of the stored rows
    /// and models alone.
    pub fn calibrate(&self, posterior: &Posterior, threads: usize) -> Checked {
        self.calibration_of(posterior, (None, Parts::default()), threads)
    }

    /// The same by these simulations, if they are new ones, and with these parts.
    fn calibration_of(
        &self,
        posterior: &Posterior,
        (new, parts): (Option<&NewSimulations>, Parts),
        threads: usize,
    ) -> Checked {
        let reports = self.reports().map_err(|error| error.to_string())?;
        let last = reports.last().ok_or("no round is finished")?;
        if new.is_none() && reports.iter().any(|report| report.drawn_elsewhere) {
            return Err("parameters were drawn elsewhere, by a law that is not known".to_owned());
        }
        if posterior.model().flow().is_none() {
            return Err("a score network has no quick densities at many summaries".to_owned());
        }
        let known = Known { run: self, posterior, reports: &reports, last, threads };
        let streams = Streams::new(self.manifest().config.seed);
        let found = known.asked(new, |held_out, evidence, outside| {
            let sets = held_out.sets(DRAWS, &streams, threads)?;
            let mut found = Calibration::of(held_out, &sets, evidence, &streams, threads)?;
            found.outside = outside;
            if parts.local {
                found.local = LocalMap::of(held_out, &sets, &streams, threads)?;
            }
            if parts.conformal {
                found.conformal = Some(ConformalLevels::of(held_out, &streams, threads)?);
            }
            Ok(found)
        });
        found.map_err(|error| error.to_string())
    }

    /// Writes it down beside the run.
    pub(super) fn save_calibration(&self, round: u32, checked: &Checked) -> Result<()> {
        let outcome = match checked.clone() {
            Ok(calibration) => Outcome::Calibration(Box::new(calibration)),
            Err(why) => Outcome::NotChecked(why),
        };
        let stored = Stored { run: self.identity(), round, outcome };
        let json = serde_json::to_string(&stored).expect("numbers and strings");
        self.write(CALIBRATION, json.as_bytes())
    }

    /// What was written down of this round, if anything was.
    pub fn calibration(&self, round: u32) -> Option<Checked> {
        let bytes = read_inside(&self.file(CALIBRATION)).ok()?;
        let stored: Stored = serde_json::from_slice(&bytes).ok()?;
        (stored.run == self.identity() && stored.round == round).then_some(match stored.outcome {
            Outcome::Calibration(calibration) => Ok(*calibration),
            Outcome::NotChecked(why) => Err(why),
        })
    }
}
