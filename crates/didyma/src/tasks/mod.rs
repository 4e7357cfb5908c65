//! Problems with a name: prior, simulator, observation, and what is known of the posterior.

use crate::prior::Prior;
use crate::simulator::Simulator;

/// An inference problem.
pub struct Task {
    /// Its name on the command line.
    pub name: &'static str,
    /// In one line.
    pub about: &'static str,
    /// The prior.
    pub prior: Prior,
    /// The simulator.
    pub simulator: Box<dyn Simulator>,
    /// x_o.
    pub observation: Vec<f64>,
    /// θ*, the parameters that the observation is thought to come from.
    pub truth: Vec<f64>,
    /// s, the scale of each summary in distances.
    pub scale: Vec<f64>,
    /// Names of the summaries.
    pub summaries: Vec<&'static str>,
}
