//! Calibration: do the probabilities that posteriors state come true over simulations whose parameters are known?
//!
//! | check | sees | does not see |
//! |---|---|---|
//! | [`Ranks`] with [`Uniformity`] | marginals too narrow, too wide, biased | a posterior that is the prior; wrong correlations |
//! | [`Coverage`] | regions of highest density that are too small or too large | a posterior that is the prior; errors that cancel over x |
//! | [`Tarp`] | errors in any direction, correlations too | a posterior that is the prior |
//! | [`LocalTest`] | errors at one observation, and where in θ | observations far from all simulations |
//! | [`Surprise`] | an observation that no simulation resembles, in one summary or in all together | a wrong model that can give it all the same |
//! | [`Recalibration`] | nothing: it repairs the levels of regions | errors at one observation |
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
mod uniformity;

pub use candidates::Candidates;
pub(crate) use check::DRAWS;
pub use check::{Calibration, Evidence, LocalMap, MomentCheck, RankCheck};
pub use conformal::{ConformalLevel, ConformalLevels, Population, Recalibration};
pub use coverage::{Coverage, Verdict, region_levels, usual_levels};
pub(crate) use held_out::{HeldOut, HeldOutRow, Law, Sets};
pub use local::{LEAST_LOCAL_ROWS, LocalFinding, LocalSettings, LocalTest};
pub use moments::{Deviation, Moment, MomentTest};
pub use ranks::{Ranks, data_averaged};
pub use surprise::Surprise;
pub use tarp::Tarp;
pub use uniformity::{Bands, LEAST_ROWS, MOST_POINTS, Uniformity};
