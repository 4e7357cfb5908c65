//! Priors: named parameters with independent marginals, and a bijection of their support to R^D.

use crate::error::{Error, Result};
use crate::normal;
use crate::parallel;
use crate::rng::SimulationStreams;
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
}

/// One parameter: its name, and its law.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Parameter {
    /// What it is called in tables and files.
    pub name: String,
    /// Its law.
    pub marginal: Marginal,
}

/// A prior: independent parameters.
///
/// ```
/// use didyma::prior::{Marginal, Prior};
/// let prior = Prior::new([
///     ("rate", Marginal::LogNormal { mean: -1.0, sd: 0.5 }),
///     ("size", Marginal::Uniform { low: 0.0, high: 4.0 }),
/// ])?;
/// assert_eq!(prior.log_density(&[0.3, 5.0]), f64::NEG_INFINITY); // outside
///
/// // The unbounded space: z in R², and the density there includes the Jacobian.
/// let (mut z, mut theta) = ([0.0; 2], [0.0; 2]);
/// let log_jacobian = prior.unbounded(&[0.3, 1.0], &mut z);
/// prior.bounded(&z, &mut theta);
/// assert!((theta[1] - 1.0).abs() < 1e-14);
/// let there = prior.log_density(&[0.3, 1.0]) + log_jacobian;
/// assert!((prior.log_density_unbounded(&z) - there).abs() < 1e-12);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Vec<Parameter>", into = "Vec<Parameter>")]
pub struct Prior {
    parameters: Vec<Parameter>,
}

impl Marginal {
    fn check(&self) -> Result<()> {
        match *self {
            Self::Uniform { low, high } if !(low < high && (high - low).is_finite()) => {
                Err(Error::setting(
                    "uniform",
                    format!("{low} to {high}"),
                    "from a lower to a higher number",
                ))
            }
            Self::Normal { mean, sd } | Self::LogNormal { mean, sd }
                if !(mean.is_finite() && sd > 0.0 && sd.is_finite()) =>
            {
                let why = "a mean, and a standard deviation above 0";
                Err(Error::setting("normal", format!("mean {mean}, sd {sd}"), why))
            }
            _ => self.check_precision(),
        }
    }

    /// Draws are kept in single precision, and must find numbers inside of the support there.
    fn check_precision(&self) -> Result<()> {
        let largest = f64::from(f32::MAX);
        let (ok, why) = match *self {
            Self::Uniform { low, high } => (
                ((low as f32).next_up().next_up() as f64) < high
                    && low.abs().max(high.abs()) < largest,
                "wide enough for numbers of 24 bits between its bounds: shift or scale the parameter",
            ),
            Self::Normal { mean, sd } => (mean.abs() + 40.0 * sd < largest, "within ±3e38"),
            Self::LogNormal { mean, sd } => {
                (mean.abs() + 10.0 * sd < 87.0, "between e^-87 and e^87 within 10 deviations")
            }
        };
        match ok {
            true => Ok(()),
            false => Err(Error::setting("prior", self, why)),
        }
    }

    /// Whether the value is inside the support, bounds excluded: there the bijection ends.
    pub fn contains(&self, value: f64) -> bool {
        match *self {
            Self::Uniform { low, high } => low < value && value < high,
            Self::Normal { .. } => value.is_finite(),
            Self::LogNormal { .. } => value > 0.0 && value.is_finite(),
        }
    }

    /// The value in single precision, strictly inside the support: what rounding puts on a bound, or the bijection
    /// beyond it, goes to the nearest number inside.
    fn rounded_inside(&self, value: f64) -> f32 {
        let rounded = value as f32;
        let (low, high) = match *self {
            _ if self.contains(f64::from(rounded)) => return rounded,
            Self::Uniform { low, high } => (low, high),
            Self::Normal { .. } => (f64::from(f32::MIN), f64::from(f32::MAX)),
            Self::LogNormal { .. } => (0.0, f64::from(f32::MAX)),
        };
        let nearest = if value <= low { low as f32 } else { high as f32 };
        let around = [nearest.next_up(), nearest, nearest.next_down()];
        around.into_iter().find(|&v| self.contains(f64::from(v))).unwrap_or(nearest)
    }

