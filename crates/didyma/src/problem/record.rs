//! A problem without anything that runs: what is stored of it.

use super::Problem;
use crate::error::{Error, Result};
use crate::names::{self, Use};
use crate::problem::prior::Prior;
use crate::problem::simulator::Elsewhere;
use crate::problem::simulator::program::Program;
use crate::problem::tasks::{Density, Reference, Task};
use serde::{Deserialize, Serialize};

/// A problem without anything that runs: what a run is of, as it is stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProblemRecord {
    /// What it is called.
    pub name: String,
    /// In one line.
    pub about: String,
    /// The prior.
    pub prior: Prior,
    /// What the parameters are called in figures.
    pub labels: Vec<String>,
    /// Names of the summaries.
    pub summaries: Vec<String>,
    /// x_o.
    pub observation: Vec<f64>,
    /// The true parameters, if they are known.
    pub truth: Option<Vec<f64>>,
    /// Where simulations come from.
    pub source: Source,
}

/// Where simulations come from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A built-in task.
    Task(String),
    /// A program of the user's.
    Program(Program),
    /// A function of the program that began the run, in Python or Rust.
    Function {
        /// Rows of a call; 0 for a function of single rows.
        batch: usize,
    },
}

impl ProblemRecord {
    /// The record of a problem of which nothing more is known: parameters are called by their names, summaries x1, x2, ….
    pub fn plain(name: String, prior: Prior, observation: Vec<f64>, source: Source) -> Self {
        let labels = prior.names().map(str::to_owned).collect();
        let summaries = (1..=observation.len()).map(|i| format!("x{i}")).collect();
        let (about, truth) = (String::new(), None);
        Self { name, about, prior, labels, summaries, observation, truth, source }
    }

    /// Refuses names that a problem cannot have: its own, its summaries', its labels. A prior has checked its own.
    pub fn check_names(&self) -> Result<()> {
        names::check("the problem's name", &self.name, Use::Folder)?;
        let labels = self.labels.iter().map(|label| ("the label", label, Use::Text));
        let summaries = self.summaries.iter().map(|name| ("the summary", name, Use::Column));
        labels.chain(summaries).try_for_each(|(what, name, of)| names::check(what, name, of))
    }

    /// The problem with its simulator; no process is started before the first simulation.
    pub fn task(&self) -> Result<Task> {
        let Self { name, about, prior, labels, summaries, observation, truth, source } =
            self.clone();
        let problem = match source {
            Source::Function { .. } => {
                let (theta_dim, x_dim) = (prior.dim(), observation.len());
                Problem::new(prior, Elsewhere { theta_dim, x_dim }, observation)?
            }
            Source::Program(program) => {
                let parameters = prior.names().map(str::to_owned).collect();
                let simulator = program.simulator(parameters, summaries.clone())?;
                Problem::new(prior, simulator, observation)?
            }
            Source::Task(of) => {
                let task = built_in(&of)?;
                if *task.problem.prior() == prior && task.problem.observation() == observation {
                    // All that is known of the task is true of the problem.
                    return Ok(Task { name, about, labels, summaries, truth, ..task });
                }
                Problem { prior, observation, ..task.problem }.checked()?
            }
        };
        let (scale, support) = (None, None);
        let (reference, density) = (Reference::None, Density::Unknown);
        Ok(Task {
            name,
            about,
            problem,
            truth,
            scale,
            labels,
            summaries,
            support,
            reference,
            density,
        })
    }

    /// Whether simulations cost next to nothing, as those of built-in tasks do, so that figures may make some.
    pub fn is_cheap(&self) -> bool {
        matches!(self.source, Source::Task(_))
    }
}

/// The built-in task of a name.
pub(crate) fn built_in(name: &str) -> Result<Task> {
    Task::named(name).ok_or_else(|| {
        let known = Task::NAMES.join(", ");
        Error::setting("task", name, format!("one that this version has: {known}"))
    })
}
