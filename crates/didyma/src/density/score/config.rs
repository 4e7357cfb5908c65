//! The shape of a score network and how its differential equation is solved.

use crate::error::{Error, Result};
use crate::named::{Named, serde_by_name};
use serde::{Deserialize, Serialize};

/// What the network puts out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// One number, whose gradient with respect to θ is the score: a gradient field by construction.
    Energy,
    /// The score itself, one number for each dimension of θ. Half the cost of an energy.
    Direct,
}

impl Named for Output {
    const ALL: &'static [(&'static str, Self)] =
        &[("energy", Self::Energy), ("direct", Self::Direct)];
}
serde_by_name!(Output);

/// Steps of the differential equation that [`ScoreConfig::new`] sets: see the table in `ode.rs`.
const DEFAULT_STEPS: usize = 40;

/// The shape of a score network.
///
/// ```
/// use didyma::score::{Output, ScoreConfig};
/// let config = ScoreConfig { output: Output::Energy, ..ScoreConfig::new(4, 9) };
/// assert_eq!((config.units, config.scaled, config.ode_steps), (256, true, 40));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScoreConfig {
    /// D, the dimension of θ.
    pub theta_dim: usize,
    /// C, the dimension of x.
    pub x_dim: usize,
    /// Units of each hidden layer.
    pub units: usize,
    /// What the network puts out.
    pub output: Output,
    /// Divide the output by the noise's standard deviation, so that the network predicts −noise at every time.
    pub scaled: bool,
    /// Runge–Kutta steps between data and noise.
    pub ode_steps: usize,
}

impl ScoreConfig {
    /// 256 units that put out the scaled score of θ of `theta_dim` numbers given x of `x_dim` numbers.
    pub fn new(theta_dim: usize, x_dim: usize) -> Self {
        let (output, scaled) = (Output::Direct, true);
        Self { theta_dim, x_dim, units: 256, output, scaled, ode_steps: DEFAULT_STEPS }
    }

    /// Refuses shapes that no network can have.
    pub fn check(&self) -> Result<()> {
        for (name, value, high, expected) in [
            ("theta_dim", self.theta_dim, 1 << 10, "between 1 and 1024"),
            ("x_dim", self.x_dim, 1 << 16, "between 1 and 65536"),
            ("units", self.units, 1 << 12, "between 1 and 4096"),
            ("ode_steps", self.ode_steps, 1 << 16, "between 1 and 65536"),
        ] {
            if !(1..=high).contains(&value) {
                return Err(Error::setting(name, value, expected));
            }
        }
        Ok(())
    }
}
