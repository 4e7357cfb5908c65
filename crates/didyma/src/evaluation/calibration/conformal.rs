//! Conformal recalibration: nominal levels whose regions have the coverage that was asked for.

use super::uniformity::check_unit;
use super::{HeldOut, Law};
use crate::error::{Error, Result};
use crate::rng::{Purpose, Streams};
use serde::{Deserialize, Serialize};

/// Shares of a row that are rounding: 0.95 · 20 is 19 rows, whatever the last digit says.
const ROUNDING: f64 = 1e-9;

/// Levels of regions, recalibrated by simulations whose parameters are known (split conformal prediction).
///
/// A region of nominal level c need not have the truth inside with probability c. If h_1, …, h_n are the levels at which
/// n truths entered, and one more pair (θ, x) is exchangeable with those, then the region whose nominal level is the
/// k-th smallest of them, k = ⌈(n + 1)(1 − α)⌉, has θ inside with probability at least 1 − α, and at most
/// 1 − α + 1/(n + 1), however wrong the posteriors are (Vovk, Gammerman and Shafer 2005; Lei et al. 2018). The
/// probability is over pairs (θ, x): it is not a promise for one observation.
///
/// ```
/// use didyma::calibration::Recalibration;
/// let entries: Vec<f64> = (0..99).map(|i| ((f64::from(i) + 0.5) / 99.0).sqrt()).collect();
/// let level = Recalibration::of(&entries)?.level(0.9)?;
/// assert_eq!(level, entries[89]); // the region of level 0.95 covers 90 %
/// assert!(Recalibration::of(&entries)?.level(0.995).is_err()); // needs 199 rows
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Recalibration {
    sorted: Vec<f64>,
}

impl Recalibration {
    /// From the levels of the smallest regions that had the truths inside, as
    /// [`region_levels`](super::region_levels) gives them.
    pub fn of(region_levels: &[f64]) -> Result<Self> {
        check_unit(region_levels)?;
        let mut sorted = region_levels.to_vec();
        sorted.sort_unstable_by(f64::total_cmp);
        Ok(Self { sorted })
    }

    /// The nominal level whose region has this coverage.
    pub fn level(&self, coverage: f64) -> Result<f64> {
        let needed = Self::rows_needed(coverage)?;
        let rows = self.sorted.len();
        if rows < needed {
            let expected = format!(
                "at most {:.6} for {rows} rows: simulate at least {needed} rows for it",
                rows as f64 / (rows + 1) as f64
            );
            return Err(Error::setting("coverage", coverage, expected));
        }
        let place = ((rows + 1) as f64 * coverage - ROUNDING).ceil() as usize;
        Ok(self.sorted[place.max(1) - 1])
    }

    /// Rows that a coverage of 1 − α needs: ⌈1/α⌉ − 1.
    pub fn rows_needed(coverage: f64) -> Result<usize> {
        if !(coverage > 0.0 && coverage < 1.0) {
            return Err(Error::setting("coverage", coverage, "between 0 and 1, not on an end"));
        }
        Ok((coverage / (1.0 - coverage) - ROUNDING).ceil() as usize)
    }

    /// Coverage that the region of a nominal level is sure to have, over pairs: the inverse of [`level`](Self::level).
    pub fn coverage(&self, level: f64) -> f64 {
        let entered = self.sorted.partition_point(|&entry| entry <= level);
        entered as f64 / (self.sorted.len() + 1) as f64
    }
}

/// Coverages that levels are given for.
const COVERAGES: [f64; 5] = [0.5, 0.8, 0.9, 0.95, 0.99];
/// Draws of q for each simulation: its level has a standard error of at most 1.6 %, around 99 % of 0.3 %.
const DRAWS: usize = 1000;

/// Pairs that a coverage holds over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Population {
    /// Parameters of the prior, and simulations at them.
    Prior,
    /// Parameters of the prior where q(· | x_o) is not negligible, and simulations at them.
    Region,
}

/// The level to ask for, if regions are to have a coverage.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConformalLevel {
    /// The coverage that is wanted.
    pub coverage: f64,
    /// The nominal level whose regions have it; none where too few simulations are there to say it.
    pub level: Option<f64>,
    /// Simulations that it needs.
    pub needed: usize,
}

