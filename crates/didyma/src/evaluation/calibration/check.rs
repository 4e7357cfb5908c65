//! What held-out simulations say of a posterior, in numbers that a verdict and figures are made of.

use super::held_out::Sets;
use super::{Candidates, ConformalLevels, HeldOut, LEAST_ROWS, Moment, MomentTest, Uniformity};
use crate::error::{Error, Result};
use crate::math::{mean_and_deviation, normal};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use serde::{Deserialize, Serialize};

/// Draws of q for each simulation.
pub(crate) const DRAWS: usize = 100;

/// Where the simulations come from.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Evidence {
    /// From rounds of the run, the first and the last of them: each member of an ensemble is asked of rows that it never saw.
    HeldOut(u32, u32),
    /// New ones, which no member saw: q itself is asked.
    New,
}

/// The places of θ by one statistic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RankCheck {
    /// The parameter's name, `density` or `distance`.
    pub name: String,
    /// How often an exact posterior has places as uneven as these.
    pub p_value: f64,
    /// The largest distance of their distribution from the uniform one: a posterior that is off by it in one parameter is told
    /// from the truth by a classifier in at least half of all cases and half of this.
    pub deviation: f64,
    /// The mean of the normal scores of the places: by how many standard deviations θ lies above its candidates.
    pub shift: f64,
    /// Their standard deviation: 1 for an exact posterior, above for one that is too narrow.
    pub width: f64,
    /// The places, from 0 to 1.
    pub places: Vec<f64>,
}

/// A moment that is out of place, with names.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MomentCheck {
    /// In words, as `amplitude is too low`.
    pub words: String,
    /// In standard errors.
    pub z: f64,
    /// The tilt that would mend it: the law is to be multiplied by exp(tilt · moment).
    pub tilt: f64,
    /// True if it is a shift of a parameter, whose tilt is in standard deviations.
    #[serde(default)]
    pub shift: bool,
    /// True if it is of simulations near the observation.
    pub near: bool,
}

/// What held-out simulations say of a posterior.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Calibration {
    /// Where the simulations come from.
    pub evidence: Evidence,
    /// How many they are.
    pub rows: usize,
    /// How many of equal weight those near the observation are worth.
    pub near: f64,
    /// How many candidates of equal weight each set is worth.
    pub effective: f64,
    /// The shift of a parameter, in standard deviations, that would be seen in four of five cases.
    pub visible: f64,
    /// The places of θ among its candidates by each parameter.
    pub parameters: Vec<RankCheck>,
    /// By log q: the share of a region of highest density that θ lies at the edge of, from outside in.
    pub density: RankCheck,
    /// By the distance to a random point, as TARP (Lemos et al. 2023): the credibility of the ball that θ lies at the edge of.
    pub distance: RankCheck,
    /// How often an exact posterior has a moment as far out as the farthest, over all simulations and near the observation.
    pub moments_p_value: f64,
    /// The moments that are farthest out.
    pub moments: Vec<MomentCheck>,
    /// Share of q(· | x_o) where nothing was simulated in the last round; none where that follows the prior.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside: Option<f64>,
    /// A classifier's view of q at the observation, where one was trained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<LocalMap>,
    /// Nominal levels whose regions have the coverage that was asked for, where they were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conformal: Option<ConformalLevels>,
}

/// A classifier's view of q at the observation (L-C2ST).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LocalMap {
    /// How often an exact q is told apart as well as this.
    pub p_value: f64,
    /// The mean of (d − ½)², d being the classifier's probability.
    pub statistic: f64,
    /// Draws of q(· | x_o), row after row, kept in proportion to p̃ / p of the newest simulations: where the classifier has seen
    /// pairs.
    pub theta: Vec<f64>,
    /// At each of them the probability that it is a draw of q and not of the truth: above ½ where q is too high.
    pub probability: Vec<f64>,
}

impl Calibration {
    /// Asks the held-out rows that these sets of [`DRAWS`] candidates are of. Too few of them is an error that says how many are
    /// needed.
    pub(crate) fn of(
        held_out: &HeldOut,
        sets: &Sets,
        evidence: Evidence,
        streams: &Streams,
        threads: usize,
    ) -> Result<Self> {
        let posterior = held_out.posterior;
        let own = posterior.features(posterior.observation())?.into_iter().map(f64::from);
        let own: Vec<f64> = own.collect();
        let features = Rows::new("x", &sets.features, own.len())?;
        let names: Vec<String> = posterior.prior().names().map(str::to_owned).collect();
        let x = (features, &*own);
        Self::of_candidates(&sets.candidates, &names, x, evidence, streams, threads)
    }

