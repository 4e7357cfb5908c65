//! A run on the disk, as the library reads it back.

use super::{samples, tiny};
use didyma::config::{Config, Profile};
use didyma::run::{CHECKPOINT, DATABASE, Manifest, RunDir, execute};
use didyma::storage::TensorFile;
use didyma::tasks::Task;
use didyma::{Event, Observer, infer_from};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

/// Keeps the first checkpoint of a run.
struct FirstCheckpoint {
    from: PathBuf,
    to: PathBuf,
}

impl Observer for FirstCheckpoint {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if matches!(event, Event::Epoch { .. }) && !self.to.exists() {
            std::fs::copy(&self.from, &self.to).unwrap();
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// A finished run in `dir`, and beside it its first checkpoint.
fn recorded(dir: &Path, config: &Config) {
    let task = Task::named("two-moons").unwrap();
    let manifest = Manifest::of_task(&task.name, config.clone());
    let run = RunDir::create(dir, &manifest).unwrap();
    let mut first = FirstCheckpoint { from: run.file(CHECKPOINT), to: dir.with_extension("first") };
    let state = run.progress().unwrap();
    execute(run, state, &task.problem, None, 2, &mut first).unwrap();
}

fn refusal(dir: &Path) -> String {
    RunDir::open(dir).unwrap().progress().unwrap_err().to_string()
}

#[test]
fn a_finished_run_is_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let config = tiny(Profile::Default);
    recorded(&dir, &config);
    let run = RunDir::read(&dir).unwrap();
    let found = run.progress().unwrap();
    assert_eq!((found.rows.len(), found.reports.len()), (240, 2));
    let task = Task::named("two-moons").unwrap();
    let again = infer_from(&task.problem, None, &config, 1, found, &mut ()).unwrap();
    let (again, stored) = (again.posterior.unwrap(), run.posterior().unwrap());
    assert_eq!(samples(&again, 100), samples(&stored, 100));
}

/// Going on from a checkpoint of another time than the database would draw parameters from the wrong proposal.
#[test]
fn files_of_different_times_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let mut config = tiny(Profile::Default);
    config.rounds = 1;
    recorded(&dir, &config);
    let last = std::fs::read(dir.join(CHECKPOINT)).unwrap();
    std::fs::copy(dir.with_extension("first"), dir.join(CHECKPOINT)).unwrap();
    let told = refusal(&dir);
    assert!(told.contains(CHECKPOINT) && told.contains("older than the database"), "{told}");
    std::fs::write(dir.join(CHECKPOINT), last).unwrap();
    let change = |sql: &str| {
        rusqlite::Connection::open(dir.join(DATABASE)).unwrap().execute_batch(sql).unwrap();
    };
    change("DELETE FROM rounds");
    RunDir::open(&dir).unwrap().progress().unwrap();
    change("DELETE FROM simulations WHERE \"index\" > 50");
    let told = refusal(&dir);
    assert!(told.contains(CHECKPOINT) && told.contains("newer than the database"), "{told}");
}

/// Before there were ensembles, the state of the only member stood among the other fields, in a file of version 1.
#[test]
fn a_checkpoint_of_one_member_from_before_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    recorded(&dir, &tiny(Profile::Default));
    let expected = RunDir::open(&dir).unwrap().training().unwrap();
    let (path, names) = (dir.join(CHECKPOINT), ["params", "m", "v", "best"]);
    let mut file = TensorFile::load(&path, "checkpoint", &names).unwrap();
    let mut told: serde_json::Map<String, Value> = serde_json::from_str(&file.json).unwrap();
    told.remove("seconds_together");
    let members = told.remove("members").unwrap();
    told.extend(members[0].as_object().unwrap().clone());
    file.json = Value::from(told).to_string();
    std::fs::write(&path, file.encode()).unwrap();
    let mut found = RunDir::open(&dir).unwrap().training().unwrap();
    // It had one time for both.
    let (found_seconds, seconds) =
        (&mut found.as_mut().unwrap().seconds, expected.as_ref().unwrap());
    assert_eq!(*found_seconds, seconds.members[0].seconds);
    *found_seconds = seconds.seconds;
    assert_eq!(found, expected);
}

#[test]
fn without_a_checkpoint_only_what_is_carried_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    for (name, profile) in [("default", Profile::Default), ("paper", Profile::Paper)] {
        let dir = folder.path().join(name);
        let mut config = tiny(profile);
        config.train.epochs = 3;
        recorded(&dir, &config);
        std::fs::remove_file(dir.join(CHECKPOINT)).unwrap();
        let found = RunDir::open(&dir).unwrap().progress().unwrap();
        assert!(found.training.is_some_and(|t| t.round == 2 && t.is_done()), "{name}");
        let sql = "DELETE FROM rounds WHERE round = 2";
        rusqlite::Connection::open(dir.join(DATABASE)).unwrap().execute_batch(sql).unwrap();
        let found = RunDir::open(&dir).unwrap().progress();
        match profile {
            Profile::Default => assert_eq!(found.unwrap().training.unwrap().round, 1),
            Profile::Paper => {
                let told = found.unwrap_err().to_string();
                assert!(told.contains(CHECKPOINT) && told.contains("optimiser"), "{told}");
            }
        }
    }
}
