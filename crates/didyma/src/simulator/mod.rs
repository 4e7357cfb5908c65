//! Simulators, and running many simulations on all cores.

mod run;

pub use run::{Failure, Progress, Simulations, simulate};

use crate::rng::SimulationStream;
use std::fmt;

/// A model that can be simulated: parameters θ in, summaries x out.
///
/// All randomness comes from `rng`, so that a simulation can be repeated from its index alone.
///
/// ```
/// use didyma::rng::SimulationStream;
/// use didyma::simulator::{SimulationFailed, Simulator};
/// use rand::RngExt;
///
/// /// The number of heads in ten throws of a coin.
/// struct Coin;
///
/// impl Simulator for Coin {
///     fn theta_dim(&self) -> usize {
///         1
///     }
///     fn x_dim(&self) -> usize {
///         1
///     }
///     fn simulate(
///         &self,
///         theta: &[f64],
///         rng: &mut SimulationStream,
///         x: &mut [f64],
///     ) -> Result<(), SimulationFailed> {
///         x[0] = (0..10).filter(|_| rng.random::<f64>() < theta[0]).count() as f64;
///         Ok(())
///     }
/// }
/// ```
pub trait Simulator: Send + Sync {
    /// Number of parameters.
    fn theta_dim(&self) -> usize;

    /// Number of summaries.
    fn x_dim(&self) -> usize;

    /// Simulates once. A failure is data: it is recorded with its reason, and the run goes on. So is a
    /// summary that is not finite.
    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed>;
}

/// Why a simulation gave no summaries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimulationFailed(pub String);

impl fmt::Display for SimulationFailed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