    /// Log-density, −∞ outside the support.
    pub fn log_density(&self, value: f64) -> f64 {
        let normal = |z: f64, sd: f64| normal::log_density(z) - sd.ln();
        match *self {
            _ if !self.contains(value) => f64::NEG_INFINITY,
            Self::Uniform { low, high } => -(high - low).ln(),
            Self::Normal { mean, sd } => normal((value - mean) / sd, sd),
            Self::LogNormal { mean, sd } => normal((value.ln() - mean) / sd, sd) - value.ln(),
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
            };
            if self.contains(value) {
                return value;
            }
        }
    }

    /// z of a value, and log |dθ/dz|. Under this law z is standard normal, whatever the law is: the value itself, its
    /// logarithm, or the normal quantile of its place between the bounds.
    fn unbounded(self, value: f64) -> (f64, f64) {
        let z = match self {
            Self::Uniform { low, high } => match value - low < high - value {
                true => normal::quantile((value - low) / (high - low)),
                false => -normal::quantile((high - value) / (high - low)),
            },
            Self::Normal { mean, sd } => (value - mean) / sd,
            Self::LogNormal { mean, sd } => (value.ln() - mean) / sd,
        };
        (z, self.bounded(z).1)
    }

    /// The value of a z, and log |dθ/dz|.
    fn bounded(self, z: f64) -> (f64, f64) {
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
        }
    }
}

impl From<Prior> for Vec<Parameter> {
    fn from(prior: Prior) -> Self {
        prior.parameters
    }
}

impl TryFrom<Vec<Parameter>> for Prior {
    type Error = Error;

    fn try_from(parameters: Vec<Parameter>) -> Result<Self> {
        Self::new(parameters.into_iter().map(|Parameter { name, marginal }| (name, marginal)))
    }
}

fn standard_normal(rng: &mut impl Rng) -> f64 {
    StandardNormal.sample(rng)
}

impl Prior {
    /// A prior of these parameters, whose names must differ.
    pub fn new<N: Into<String>>(
        parameters: impl IntoIterator<Item = (N, Marginal)>,
    ) -> Result<Self> {
        let parameters: Vec<Parameter> = parameters
            .into_iter()
            .map(|(name, marginal)| Parameter { name: name.into(), marginal })
            .collect();
        if parameters.is_empty() {
            return Err(Error::setting("prior", "empty", "of at least one parameter"));
        }
        for (i, parameter) in parameters.iter().enumerate() {
            parameter.marginal.check()?;
            if parameters[..i].iter().any(|other| other.name == parameter.name) {
                return Err(Error::setting(
                    "parameter",
                    &parameter.name,
                    "named differently from the others",
                ));
            }
        }
        Ok(Self { parameters })
    }

    /// Independent uniform parameters.
    pub fn uniform<const D: usize>(
        names: [&str; D],
        low: [f64; D],
        high: [f64; D],
    ) -> Result<Self> {
        let marginal = |i: usize| Marginal::Uniform { low: low[i], high: high[i] };
        Self::new(names.into_iter().enumerate().map(|(i, name)| (name, marginal(i))))
    }

    /// Number of parameters.
    pub fn dim(&self) -> usize {
        self.parameters.len()
    }

    /// The parameters.
    pub fn parameters(&self) -> &[Parameter] {
        &self.parameters
    }

