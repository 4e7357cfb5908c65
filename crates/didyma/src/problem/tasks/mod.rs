//! Problems with a name: prior, simulator, observation, and what is known of the posterior.
//!
//! A [`Task`] has a [`Problem`], and what is known of the truth. The eight here are the paper's
//! four models and four of the field's benchmark whose posteriors can be checked.

mod gaussian;
mod hodgkin_huxley;
mod lotka_volterra;
mod mg1;
mod reference;
mod scale;
mod sir;
mod slcp;
mod slice;
mod two_moons;

pub use gaussian::{gaussian_linear, gaussian_mixture};
pub use hodgkin_huxley::hodgkin_huxley;
pub use lotka_volterra::{Record, lotka_volterra};
pub use mg1::mg1;
pub use sir::sir;
pub use slcp::slcp;
pub use two_moons::two_moons;

use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::rng::SimulationStream;

/// A draw of the posterior at an observation, into θ.
pub type Sampler = fn(observation: &[f64], rng: &mut SimulationStream, theta: &mut [f64]);
/// The log-density of the posterior at an observation.
pub type LogPosterior = fn(observation: &[f64], theta: &[f64]) -> f64;

/// Where samples of the true posterior come from.
#[derive(Clone, Copy, Debug)]
pub enum Reference {
    /// Exact draws, at any observation.
    Exact(Sampler),
    /// A Markov chain on the exact likelihood.
    Chain {
        /// Parameters whose sign the likelihood does not see: it is drawn anew each time.
        flips: &'static [usize],
    },
    /// Stored draws of approximate Bayesian computation, at the task's observation.
    Stored(&'static [u8]),
    /// Nowhere.
    None,
}

/// What is known of the posterior's density.
#[derive(Clone, Copy, Debug)]
pub enum Density {
    /// It is this, at the task's observation.
    Normalised(LogPosterior),
    /// It is this up to a constant.
    Unnormalised(LogPosterior),
    /// Nothing.
    Unknown,
}

/// An inference problem.
pub struct Task {
    /// Its name on the command line.
    pub name: String,
    /// In one line.
    pub about: String,
    /// Prior, simulator and observation. For the paper's first three tasks x_o is the paper's, for the others the row of
    /// `didyma simulate TASK --theta truth -n 1`, frozen here (rounded, but for Hodgkin-Huxley).
    pub problem: Problem<'static>,
    /// θ*, the parameters that the observation is thought to come from, if it is known.
    pub truth: Option<Vec<f64>>,
    /// s, the scale of each summary in distances, if it is known.
    pub scale: Option<Vec<f64>>,
    /// What the parameters are called in figures.
    pub labels: Vec<String>,
    /// Names of the summaries.
    pub summaries: Vec<String>,
    /// A prior that is the same but for regions where the posterior is 0 for sure, if there are any.
    pub support: Option<Prior>,
    /// Where samples of its posterior come from.
    pub reference: Reference,
    /// What is known of its posterior's density.
    pub density: Density,
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// A task, made when it is asked for.
type Maker = fn() -> Result<Task>;

/// All tasks by name.
const TASKS: [(&str, Maker); 8] = [
    ("two-moons", two_moons::task),
    ("lotka-volterra", lotka_volterra::task),
    ("mg1", mg1::task),
    ("hodgkin-huxley", hodgkin_huxley::task),
    ("gaussian-linear", gaussian::linear),
    ("gaussian-mixture", gaussian::mixture),
    ("slcp", slcp::task),
    ("sir", sir::task),
];

impl Task {
    /// The names of all tasks.
    pub const NAMES: [&'static str; TASKS.len()] = {
        let mut names = [""; TASKS.len()];
        let mut i = 0;
        while i < names.len() {
            names[i] = TASKS[i].0;
            i += 1;
        }
        names
    };

    /// The task of this name.
    ///
    /// ```
    /// use didyma::tasks::Task;
    /// let task = Task::named("two-moons").unwrap();
    /// assert_eq!((task.problem.prior().dim(), task.problem.simulator().x_dim()), (2, 2));
    /// assert!(Task::named("three-moons").is_none());
    /// ```
    pub fn named(name: &str) -> Option<Self> {
        let (_, make) = TASKS.iter().find(|(known, _)| *known == name)?;
        Some(make().expect("the tasks here are valid"))
    }
}