    /// Asks sets of candidates whose statistics are these parameters, the density of q and a distance. `features` are the x of
    /// the sets in the units that q reads, `own` are those of x_o.
    pub fn of_candidates(
        candidates: &Candidates,
        names: &[String],
        (features, own): (Rows, &[f64]),
        evidence: Evidence,
        streams: &Streams,
        threads: usize,
    ) -> Result<Self> {
        let rows = candidates.len();
        if rows < LEAST_ROWS {
            let name = match evidence {
                Evidence::HeldOut(..) => "held-out simulations",
                Evidence::New => "new simulations",
            };
            let (unit, why) = ("rows", "or more: simulate more");
            return Err(Error::Shape { name, unit, found: rows, expected: LEAST_ROWS, why });
        }
        let found = MomentTest::of(candidates, names.len(), (features, own), streams, threads);
        let rank = |i: usize, name: &str| {
            let mut rng = streams.stream(Purpose::HeldOutPlaces, 0, i as u64);
            RankCheck::new(name.to_owned(), candidates.places(i, &mut rng))
        };
        let parameters = names.iter().enumerate().map(|(i, name)| rank(i, name));
        Ok(Self {
            evidence,
            rows,
            near: found.near,
            effective: candidates.effective(),
            visible: seen(found.moments) / found.information.max(1e-9).sqrt(),
            parameters: parameters.collect::<Result<_>>()?,
            density: rank(names.len(), "density")?,
            distance: rank(names.len() + 1, "distance")?,
            moments_p_value: found.p_value,
            moments: found.deviations.iter().map(|d| named(d, names)).collect(),
            outside: None,
            local: None,
            conformal: None,
        })
    }

    /// All places: by each parameter, by the density, by a distance.
    pub fn ranks(&self) -> impl Iterator<Item = &RankCheck> {
        self.parameters.iter().chain([&self.density, &self.distance])
    }

    /// The smallest p-value of the places, times their number, at most 1.
    pub fn ranks_p_value(&self) -> f64 {
        let least = self.ranks().map(|rank| rank.p_value).fold(1.0, f64::min);
        (least * self.ranks().count() as f64).min(1.0)
    }

    /// The largest deviation of the places.
    pub fn deviation(&self) -> f64 {
        self.ranks().map(|rank| rank.deviation).fold(0.0, f64::max)
    }
}

/// Share of a proposal's own draws that lie at its edge.
const EDGE: f64 = 0.005;

/// Share of a law's draws that lie where a proposal has a lower density than at 99.5 % of its own draws, from the log-density of
/// the proposal at its own draws and at those of the law.
///
/// Held-out simulations say nothing of such a place: none of their parameters lie there, and the weights p̃ / p of candidates that
/// do are next to nothing.
pub fn share_outside(mut proposed: Vec<f64>, drawn: &[f64]) -> f64 {
    proposed.sort_unstable_by(f64::total_cmp);
    let Some(&edge) = proposed.get((EDGE * proposed.len() as f64) as usize) else { return 0.0 };
    let outside = drawn.iter().filter(|log_density| **log_density < edge).count();
    outside as f64 / drawn.len().max(1) as f64
}

/// Standard errors from which a shift is seen in four of five cases by the largest of so many moments, each of two signs and by two
/// weights, at a level of 1 %.
fn seen(moments: usize) -> f64 {
    normal::quantile(1.0 - 0.005 / (2 * moments.max(1)) as f64) + 0.84
}

impl RankCheck {
    fn new(name: String, places: Vec<f64>) -> Result<Self> {
        let Uniformity { p_value, deviation, .. } = Uniformity::of(&places)?;
        let scores: Vec<f64> =
            places.iter().map(|place| normal::quantile(place.clamp(1e-4, 1.0 - 1e-4))).collect();
        let (shift, width) = mean_and_deviation(&scores);
        Ok(Self { name, p_value, deviation, shift, width, places })
    }
}

fn named(deviation: &super::Deviation, names: &[String]) -> MomentCheck {
    let name = |i: usize| names.get(i).map_or("", String::as_str);
    let high = deviation.z > 0.0;
    let words = match deviation.moment {
        Moment::Location(i) if i > names.len() => {
            let way = if high { "far from" } else { "near to" };
            format!("true parameters lie too {way} random points")
        }
        Moment::Location(i) if i == names.len() && high => {
            "true parameters lie in the middle of the posterior too often".to_owned()
        }
        Moment::Location(i) if i == names.len() => {
            "true parameters lie at the edge of the posterior too often".to_owned()
        }
        Moment::Location(i) => {
            format!("{} is too {}", name(i), if high { "low" } else { "high" })
        }
        Moment::Width(i) => {
            format!("{} is too {}", name(i), if high { "narrow" } else { "wide" })
        }
        Moment::Pair(i, j) => format!(
            "{} and {} are correlated too {}",
            name(i),
            name(j),
            if high { "little" } else { "much" }
        ),
        Moment::Summary(i, _) => {
            format!("{} does not follow the summaries as it should", name(i))
        }
    };
    let shift = matches!(deviation.moment, Moment::Location(i) if i < names.len());
    MomentCheck { words, z: deviation.z, tilt: deviation.tilt, shift, near: deviation.near }
}
