//! Expected coverage: how often regions of highest density have the true parameters inside.

use super::ranks::Ranks;
use super::uniformity::{Bands, Uniformity, check_levels};
use crate::error::Result;
use crate::math::binomial::BinomialTails;
use serde::Serialize;

/// Probability with which bands and intervals hold, if the posteriors are right.
const CONFIDENCE: f64 = 0.95;

/// Sizes of regions beside what they should be, by [`Coverage::size`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum RegionSize {
    /// The curve is where that of right posteriors is in 95 of 100 cases.
    Unremarkable,
    /// Regions have the truth inside too rarely: posteriors are too narrow, or in the wrong place.
    TooNarrow,
    /// Regions have the truth inside too often: posteriors are too wide.
    TooWide,
}

impl RegionSize {
    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Unremarkable => "unremarkable",
            Self::TooNarrow => "too narrow",
            Self::TooWide => "too wide",
        }
    }
}

/// Empirical coverage of regions of highest density (Hermans et al. 2022).
///
/// h_i = P(log q(θ | x_i) > log q(θ_i | x_i)) for θ ~ q(· | x_i) is the level of the smallest such region that has θ_i
/// inside. The empirical coverage of level c is the share of h_i ≤ c; it is c for right posteriors, since h_i is then
/// uniform. The coverage of a posterior that is its prior is right as well: coverage does not say how much was learnt.
///
/// ```
/// use didyma::calibration::{Coverage, RegionSize};
/// // Regions of level h have the truth inside as if they were of level √h: truths are too far out.
/// let levels: Vec<f64> = (0..200).map(|i| ((f64::from(i) + 0.5) / 200.0).sqrt()).collect();
/// let coverage = Coverage::of(&levels, &[0.5, 0.9])?;
/// assert_eq!(coverage.size(), RegionSize::TooNarrow);
/// assert!((coverage.covered[0] - 0.25).abs() < 0.01 && coverage.signed_area < -0.15);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Coverage {
    /// The levels asked for.
    pub levels: Vec<f64>,
    /// Share of the rows whose region of each level has the truth inside.
    pub covered: Vec<f64>,
    /// Smallest and largest share that a right posterior has at each level in 95 of 100 cases, for one level alone.
    pub pointwise: Vec<(f64, f64)>,
    /// Shares that a right posterior has at all of the levels at once, in 95 of 100 cases.
    pub bands: Bands,
    /// ∫₀¹ (coverage(c) − c) dc = ½ − mean of h: below 0 too narrow, above 0 too wide; −½ and ½ are the ends.
    pub signed_area: f64,
    /// The test of h against the uniform law, over all levels.
    pub uniformity: Uniformity,
}

impl Coverage {
    /// From h, the levels at which the truths enter: [`region_levels`] gives them. `levels` are those of the curve,
    /// which rise between 0 and 1.
    pub fn of(region_levels: &[f64], levels: &[f64]) -> Result<Self> {
        check_levels(levels)?;
        let uniformity = Uniformity::of(region_levels)?;
        let rows = region_levels.len();
        let share = |count: usize| count as f64 / rows as f64;
        let covered =
            |level: f64| share(region_levels.iter().filter(|&&entry| entry <= level).count());
        let pointwise = |level: f64| {
            let range = BinomialTails::new(rows, level).range_above(0.5 * (1.0 - CONFIDENCE));
            range.map_or((0.0, 1.0), |(low, high)| (share(low), share(high)))
        };
        Ok(Self {
            levels: levels.to_vec(),
            covered: levels.iter().map(|&level| covered(level)).collect(),
            pointwise: levels.iter().map(|&level| pointwise(level)).collect(),
            bands: Bands::at(rows, levels, CONFIDENCE)?,
            signed_area: 0.5 - uniformity.mean,
            uniformity,
        })
    }

    /// On the side of the diagonal where most of the curve lies, if the test of h finds anything at 5 %.
    pub fn size(&self) -> RegionSize {
        if self.uniformity.p_value > 1.0 - CONFIDENCE {
            RegionSize::Unremarkable
        } else if self.signed_area < 0.0 {
            RegionSize::TooNarrow
        } else {
            RegionSize::TooWide
        }
    }
}

/// Levels of the smallest regions of highest density that have the truths inside: 1 minus the randomised ranks of log q.
pub fn region_levels(log_density_ranks: &Ranks) -> Vec<f64> {
    log_density_ranks.values(0).iter().map(|rank| 1.0 - rank).collect()
}

/// 0.05, 0.1, …, 0.95.
pub fn usual_levels() -> Vec<f64> {
    (1..20).map(|i| f64::from(i) / 20.0).collect()
}