/// Levels of regions of highest density by which they have the coverage that they state.
///
/// Let h(θ, x) be the share of q(· | x) that is denser than θ. It is a score of pairs like any other: if θ_1, …, θ_n are
/// independent draws of a law p̃ with simulations x_i, and q has seen none of them, one more such pair is exchangeable with
/// these, and the k-th smallest h_i is the nominal level whose region has θ inside as often as [`Recalibration`] says,
/// however wrong q is. So the promise is about **parameters of the law p̃**, on average over them and their simulations.
///
/// Regions of the posterior under the prior p are meant, so that p̃ has to be p, or p on a region (h is then a share of q on
/// that region). Where p̃ is a posterior, the promise would be about the posterior that p̃ as a prior has, which is narrower
/// than the one that is asked for: levels for it repair too little. Weights p / p̃ (Tibshirani et al. 2019) would lead back,
/// but the new pair's own weight depends on its unknown θ and has no bound, as p̃ has lighter tails than the posterior at other
/// x: nothing would be guaranteed. So new simulations for these levels are proposed evenly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConformalLevels {
    /// Pairs that the coverage holds over, one more of them with these simulations.
    pub over: Population,
    /// Simulations that were asked.
    pub rows: usize,
    /// One for each coverage.
    pub levels: Vec<ConformalLevel>,
}

impl ConformalLevels {
    /// Asks rows of one law, of which training saw none. A law with other weights than 0 and 1 is an error.
    pub(crate) fn of(held_out: &HeldOut, streams: &Streams, threads: usize) -> Result<Self> {
        let over = match held_out.rows.first().map(|row| &held_out.laws[row.law]) {
            Some(Law::Prior) => Population::Prior,
            Some(Law::Region { .. }) => Population::Region,
            _ => {
                let why = "the prior, or the prior on a region, for conformal levels";
                return Err(Error::setting("proposal", "posterior", why));
            }
        };
        if held_out.success.is_some() {
            let why = "independent of the parameters for conformal levels: repair the simulator where it fails";
            return Err(Error::setting("failures", "dependent", why));
        }
        let candidates = held_out.sets(DRAWS, streams, threads)?.candidates;
        let mut rng = streams.stream(Purpose::HeldOutPlaces, 1, 0);
        let places = candidates.places(held_out.posterior.dim(), &mut rng);
        let entries: Vec<f64> = places.iter().map(|place| 1.0 - place).collect();
        let recalibration = Recalibration::of(&entries)?;
        let level = |coverage: f64| {
            let needed = Recalibration::rows_needed(coverage)?;
            Ok(ConformalLevel { coverage, level: recalibration.level(coverage).ok(), needed })
        };
        let levels = COVERAGES.into_iter().map(level).collect::<Result<_>>()?;
        Ok(Self { over, rows: entries.len(), levels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand::RngExt;

    #[test]
    fn too_few_rows_say_how_many_are_needed() -> Result<()> {
        let values: Vec<f64> = (0..20).map(|i| f64::from(i) / 20.0).collect();
        let found = Recalibration::of(&values)?;
        assert_eq!((Recalibration::rows_needed(0.95)?, Recalibration::rows_needed(0.9)?), (19, 9));
        assert_eq!(found.level(0.95)?, values[19]); // ⌈21 · .95⌉ = 20
        let error = found.level(0.99).unwrap_err().to_string();
        assert!(error.contains("simulate at least 99 rows"), "{error}");
        assert!(found.level(1.0).is_err());
        Ok(())
    }

    /// Posteriors that are far too narrow: a truth enters at u^(1/4).
    #[test]
    fn recalibrated_regions_cover_what_was_asked_for() -> Result<()> {
        const TRIALS: usize = 20_000;
        let (rows, coverage) = (39, 0.9);
        let mut covered = 0;
        for trial in 0..TRIALS {
            let mut rng = Streams::new(2).stream(Purpose::Synthetic, 0, trial as u64);
            let mut entry = || rng.random::<f64>().sqrt().sqrt();
            let entries: Vec<f64> = (0..rows).map(|_| entry()).collect();
            covered += usize::from(entry() <= Recalibration::of(&entries)?.level(coverage)?);
        }
        // Of 40 exchangeable entries, the last is among the 36 smallest with probability 36/40 exactly. Four standard
        // errors of 20,000 trials: 4 √(.09 / 20000).
        let share = covered as f64 / TRIALS as f64;
        assert!((share - coverage).abs() < 0.0085, "{share}");
        Ok(())
    }
}
