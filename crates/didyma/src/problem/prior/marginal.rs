//! The law of one parameter, and its bijection to the standard normal law.

use super::truncated::Truncated;
use crate::error::{Error, Result};
use crate::math::normal;
use rand::Rng;
use rand_distr::{Distribution, StandardNormal, StandardUniform};
use serde::{Deserialize, Serialize};
use std::fmt;

/// The law of one parameter.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Marginal {
    /// Uniform between two bounds.
    Uniform {
        /// Lower bound.
        low: f64,
        /// Upper bound.
        high: f64,
    },
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        sd: f64,
    },
    /// The exponential of a normal variable.
    LogNormal {
        /// Mean of the logarithm.
        mean: f64,
        /// Standard deviation of the logarithm.
        sd: f64,
    },
    /// A normal or log-normal variable between bounds.
    Truncated {
        /// Mean, of the logarithm if `log`.
        mean: f64,
        /// Standard deviation, likewise.
        sd: f64,
        /// Whether it is the logarithm that is normal.
        log: bool,
        /// Lower bound of the value, if there is one.
        low: Option<f64>,
        /// Upper bound.
        high: Option<f64>,
    },
}

/// The least share of a law that may lie between its bounds.
const LEAST_MASS: f64 = 1e-12;

impl Marginal {
    /// Refuses numbers that make no law.
    pub fn check(&self) -> Result<()> {
        match *self {
            Self::Uniform { low, high } if !(low < high && (high - low).is_finite()) => {
                Err(Error::setting(
                    "uniform",
                    format!("{low} to {high}"),
                    "from a lower to a higher number",
                ))
            }
            Self::Normal { mean, sd }
            | Self::LogNormal { mean, sd }
            | Self::Truncated { mean, sd, .. }
                if !(mean.is_finite() && sd > 0.0 && sd.is_finite()) =>
            {
                let why = "a mean, and a standard deviation above 0";
                Err(Error::setting("normal", format!("mean {mean}, sd {sd}"), why))
            }
            Self::Truncated { low: Some(low), high: Some(high), .. } if low >= high => {
                let why = "from a lower to a higher number";
                Err(Error::setting("the range of a prior", format!("{low} to {high}"), why))
            }
            _ => self.check_precision(),
        }
    }

    /// Draws are kept in single precision, and must find numbers inside of the support there.
    fn check_precision(&self) -> Result<()> {
        let largest = f64::from(f32::MAX);
        let (low, high) = self.support();
        let room = ((low as f32).next_up().next_up() as f64) < high
            && [low, high].iter().all(|bound| bound.is_infinite() || bound.abs() < largest);
        let room = (
            room,
            "wide enough for numbers of 24 bits between its bounds: shift or scale the parameter",
        );
        let logarithm = |mean: f64, sd: f64| {
            (mean.abs() + 10.0 * sd < 87.0, "between e^-87 and e^87 within 10 deviations")
        };
        let (ok, why) = match *self {
            Self::Uniform { .. } => room,
            Self::Normal { mean, sd } => (mean.abs() + 40.0 * sd < largest, "within ±3e38"),
            Self::LogNormal { mean, sd } => logarithm(mean, sd),
            Self::Truncated { .. } if !room.0 => room,
            Self::Truncated { mean, sd, log: true, .. } if !logarithm(mean, sd).0 => {
                logarithm(mean, sd)
            }
            Self::Truncated { mean, sd, log, .. } => (
                truncated(mean, sd, log, (low, high)).mass() >= LEAST_MASS,
                "with bounds that leave something of it: give bounds nearer to its mean",
            ),
        };
        match ok {
            true => Ok(()),
            false => Err(Error::setting("prior", self, why)),
        }
    }

    /// The bounds of the value, which are not part of the support; they may be infinite.
    pub fn support(&self) -> (f64, f64) {
        let (none, all) = (f64::NEG_INFINITY, f64::INFINITY);
        match *self {
            Self::Uniform { low, high } => (low, high),
            Self::Normal { .. } => (none, all),
            Self::LogNormal { .. } => (0.0, all),
            Self::Truncated { log, low, high, .. } => {
                let least = if log { 0.0 } else { none };
                (low.unwrap_or(least).max(least), high.unwrap_or(all))
            }
        }
    }

    /// Whether the value is inside the support, bounds excluded: there the bijection ends.
    pub fn contains(&self, value: f64) -> bool {
        let (low, high) = self.support();
        low < value && value < high
    }

    /// The value in single precision, strictly inside the support: what rounding puts on a bound, or the bijection
    /// beyond it, goes to the nearest number inside.
    pub(super) fn rounded_inside(&self, value: f64) -> f32 {
        let rounded = value as f32;
        if rounded.is_finite() && self.contains(f64::from(rounded)) {
            return rounded;
        }
        let (low, high) = self.support();
        let (low, high) = (low.max(f64::from(f32::MIN)), high.min(f64::from(f32::MAX)));
        let nearest = if value <= low { low as f32 } else { high as f32 };
        let around = [nearest.next_up(), nearest, nearest.next_down()];
        let inside = |v: &f32| v.is_finite() && self.contains(f64::from(*v));
        around.into_iter().find(inside).unwrap_or(nearest)
    }

