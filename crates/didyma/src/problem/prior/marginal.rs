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
/// Values are smaller than this, so that differences and sums of many of them are finite.
const LARGEST: f64 = 1e300;
/// The least width of a law, so that a posterior a hundred times narrower still has normal numbers.
const NARROWEST: f64 = 1e-300;
/// The least width of a law in steps from one number to the next. A posterior a hundred times narrower then has 40 steps
/// in its standard deviation, and rounding, of deviation 1/√12 of a step, adds less than 0.01 % to it.
const STEPS: f64 = 4096.0;

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

    /// Values are f64: the law must be wide enough for many of them, and its values must have squares and sums.
    fn check_precision(&self) -> Result<()> {
        let (low, high) = self.support();
        let bounded = [low, high].iter().all(|bound| bound.is_infinite() || bound.abs() < LARGEST);
        let shift = "wide enough for the digits of a number at its place: shift the parameter";
        let logarithm = |mean: f64, sd: f64| {
            (mean.abs() + 10.0 * sd < 690.0, "between e^-690 and e^690 within 10 deviations")
        };
        let (ok, why) = match *self {
            _ if !bounded => (false, "within ±1e300"),
            Self::Uniform { .. } => (is_resolved(high - low, low.abs().max(high.abs())), shift),
            Self::Normal { mean, sd } if mean.abs() + 40.0 * sd >= LARGEST => {
                (false, "within ±1e300")
            }
            Self::Normal { mean, sd } => (is_resolved(sd, mean.abs()), shift),
            Self::LogNormal { mean, sd } if !is_resolved(sd, mean.abs()) => (false, shift),
            Self::LogNormal { mean, sd } => logarithm(mean, sd),
            Self::Truncated { .. } if !is_resolved(high - low, largest_bound(low, high)) => {
                (false, shift)
            }
            Self::Truncated { mean, sd, .. } if !is_resolved(sd, mean.abs()) => (false, shift),
            Self::Truncated { mean, sd, log: true, .. } if !logarithm(mean, sd).0 => {
                logarithm(mean, sd)
            }
            Self::Truncated { mean, sd, log, .. } => (
                truncated(mean, sd, log, (low, high)).mass() >= LEAST_MASS,
                "with bounds that leave something of it: give bounds nearer to its mean",
            ),
        };
        if ok { Ok(()) } else { Err(Error::setting("prior", self, why)) }
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

    /// A value in the middle, and a width of the law: a deviation, or half of the way between the bounds.
    pub(crate) fn place(&self) -> (f64, f64) {
        match *self {
            Self::Uniform { low, high } => (low / 2.0 + high / 2.0, (high - low) / 2.0),
            Self::Normal { mean, sd } | Self::Truncated { mean, sd, log: false, .. } => (mean, sd),
            Self::LogNormal { mean, sd } | Self::Truncated { mean, sd, .. } => {
                (mean.exp(), mean.exp() * sd)
            }
        }
    }

    /// Whether the value is inside the support, bounds excluded: there the bijection ends.
    pub fn contains(&self, value: f64) -> bool {
        let (low, high) = self.support();
        low < value && value < high
    }

    /// The value, strictly inside the support: what rounding puts on a bound, or the bijection beyond it, goes to the
    /// nearest number inside.
    pub(super) fn nearest_inside(&self, value: f64) -> f64 {
        if value.is_finite() && self.contains(value) {
            return value;
        }
        let (low, high) = self.support();
        if value <= low { low.max(f64::MIN).next_up() } else { high.min(f64::MAX).next_down() }
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

/// Whether a law of this width is told apart by numbers of this size.
fn is_resolved(width: f64, size: f64) -> bool {
    width >= NARROWEST && width >= STEPS * (size.next_up() - size)
}

/// The size of the larger of two bounds, of those that are finite.
fn largest_bound(low: f64, high: f64) -> f64 {
    [low, high].into_iter().filter(|bound| bound.is_finite()).fold(0.0, |size, b| size.max(b.abs()))
}

/// A number with the digits that one reads: bounds such as 1/3 have more.
fn short(value: f64) -> String {
    if value == 0.0 || (1e-3..1e15).contains(&value.abs()) {
        return ((value * 1e4).round() / 1e4).to_string();
    }
    let rounded = format!("{value:.4e}").parse::<f64>();
    rounded.map_or_else(|_| value.to_string(), |rounded| format!("{rounded:e}"))
}

fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// The normal law of the value, or of its logarithm, between the bounds of the value.
fn truncated(mean: f64, sd: f64, log: bool, (low, high): (f64, f64)) -> Truncated {
    let bounds = if log { (low.ln(), high.ln()) } else { (low, high) };
    Truncated::new(mean, sd, bounds)
}
