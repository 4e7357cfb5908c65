//! Carrying runs out, several side by side, each in a process of its own.
//!
//! A process of its own has its own memory, which is a result here, and may fail without taking the others with it.

use super::plan::Planned;
use crate::live::stop_on_interrupt;
use crate::tell;
use anyhow::{Context, bail};
use didyma::parallel;
use didyma::run::{Manifest, RunDir, Summary};
use std::collections::VecDeque;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// A run that did not finish, and the last thing it said.
#[derive(Debug)]
pub struct Failure {
    pub folder: String,
    pub reason: String,
}

/// A process at work.
struct Working<'a> {
    run: &'a Planned,
    child: Child,
    log: PathBuf,
}

/// Carries out what is missing. Stopped by Ctrl-C it leaves everything such that the same command goes on.
pub fn carry_out(planned: &[Planned], folder: &Path, jobs: usize) -> anyhow::Result<Vec<Failure>> {
    let mut waiting = VecDeque::new();
    for run in planned {
        if !is_finished(run, &folder.join(run.folder()))? {
            waiting.push_back(run);
        }
    }
    let (total, mut done) = (waiting.len(), 0);
    if total == 0 {
        return Ok(Vec::new());
    }
    tell(&format!("{total} of {} runs to do, {jobs} at a time", planned.len()));
    let stop = stop_on_interrupt()?;
    let threads = if jobs == 1 { parallel::cores() } else { 1 };
    let (mut working, mut failures) = (Vec::<Working>::new(), Vec::new());
    while !(waiting.is_empty() && working.is_empty()) {
        if stop.load(Ordering::Relaxed) {
            // A run survives that: it goes on from its last epoch.
            working.iter_mut().for_each(|w| drop(w.child.kill().and_then(|()| w.child.wait())));
            bail!("stopped; everything so far is saved. To go on, give the same command again");
        }
        while working.len() < jobs && !waiting.is_empty() {
            let run = waiting.pop_front().expect("one is waiting");
            working.push(begin(run, folder, threads)?);
        }
        let mut i = 0;
        while i < working.len() {
            match working[i].child.try_wait().context("a run could not be waited for")? {
                None => i += 1,
                Some(_) => {
                    done += 1;
                    let Working { run, log, .. } = working.swap_remove(i);
                    let told = match outcome(run, folder, &log) {
                        Ok(words) => words,
                        Err(failure) => {
                            let words = format!("failed: {}", failure.reason);
                            failures.push(failure);
                            words
                        }
                    };
                    tell(&format!("[{done}/{total}] {} {told}", run.folder()));
                }
            }
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(failures)
}

/// Whether the run is there; an error if another one is in its place.
fn is_finished(run: &Planned, path: &Path) -> anyhow::Result<bool> {
    if !path.join(didyma::run::DATABASE).is_file() {
        return Ok(false);
    }
    let dir = RunDir::read(path)?;
    let wanted = Manifest { task: run.task.to_owned(), config: run.config.clone() };
    if Manifest::of(&dir)? != wanted {
        bail!(
            "{} was made with other settings (--rounds, --quick, or another version): choose another --out, or remove \
             it",
            path.display()
        );
    }
    Ok(Summary::read(&dir)?.finished)
}

fn begin<'a>(run: &'a Planned, folder: &Path, threads: usize) -> anyhow::Result<Working<'a>> {
    let path = folder.join(run.folder());
    let parent = path.parent().expect("it lies below the folder");
    std::fs::create_dir_all(parent)
        .with_context(|| format!("--out: could not make the folder {}", parent.display()))?;
    let log = path.with_extension("log");
    let told = File::create(&log).with_context(|| format!("could not write {}", log.display()))?;
    let mut command = Command::new(std::env::current_exe().context("this program is not found")?);
    if path.join(didyma::run::DATABASE).is_file() {
        command.arg("resume").arg(&path);
    } else {
        command.args(run.arguments()).arg("--out").arg(&path);
    }
    command.args(["--json", "--threads", &threads.to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(told);
    let child = command.spawn().context("a run could not be started")?;
    Ok(Working { run, child, log })
}

/// What a run came to, in a few words.
fn outcome(run: &Planned, folder: &Path, log: &Path) -> Result<String, Failure> {
    let summary = RunDir::read(&folder.join(run.folder())).and_then(|dir| Summary::read(&dir));
    match summary {
        Ok(summary) if summary.finished => {
            let scores = summary.rounds.last().map(|round| round.scores).unwrap_or_default();
            let score = match (scores.c2st, scores.lmd) {
                (Some(c2st), _) => format!("C2ST {c2st:.3}, "),
                (None, Some(lmd)) => format!("LMD {lmd:.3}, "),
                _ => String::new(),
            };
            Ok(format!("{score}{:.0} s", summary.seconds_total))
        }
        _ => {
            let told = std::fs::read_to_string(log).unwrap_or_default();
            let last = told.lines().rev().find(|line| !line.trim().is_empty());
            let reason = last.unwrap_or("it ended without a word").to_owned();
            Err(Failure { folder: run.folder(), reason })
        }
    }
}