    /// Log-density, −∞ outside the support.
    pub fn log_density(&self, value: f64) -> f64 {
        let normal = |z: f64, sd: f64| normal::log_density(z) - sd.ln();
        match *self {
            _ if !self.contains(value) => f64::NEG_INFINITY,
            Self::Uniform { low, high } => -(high - low).ln(),
            Self::Normal { mean, sd } => normal((value - mean) / sd, sd),
            Self::LogNormal { mean, sd } => normal((value.ln() - mean) / sd, sd) - value.ln(),
            Self::Truncated { mean, sd, log: false, .. } => {
                truncated(mean, sd, false, self.support()).log_density(value)
            }
            Self::Truncated { mean, sd, log: true, .. } => {
                truncated(mean, sd, true, self.support()).log_density(value.ln()) - value.ln()
            }
        }
    }

    /// A draw, strictly inside the support.
    pub fn sample(&self, rng: &mut impl Rng) -> f64 {
        loop {
            let value = match *self {
                Self::Uniform { low, high } => {
                    let u: f64 = StandardUniform.sample(rng);
                    low + (high - low) * u
                }
                Self::Normal { mean, sd } => mean + sd * standard_normal(rng),
                Self::LogNormal { mean, sd } => (mean + sd * standard_normal(rng)).exp(),
                Self::Truncated { .. } => self.bounded(standard_normal(rng)).0,
            };
            if self.contains(value) {
                return value;
            }
        }
    }

    /// z of a value, and log |dθ/dz|. Under this law z is standard normal, whatever the law is: the value itself, its
    /// logarithm, or the normal quantile of its place between the bounds.
    pub(super) fn unbounded(self, value: f64) -> (f64, f64) {
        let z = match self {
            Self::Uniform { low, high } => match value - low < high - value {
                true => normal::quantile((value - low) / (high - low)),
                false => -normal::quantile((high - value) / (high - low)),
            },
            Self::Normal { mean, sd } => (value - mean) / sd,
            Self::LogNormal { mean, sd } => (value.ln() - mean) / sd,
            Self::Truncated { mean, sd, log, .. } => {
                let value = if log { value.ln() } else { value };
                truncated(mean, sd, log, self.support()).z(value)
            }
        };
        (z, self.bounded(z).1)
    }

    /// The value of a z, and log |dθ/dz|.
    pub(super) fn bounded(self, z: f64) -> (f64, f64) {
        match self {
            Self::Uniform { low, high } => {
                let share = normal::distribution(-z.abs());
                let value =
                    if z < 0.0 { low + (high - low) * share } else { high - (high - low) * share };
                (value, (high - low).ln() + normal::log_density(z))
            }
            Self::Normal { mean, sd } => (mean + sd * z, sd.ln()),
            Self::LogNormal { mean, sd } => {
                let log = mean + sd * z;
                (log.exp(), log + sd.ln())
            }
            Self::Truncated { mean, sd, log, .. } => {
                let law = truncated(mean, sd, log, self.support());
                let value = law.value(z);
                // As much of the normal law lies below z as of this one below the value.
                let log_jacobian = normal::log_density(z) - law.log_density(value);
                if log { (value.exp(), log_jacobian + value) } else { (value, log_jacobian) }
            }
        }
    }
}

impl fmt::Display for Marginal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Bounds such as 1/3 are shown with the digits that one reads.
        let short = |value: f64| (value * 1e4).round() / 1e4;
        match *self {
            Self::Uniform { low, high } => write!(f, "uniform {} to {}", short(low), short(high)),
            Self::Normal { mean, sd } => write!(f, "normal {} ± {}", short(mean), short(sd)),
            Self::LogNormal { mean, sd } => {
                write!(f, "log-normal, log {} ± {}", short(mean), short(sd))
            }
            Self::Truncated { mean, sd, log, low, high } => {
                let law =
                    if log { Self::LogNormal { mean, sd } } else { Self::Normal { mean, sd } };
                write!(f, "{law}")?;
                low.iter().try_for_each(|low| write!(f, ", above {}", short(*low)))?;
                high.iter().try_for_each(|high| write!(f, ", below {}", short(*high)))
            }
        }
    }
}

fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The normal law of the value, or of its logarithm, between the bounds of the value.
fn truncated(mean: f64, sd: f64, log: bool, (low, high): (f64, f64)) -> Truncated {
    let bounds = if log { (low.ln(), high.ln()) } else { (low, high) };
    Truncated::new(mean, sd, bounds)
}
