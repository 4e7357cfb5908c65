//! A task by its name, or a user's problem by its file: what every command that works on one is given.

use crate::output::tell;
use anyhow::Context;
use clap::Parser;
use didyma::ProblemRecord;
use didyma::problem_file::{FileSettings, ProblemFile};
use didyma::tasks::Task;
use std::path::{Path, PathBuf};

/// A task or a problem file.
#[derive(Debug, Clone, Parser)]
pub struct ProblemArgs {
    /// A built-in task (`didyma tasks` lists them), or the TOML file of a problem of your own.
    #[arg(value_name = "TASK|FILE.toml", value_parser = given)]
    given: ProblemChoice,
}

/// A task or a file, as it was typed.
#[derive(Debug, Clone)]
pub enum ProblemChoice {
    Task(&'static str),
    File(PathBuf),
}

/// A problem, ready to be worked on.
pub struct LoadedProblem {
    pub task: Task,
    /// The contents of the file; none of a built-in task.
    pub file: Option<(ProblemRecord, FileSettings)>,
}

impl ProblemArgs {
    pub fn of(given: ProblemChoice) -> Self {
        Self { given }
    }

    pub fn load(&self) -> anyhow::Result<LoadedProblem> {
        self.given.load(|_| {})
    }

    /// Loads the problem with changes of what its file says.
    pub fn load_with(
        &self,
        change: impl FnOnce(&mut ProblemRecord),
    ) -> anyhow::Result<LoadedProblem> {
        self.given.load(change)
    }

    pub fn task(&self) -> anyhow::Result<Task> {
        Ok(self.load()?.task)
    }
}

impl ProblemChoice {
    fn load(&self, change: impl FnOnce(&mut ProblemRecord)) -> anyhow::Result<LoadedProblem> {
        match self {
            Self::Task(name) => {
                let task = Task::named(name).context("only known names are accepted")?;
                if Path::new(name).join("problem.toml").is_file() {
                    tell(&format!(
                        "note: {name} is the built-in task; for the folder write {name}/problem.toml"
                    ));
                }
                Ok(LoadedProblem { task, file: None })
            }
            Self::File(path) => {
                let ProblemFile { mut problem, settings } = ProblemFile::read(path)?;
                change(&mut problem);
                Ok(LoadedProblem { task: problem.task()?, file: Some((problem, settings)) })
            }
        }
    }

    pub fn task(&self) -> anyhow::Result<Task> {
        Ok(self.load(|_| {})?.task)
    }
}

/// A name that is no task's is a file if it looks like one.
pub fn given(text: &str) -> Result<ProblemChoice, String> {
    if let Some(name) = Task::NAMES.into_iter().find(|name| *name == text) {
        return Ok(ProblemChoice::Task(name));
    }
    let path = Path::new(text);
    if path.is_dir() {
        let inside = path.join("problem.toml");
        return match inside.is_file() {
            true => Ok(ProblemChoice::File(inside)),
            false => {
                Err("it is a folder without a problem.toml: give the problem's file".to_owned())
            }
        };
    }
    if text.ends_with(".toml") || path.is_file() {
        return match path.is_file() {
            true => Ok(ProblemChoice::File(path.to_owned())),
            false => Err("there is no such file: `didyma init NAME` writes one".to_owned()),
        };
    }
    Err(format!(
        "give a built-in task ({}), or the TOML file of a problem of your own (`didyma init NAME` writes one)",
        Task::NAMES.join(", ")
    ))
}
