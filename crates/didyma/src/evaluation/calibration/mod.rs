//! Calibration: do the probabilities that posteriors state come true over simulations whose parameters are known?
//!
//! | check | sees | does not see |
//! |---|---|---|
//! | [`Ranks`] with [`Uniformity`] | marginals too narrow, too wide, biased | the prior in place of the posterior; wrong correlations |
//! | [`Coverage`] | regions of highest density too small or too large, in all dimensions at once | the prior; much of a bias |
//! | [`Tarp`] | width, correlations and biases, each with less power than the check made for it | the prior |
//! | [`LocalTest`] | faults at one observation, and where in θ | faults at observations far from all simulations |
//! | [`Surprise`] | an observation that no simulation resembles, in one summary or in all together | a wrong model that can give it all the same |
//! | [`Recalibration`] | nothing: it repairs the levels of regions | coverage at one observation |
//!
//! Of 200 rows at 5 %, posteriors of 0.8 times the right width are found with probability 0.8 by ranks, 1.0 by coverage and
//! 0.8 by TARP; moved by half a deviation in one of two parameters, with 1.0, 0.3 and 0.1; with a correlation of 0.8 that is
//! not there, with 0.05, 1.0 and 0.7 (`cargo test -p didyma --lib calibration -- --nocapture`).
//!
//! [`Calibration`] is what a run asks of its own held-out simulations, whose parameters were proposed where the posterior was:
//! [`Candidates`] says why that is right, and [`MomentTest`] looks at more than ranks do.
//!
//! All others are functions of numbers alone: pairs (θ_i, x_i) of prior and simulator, and draws or log-densities of
//! q(· | x_i). They give the same for any number of threads, and an argument that makes no sense is an error.

mod candidates;
mod check;
mod cloud;
mod conformal;
mod coverage;
mod held_out;
mod local;
mod local_map;
mod moments;
mod ranks;
mod surprise;
mod tarp;
#[cfg(test)]
mod tests;
mod uniformity;

pub use candidates::Candidates;
pub(crate) use check::DRAWS;
pub use check::{Calibration, Evidence, LocalMap, MomentCheck, RankCheck, share_outside};
pub use conformal::{ConformalLevel, ConformalLevels, Population, Recalibration};
pub use coverage::{Coverage, RegionSize, region_levels, usual_levels};
pub(crate) use held_out::{HeldOut, HeldOutRow, Law, Sets};
pub use local::{LEAST_LOCAL_ROWS, LocalFinding, LocalSettings, LocalTest};
pub use moments::{Deviation, Moment, MomentTest};
pub use ranks::{Ranks, data_averaged};
pub use surprise::Surprise;
pub use tarp::Tarp;
pub use uniformity::{Bands, LEAST_ROWS, MOST_POINTS, Uniformity};
