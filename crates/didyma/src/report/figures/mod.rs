//! Figures by name.

mod coverage;
mod key;
mod levels;
mod local;
mod metrics;
mod pairs;
mod places;
mod predictive;
mod ranks;
mod rounds;
mod time;
mod training;

use crate::error::{Advice, Error, Remedy, Result};
use crate::report::data::Comparison;
use didyma_plot::Place;
pub use levels::level_plot;

/// The kinds of figures, in the order of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Parameters in pairs.
    Pairs,
    /// Scores by round.
    Metrics,
    /// Losses by epoch.
    Training,
    /// Places of true parameters in the posterior, parameter by parameter.
    Ranks,
    /// How often regions of the posterior have the true parameters inside.
    Coverage,
    /// Where the posterior is too high or too low at the observation.
    Local,
    /// Parameters simulated, by round.
    Simulations,
    /// Simulations at the posterior against the observation.
    Predictive,
    /// Moments of the levels.
    Levels,
    /// Where the time went.
    Time,
}

/// A figure, ready to be shown.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Its kind.
    pub kind: Kind,
    /// What it shows.
    pub title: String,
    /// How to read it.
    pub caption: String,
    /// The image.
    pub svg: String,
}

impl Kind {
    /// All of them with their names.
    pub const ALL: [(&'static str, Self); 10] = [
        ("pairs", Self::Pairs),
        ("metrics", Self::Metrics),
        ("training", Self::Training),
        ("ranks", Self::Ranks),
        ("coverage", Self::Coverage),
        ("local", Self::Local),
        ("simulations", Self::Simulations),
        ("predictive", Self::Predictive),
        ("levels", Self::Levels),
        ("time", Self::Time),
    ];

    /// Its name.
    pub fn name(self) -> &'static str {
        let known = Self::ALL.iter().find(|(_, kind)| *kind == self);
        known.map_or("", |(name, _)| name)
    }

    /// The figure of these runs, or none where there is nothing to draw yet.
    pub fn draw(self, runs: &Comparison, place: Place) -> Option<Figure> {
        let draw = match self {
            Self::Pairs => pairs::draw,
            Self::Metrics => metrics::draw,
            Self::Training => training::draw,
            Self::Ranks => ranks::draw,
            Self::Coverage => coverage::draw,
            Self::Local => local::draw,
            Self::Simulations => rounds::draw,
            Self::Predictive => predictive::draw,
            Self::Levels => levels::draw,
            Self::Time => time::draw,
        };
        draw(runs, place)
    }

    /// Why there may be nothing to draw.
    pub fn needs(self) -> Advice {
        let needs = match self {
            Self::Metrics => {
                "a finished round of a task whose true posterior or parameters are known"
            }
            Self::Training => "an epoch of training",
            Self::Ranks | Self::Coverage => {
                let needs = "a posterior that is calibrated: finish the run, or";
                return Advice::new(needs, Remedy::Calibrate);
            }
            Self::Local => {
                let needs = "a classifier's view of the posterior at the observation:";
                return Advice::new(needs, Remedy::Calibrate);
            }
            Self::Simulations => "a simulation",
            Self::Levels => {
                "a single run by a method that has levels, with a finished round and enough simulations"
            }
            Self::Pairs => "a finished round whose posterior can be sampled",
            Self::Predictive => {
                let needs =
                    "a finished round whose posterior can be sampled, of a built-in task, or";
                return Advice::new(needs, Remedy::Predictive);
            }
            Self::Time => "a finished round",
        };
        needs.into()
    }
}

/// The bitmap of a figure that stands alone, as a PNG file.
pub fn png(svg: &str) -> Result<Vec<u8>> {
    didyma_plot::png(svg).map_err(Error::Bitmap)
}
