//! `didyma tasks`: the built-in problems.

use crate::ExitCode;
use crate::output::show;
use clap::Parser;
use didyma::tasks::{Reference, Task};
use serde::Serialize;
use std::fmt;

/// List the built-in problems.
#[derive(Debug, Parser)]
pub struct TasksArgs {
    /// Print one JSON object instead of text.
    #[arg(long)]
    pub json: bool,
}

pub fn run(args: &TasksArgs) -> anyhow::Result<ExitCode> {
    show(&tasks(), args.json)
}

/// All tasks; its field names are the JSON keys.
#[derive(Debug, Serialize)]
struct TaskList {
    tasks: Vec<TaskLine>,
}

#[derive(Debug, Serialize)]
struct TaskLine {
    name: String,
    about: String,
    parameters: Vec<ParameterLine>,
    summaries: Vec<String>,
    observation: Vec<f64>,
    truth: Option<Vec<f64>>,
    scale: Option<Vec<f64>>,
    reference: &'static str,
}

#[derive(Debug, Serialize)]
struct ParameterLine {
    name: String,
    label: String,
    prior: String,
}

fn tasks() -> TaskList {
    let line = |task: Task| {
        let parameters = task.problem.prior().parameters().iter();
        TaskLine {
            name: task.name,
            about: task.about,
            parameters: parameters
                .zip(task.labels)
                .map(|(p, label)| ParameterLine {
                    name: p.name.clone(),
                    label,
                    prior: p.marginal.to_string(),
                })
                .collect(),
            summaries: task.summaries,
            observation: task.problem.observation().to_vec(),
            truth: task.truth,
            scale: task.scale,
            reference: match task.reference {
                Reference::Exact(_) => "exact",
                Reference::Chain { .. } => "Markov chain",
                Reference::Stored(_) => "stored",
                Reference::None => "none",
            },
        }
    };
    TaskList { tasks: Task::NAMES.into_iter().filter_map(Task::named).map(line).collect() }
}

impl fmt::Display for TaskList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "task              parameters  summaries  reference     about")?;
        for t in &self.tasks {
            let (parameters, summaries) = (t.parameters.len(), t.summaries.len());
            let (name, reference, about) = (&t.name, t.reference, &t.about);
            write!(f, "\n{name:<16}  {parameters:>10}  {summaries:>9}  {reference:<12}  {about}")?;
        }
        Ok(())
    }
}
