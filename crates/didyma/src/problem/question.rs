//! A prior, a simulator and an observation that fit together.

use super::prior::Prior;
use super::simulator::{LARGEST_SUMMARY, Simulator};
use crate::error::{Error, Result};
use std::fmt;
use std::sync::Arc;

/// A prior, a simulator and an observation of the same sizes: all that an inference is asked.
///
/// ```
/// use didyma::{Prior, Problem, from_fn};
/// let prior = Prior::uniform(["theta"], [-1.0], [1.0])?;
/// let square = from_fn(1, 1, |theta, _, x| x[0] = theta[0] * theta[0]);
/// let problem = Problem::new(prior.clone(), square, [0.25])?;
/// assert_eq!(problem.dims(), (1, 1));
/// assert!(Problem::new(prior, square, [0.25, 0.5]).is_err()); // one summary, two observed numbers
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone)]
pub struct Problem<'a> {
    pub(super) prior: Prior,
    pub(super) simulator: Arc<dyn Simulator + 'a>,
    pub(super) observation: Vec<f64>,
}

impl<'a> Problem<'a> {
    /// Refuses parts of different sizes, and an observation that is not finite or beyond [`LARGEST_SUMMARY`].
    pub fn new(
        prior: Prior,
        simulator: impl Simulator + 'a,
        observation: impl Into<Vec<f64>>,
    ) -> Result<Self> {
        let problem =
            Self { prior, simulator: Arc::new(simulator), observation: observation.into() };
        problem.checked()
    }

    /// The same question of another simulator.
    pub fn with_simulator(self, simulator: impl Simulator + 'a) -> Result<Self> {
        Self { simulator: Arc::new(simulator), ..self }.checked()
    }

    /// The same question at another observation.
    pub fn with_observation(self, observation: impl Into<Vec<f64>>) -> Result<Self> {
        Self { observation: observation.into(), ..self }.checked()
    }

    pub(super) fn checked(self) -> Result<Self> {
        let shape = |name, found, expected, why| {
            if found == expected {
                return Ok(());
            }
            Err(Error::Shape { name, unit: "numbers", found, expected, why })
        };
        let (theta_dim, x_dim) = (self.simulator.theta_dim(), self.simulator.x_dim());
        shape("prior", self.prior.dim(), theta_dim, "parameters of the simulator")?;
        shape("observation", self.observation.len(), x_dim, "summaries of the simulator")?;
        check_observation(&self.observation).map(|()| self)
    }

    /// The law of the parameters before anything was observed.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// The model: parameters in, summaries out.
    pub fn simulator(&self) -> &(dyn Simulator + 'a) {
        &*self.simulator
    }

    /// The observed summaries, x_o.
    pub fn observation(&self) -> &[f64] {
        &self.observation
    }

    /// Numbers of parameters and of summaries.
    pub fn dims(&self) -> (usize, usize) {
        (self.prior.dim(), self.observation.len())
    }
}

/// Refuses an observation that no inference can use, before anything is simulated.
pub(crate) fn check_observation(x: &[f64]) -> Result<()> {
    // No range contains NaN.
    let usable = -LARGEST_SUMMARY..=LARGEST_SUMMARY;
    let Some(column) = x.iter().position(|x| !usable.contains(x)) else { return Ok(()) };
    let value = x[column];
    if !value.is_finite() {
        return Err(Error::NotFinite { name: "observation", row: 0, column, value });
    }
    let name = format!("number {} of the observation", column + 1).into();
    let expected =
        "between -1e150 and 1e150, so that its square is finite: use another unit".into();
    Err(Error::Setting { name, value: format!("{value:e}"), expected })
}

impl fmt::Debug for Problem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { prior, observation, .. } = self;
        f.debug_struct("Problem").field("prior", prior).field("observation", observation).finish()
    }
}
