//! What is asked of a run: a user's function or a task, a prior, an observation.

use crate::arrays::{observation, vector, words};
use crate::choices::Choices;
use crate::errors::{Kind, python};
use crate::prior;
use crate::tasks::{Task, TaskSimulator};
use didyma::config::Config;
use didyma::prior::Prior;
use didyma::run::Manifest;
use didyma::{ProblemRecord, Source};
use pyo3::prelude::*;
use std::collections::HashSet;

/// The question of a run.
pub struct Question<'py> {
    pub manifest: Manifest,
    /// The user's function, if it is one.
    pub function: Option<Bound<'py, PyAny>>,
}

/// What a call says of the problem itself.
pub struct Statement<'a, 'py> {
    pub simulator: &'a Bound<'py, PyAny>,
    pub prior: Option<&'a Bound<'py, PyAny>>,
    pub x_o: Option<&'a Bound<'py, PyAny>>,
    pub truth: Option<&'a Bound<'py, PyAny>>,
    pub name: Option<String>,
    pub summaries: Option<&'a Bound<'py, PyAny>>,
}

impl<'py> Statement<'_, 'py> {
    fn summaries(&self) -> PyResult<Option<Vec<String>>> {
        self.summaries.map(|names| words("summaries", names)).transpose()
    }

    /// The question, and all settings.
    pub fn question(&self, choices: &Choices<'_, '_>) -> PyResult<Question<'py>> {
        let Some(task) = task_of(self.simulator) else {
            return self.of_function(choices.config(None)?);
        };
        let config = choices.config(task.file.as_ref().map(|file| &file.1))?;
        let known = &task.known;
        let prior = self.prior.map_or_else(|| Ok(known.problem.prior().clone()), prior::of)?;
        let own = Some(known.problem.observation().len());
        let x_o = self.x_o.map(|x| observation("x_o", x, own)).transpose()?;
        let observation = x_o.unwrap_or_else(|| known.problem.observation().to_vec());
        let whole = prior == *known.problem.prior() && observation == known.problem.observation();
        let plain = self.truth.is_none() && self.name.is_none() && self.summaries.is_none();
        let manifest = match &task.file {
            None if whole && plain => Manifest::of_task(&known.name, config),
            Some(file) if whole && plain => Manifest::of_problem(file.0.clone(), config),
            file => {
                let source = match file {
                    Some(file) => file.0.source.clone(),
                    None => Source::Task(known.name.clone()),
                };
                let name = self.name.clone().unwrap_or_else(|| known.name.clone());
                let plain = ProblemRecord::plain(name, prior, observation, source);
                let summaries = known.summaries.clone();
                let problem = self.completed(ProblemRecord { summaries, ..plain })?;
                Manifest::of_problem(problem, config)
            }
        };
        Ok(Question { manifest, function: None })
    }

    fn of_function(&self, config: Config) -> PyResult<Question<'py>> {
        let missing = |what: &str, give: &str| {
            Kind::Input.error(format!("{what} is missing: a simulator of your own needs {give}"))
        };
        let prior = self.prior.ok_or_else(|| missing("prior", "one, as didyma.Uniform"))?;
        let x_o = self.x_o.ok_or_else(|| missing("x_o", "an observation, a vector of numbers"))?;
        let (prior, observation) = (prior::of(prior)?, observation("x_o", x_o, None)?);
        let name = match &self.name {
            Some(name) => name.clone(),
            None => {
                self.simulator.getattr("__name__").and_then(|n| n.extract()).unwrap_or_default()
            }
        };
        // A lambda's name says nothing.
        let name = if name.is_empty() || name.starts_with('<') { "model".to_owned() } else { name };
        let source = Source::Function { batch: 0 };
        let problem = self.completed(ProblemRecord::plain(name, prior, observation, source))?;
        let manifest = Manifest::of_problem(problem, config);
        Ok(Question { manifest, function: Some(self.simulator.clone()) })
    }

    /// The problem with what else was said of it.
    fn completed(&self, plain: ProblemRecord) -> PyResult<ProblemRecord> {
        let truth = truth(self.truth, &plain.prior)?;
        let summaries = self.summaries()?.unwrap_or_else(|| plain.summaries.clone());
        if summaries.len() != plain.observation.len() {
            let (found, expected) = (summaries.len(), plain.observation.len());
            return Err(Kind::Shape.error(format!(
                "summaries has {found} names, but x_o has {expected} numbers: give one for each"
            )));
        }
        let mut seen = HashSet::new();
        if let Some(twice) = summaries.iter().find(|name| !seen.insert(*name)) {
            let text = format!("summaries has {twice:?} twice: give each a name of its own");
            return Err(Kind::Input.error(text));
        }
        let problem = ProblemRecord { summaries, truth, ..plain };
        problem.check_names().map_err(python)?;
        Ok(problem)
    }
}

/// The task that a simulator is, or is of.
pub fn task_of(simulator: &Bound<'_, PyAny>) -> Option<Task> {
    let own = simulator.cast::<TaskSimulator>().map(|simulator| simulator.get().task.clone());
    own.or_else(|_| simulator.cast::<Task>().map(|task| task.get().clone())).ok()
}

/// The true parameters, if they are known.
pub fn truth(truth: Option<&Bound<'_, PyAny>>, prior: &Prior) -> PyResult<Option<Vec<f64>>> {
    let Some(truth) = truth else { return Ok(None) };
    let truth = vector("truth", truth)?;
    if truth.len() != prior.dim() {
        let (found, expected) = (truth.len(), prior.dim());
        return Err(Kind::Shape.error(format!(
            "truth has {found} numbers, but {expected} are needed: one for each parameter"
        )));
    }
    prior.expect_inside(&truth).map_err(|error| Kind::Input.error(format!("truth: {error}")))?;
    Ok(Some(truth))
}