    /// Their names.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.parameters.iter().map(|parameter| parameter.name.as_str())
    }

    /// Whether every parameter is inside its support.
    pub fn contains(&self, theta: &[f64]) -> bool {
        self.zip(theta).all(|(marginal, value)| marginal.contains(value))
    }

    /// log p(θ), −∞ outside the support.
    pub fn log_density(&self, theta: &[f64]) -> f64 {
        self.zip(theta).map(|(marginal, value)| marginal.log_density(value)).sum()
    }

    /// Requires every parameter to be inside its support.
    pub fn expect_inside(&self, theta: &[f64]) -> Result<()> {
        if theta.len() != self.dim() {
            let (found, expected) = (theta.len(), self.dim());
            let why = "one for each parameter of the prior";
            return Err(Error::Shape { name: "theta", unit: "numbers", found, expected, why });
        }
        match self.parameters.iter().zip(theta).find(|(p, value)| !p.marginal.contains(**value)) {
            Some((Parameter { name, marginal }, &value)) => {
                let (name, prior) = (name.clone(), marginal.to_string());
                Err(Error::OutsidePrior { name, value, prior })
            }
            None => Ok(()),
        }
    }

    /// A draw into `theta`.
    pub fn sample(&self, rng: &mut impl Rng, theta: &mut [f64]) {
        assert_eq!(theta.len(), self.dim(), "room for every parameter");
        for (to, parameter) in theta.iter_mut().zip(&self.parameters) {
            *to = parameter.marginal.sample(rng);
        }
    }

    /// `count` draws, row after row; row i comes from the stream of index i, whatever the number of threads.
    pub fn sample_rows(
        &self,
        count: usize,
        streams: &SimulationStreams,
        threads: usize,
    ) -> Vec<f32> {
        parallel::rows(count, threads, |row, to| {
            let mut theta = vec![0.0; self.dim()];
            self.sample(&mut streams.stream(row as u64), &mut theta);
            to.extend(self.rounded_inside(&theta));
        })
    }

    /// θ in single precision, strictly inside the support, whatever rounding does.
    pub fn rounded_inside<'a>(&'a self, theta: &'a [f64]) -> impl Iterator<Item = f32> + 'a {
        self.zip(theta).map(|(marginal, value)| marginal.rounded_inside(value))
    }

    /// Maps θ inside the support to z in R^D; returns log |dθ/dz|.
    pub fn unbounded(&self, theta: &[f64], z: &mut [f64]) -> f64 {
        let pairs = self.zip(theta).zip(z);
        pairs
            .map(|((marginal, value), z)| {
                let (to, log_jacobian) = marginal.unbounded(value);
                *z = to;
                log_jacobian
            })
            .sum()
    }

    /// Maps z in R^D into the support; returns log |dθ/dz|.
    pub fn bounded(&self, z: &[f64], theta: &mut [f64]) -> f64 {
        let pairs = self.zip(z).zip(theta);
        pairs
            .map(|((marginal, z), theta)| {
                let (to, log_jacobian) = marginal.bounded(z);
                *theta = to;
                log_jacobian
            })
            .sum()
    }

    /// Log-density of z if θ(z) has this prior, log p(θ) + log |dθ/dz|: that of a standard normal vector. Both q and the
    /// prior gain the same Jacobian, so g = q/p is the same in either space.
    pub fn log_density_unbounded(&self, z: &[f64]) -> f64 {
        assert_eq!(z.len(), self.dim(), "a number for every parameter");
        z.iter().map(|&z| normal::log_density(z)).sum()
    }

    fn zip<'a>(&'a self, values: &'a [f64]) -> impl Iterator<Item = (Marginal, f64)> + 'a {
        assert_eq!(values.len(), self.dim(), "a number for every parameter");
        self.parameters.iter().map(|parameter| parameter.marginal).zip(values.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_never_leaves_the_support() {
        let prior = Prior::new([
            ("a", Marginal::Uniform { low: 0.1, high: 0.3 }),
            ("b", Marginal::LogNormal { mean: 0.0, sd: 1.0 }),
            ("c", Marginal::Normal { mean: 0.0, sd: 1.0 }),
        ])
        .unwrap();
        for theta in [
            [0.1, 0.0, f64::NEG_INFINITY],
            [0.3, f64::INFINITY, f64::INFINITY],
            [-5.0, 1e-300, 1e300],
            [0.2, 1.0, 1.0],
        ] {
            let rounded: Vec<f64> = prior.rounded_inside(&theta).map(f64::from).collect();
            prior.expect_inside(&rounded).unwrap();
        }
        assert!(prior.rounded_inside(&[0.2, 1.0, -1.5]).eq([0.2, 1.0, -1.5]));
    }

    #[test]
    fn files_hold_priors_and_bad_ones_are_refused() {
        let prior = Prior::uniform(["a"], [0.0], [2.0]).unwrap();
        let text = serde_json::to_string(&prior).unwrap();
        assert_eq!(text, r#"[{"name":"a","marginal":{"uniform":{"low":0.0,"high":2.0}}}]"#);
        assert_eq!(serde_json::from_str::<Prior>(&text).unwrap(), prior);
        assert!(serde_json::from_str::<Prior>(&text.replace("2.0", "-2.0")).is_err());
    }
}
