//! Priors: independent marginals, and a bijection of their support to R^D.

mod marginal;
mod truncated;

pub use marginal::Marginal;

use crate::error::{Error, Result};
use crate::math::normal;
use crate::names::{self, Use};
use crate::parallel;
use crate::rng::SimulationStreams;
use rand::Rng;
use serde::{Deserialize, Serialize};

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

impl Prior {
    /// A prior of these parameters, whose names must differ and be good heads of columns.
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
        for Parameter { name, marginal } in &parameters {
            names::check("the parameter", name, Use::Column)?;
            marginal.check()?;
        }
        if let Some(name) = names::repeated(parameters.iter().map(|one| &*one.name)) {
            return Err(Error::setting("parameter", name, "named differently from the others"));
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
    ) -> Vec<f64> {
        parallel::rows(count, threads, |row, to| {
            let mut theta = vec![0.0; self.dim()];
            self.sample(&mut streams.stream(row as u64), &mut theta);
            to.extend(self.nearest_inside(&theta));
        })
    }

    /// θ strictly inside the support, whatever rounding did.
    pub fn nearest_inside<'a>(&'a self, theta: &'a [f64]) -> impl Iterator<Item = f64> + 'a {
        self.zip(theta).map(|(marginal, value)| marginal.nearest_inside(value))
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
            let inside: Vec<f64> = prior.nearest_inside(&theta).collect();
            prior.expect_inside(&inside).unwrap();
        }
        assert!(prior.nearest_inside(&[0.2, 1.0, -1.5]).eq([0.2, 1.0, -1.5]));
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
