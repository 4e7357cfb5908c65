//! The manifest of a run: all that it depends on.

use super::{Fault, error};
use crate::error::Result;
use crate::inference::config::Config;
use crate::names::{self, Use};
use crate::problem::record::{ProblemRecord, Source, built_in};
use crate::problem::tasks::Task;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;

/// All that a run depends on, the program and the kind of CPU excepted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// The name of the task, or of the user's problem.
    pub task: String,
    /// The user's problem, if it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<ProblemRecord>,
    /// Every setting.
    pub config: Config,
}

impl Manifest {
    /// A run of a built-in task.
    pub fn of_task(name: &str, config: Config) -> Self {
        Self { task: name.to_owned(), problem: None, config }
    }

    /// A run of a problem of one's own.
    pub fn of_problem(problem: ProblemRecord, config: Config) -> Self {
        Self { task: problem.name.clone(), problem: Some(problem), config }
    }

    /// Refuses names that a run cannot have. It is asked where a run begins, and where one is read: a directory that was
    /// received may hold names that were made to deceive, and nothing of ours has written them.
    pub fn check_names(&self) -> Result<()> {
        names::check("the problem's name", &self.task, Use::Folder)?;
        self.problem.as_ref().map_or(Ok(()), ProblemRecord::check_names)
    }

    /// The manifest that was read, if its names are good.
    pub(super) fn checked(self) -> std::result::Result<Self, String> {
        self.check_names().map(|()| self).map_err(|error| error.to_string())
    }

    /// The task of the run, with its simulator.
    pub fn task(&self) -> Result<Task> {
        match &self.problem {
            Some(problem) => problem.task(),
            None => built_in(&self.task),
        }
    }

    /// Whether simulations cost next to nothing, so that figures may make some.
    pub fn is_cheap(&self) -> bool {
        self.problem.as_ref().is_none_or(ProblemRecord::is_cheap)
    }

    /// The true parameters, if they are known.
    pub fn truth(&self) -> Option<Vec<f64>> {
        match &self.problem {
            Some(problem) => problem.truth.clone(),
            None => Task::named(&self.task)?.truth,
        }
    }

    /// What a summary is called.
    pub fn summary_name(&self, summary: usize) -> String {
        let names = self.problem.as_ref().map(|problem| &problem.summaries);
        let name = names.and_then(|names| names.get(summary)).cloned();
        name.unwrap_or_else(|| format!("summary {}", summary + 1))
    }

    /// An error unless the run in `path`, which has this manifest, is the one that is asked for. The way a function is
    /// called may differ: it is found out when a run begins.
    pub fn expect(&self, asked: &Self, path: &Path) -> Result<()> {
        let mut asked = asked.clone();
        if let (Some(asked), Some(own)) = (&mut asked.problem, &self.problem)
            && let Source::Function { .. } = asked.source
        {
            asked.source.clone_from(&own.source);
        }
        if *self == asked {
            return Ok(());
        }
        let (own, others) = (self.config.list(), asked.config.list());
        let pairs = own.iter().zip(&others).filter(|((_, a, _), (_, b, _))| a != b);
        let settings: Vec<&str> = pairs.map(|((key, ..), _)| *key).collect();
        let problem = "prior, observation, name, truth, summaries or simulator";
        let what = if settings.is_empty() { problem.to_owned() } else { settings.join(", ") };
        Err(error(path, Fault::Differs { what }))
    }

    /// As files hold it.
    pub fn to_json(&self) -> Value {
        serde_json::to_value(self).expect("numbers and strings")
    }

    /// As the first lines of a table.
    pub(super) fn comments(&self) -> String {
        let mut lines = format!("didyma {}\ntask = {}", env!("CARGO_PKG_VERSION"), self.task);
        for (key, value, _) in self.config.list() {
            lines.push_str(&format!("\n{key} = {value}"));
        }
        lines
    }
}
