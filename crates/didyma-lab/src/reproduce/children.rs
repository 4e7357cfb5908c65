//! Carrying runs out, several side by side, each in a process of its own.
//!
//! A process of its own has its own memory, which is a result here, and may fail without taking the others with it.

use super::Console;
use super::plan::Planned;
use anyhow::{Context, bail};
use didyma::run::{DATABASE, Fault, Manifest, POSTERIOR_CSV, RunDir, SUMMARY, Summary};
use didyma::{Error, parallel};
use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// A run that did not finish.
#[derive(Debug)]
pub struct Failure {
    /// Its place below the folder of all runs.
    pub folder: String,
    /// The last thing it said.
    pub reason: String,
}

/// A process at work.
struct Working<'a> {
    run: &'a Planned,
    child: Child,
    log: PathBuf,
}

/// Nothing is left behind, whatever ends this command: a run survives being killed, and goes on from its last epoch.
impl Drop for Working<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill().and_then(|()| self.child.wait());
    }
}

/// Carries out what is missing; returns the runs that failed. Stopped, it returns none and leaves everything such that
/// the same command goes on.
pub fn carry_out(
    planned: &[Planned],
    folder: &Path,
    jobs: usize,
    program: &[OsString],
    stop: &AtomicBool,
    console: &dyn Console,
) -> anyhow::Result<Option<Vec<Failure>>> {
    let mut waiting = VecDeque::new();
    for run in planned {
        if !is_finished(run, &folder.join(run.folder()))? {
            waiting.push_back(run);
        }
    }
    let (total, mut done) = (waiting.len(), 0);
    if total > 0 {
        console.tell(&format!("{total} of {} runs to do, {jobs} at a time", planned.len()));
    }
    let threads = if jobs == 1 { parallel::cores() } else { 1 };
    let (mut working, mut failures) = (Vec::<Working>::new(), Vec::new());
    while !(waiting.is_empty() && working.is_empty()) {
        if stop.load(Ordering::Relaxed) {
            return Ok(None);
        }
        while working.len() < jobs && !waiting.is_empty() {
            let run = waiting.pop_front().expect("one is waiting");
            working.push(begin(run, folder, program, threads)?);
        }
        for (run, outcome) in take_ended(&mut working, folder)? {
            done += 1;
            let told = match outcome {
                Ok(words) => words,
                Err(failure) => {
                    let words = format!("failed: {}", failure.reason);
                    failures.push(failure);
                    words
                }
            };
            console.tell(&format!("[{done}/{total}] {} {told}", run.folder()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(Some(failures))
}

/// Takes out the runs whose processes have ended, with what they came to.
fn take_ended<'a>(
    working: &mut Vec<Working<'a>>,
    folder: &Path,
) -> anyhow::Result<Vec<(&'a Planned, Result<String, Failure>)>> {
    let (mut ended, mut i) = (Vec::new(), 0);
    while i < working.len() {
        match working[i].child.try_wait().context("a run could not be waited for")? {
            None => i += 1,
            Some(status) => {
                let work = working.swap_remove(i);
                ended.push((work.run, outcome(work.run, folder, &work.log, status)));
            }
        }
    }
    Ok(ended)
}

/// Whether a run has begun there: one that was killed while it began is begun anew.
fn has_begun(path: &Path) -> anyhow::Result<Option<RunDir>> {
    if !path.join(DATABASE).is_file() {
        return Ok(None);
    }
    match RunDir::read(path) {
        Ok(dir) => Ok(Some(dir)),
        Err(Error::Run { fault: Fault::NotBegun, .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Whether the run is there with its results; an error if another one is in its place.
fn is_finished(run: &Planned, path: &Path) -> anyhow::Result<bool> {
    let Some(dir) = has_begun(path)? else { return Ok(false) };
    let wanted = Manifest::of_task(run.task, run.config.clone());
    if *dir.manifest() != wanted {
        bail!(
            "{} was made with other settings (--rounds, --quick, or another version): choose another --out, or remove \
             it",
            path.display()
        );
    }
    let exported = [SUMMARY, POSTERIOR_CSV].iter().all(|name| path.join(name).is_file());
    Ok(exported && Summary::read(&dir)?.finished)
}

fn begin<'a>(
    run: &'a Planned,
    folder: &Path,
    program: &[OsString],
    threads: usize,
) -> anyhow::Result<Working<'a>> {
    let path = folder.join(run.folder());
    let parent = path.parent().expect("it lies below the folder");
    std::fs::create_dir_all(parent)
        .with_context(|| format!("--out: could not make the folder {}", parent.display()))?;
    let log = path.with_extension("log");
    let told = File::create(&log).with_context(|| format!("could not write {}", log.display()))?;
    let [program, words @ ..] = program else {
        bail!("this program is not found");
    };
    let mut command = Command::new(program);
    command.args(words);
    if has_begun(&path)?.is_some() {
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
fn outcome(
    run: &Planned,
    folder: &Path,
    log: &Path,
    status: ExitStatus,
) -> Result<String, Failure> {
    let summary = RunDir::read(&folder.join(run.folder())).and_then(|dir| Summary::read(&dir));
    match summary {
        Ok(summary) if summary.finished && status.success() => {
            let scores = summary.rounds.last().map(|round| round.scores).unwrap_or_default();
            let score = match (scores.c2st_words(3), scores.lmd) {
                (Some(c2st), _) => format!("C2ST {c2st}, "),
                (None, Some(lmd)) => format!("LMD {lmd:.3}, "),
                _ => String::new(),
            };
            Ok(format!("{score}{:.0} s", summary.seconds_total))
        }
        _ => {
            let told = std::fs::read_to_string(log).unwrap_or_default();
            let last = told.lines().rev().find(|line| !line.trim().is_empty());
            let reason = match status.code() {
                Some(_) => last.unwrap_or("it ended without a word").to_owned(),
                None => format!("it was ended by a {status}"),
            };
            Err(Failure { folder: run.folder(), reason })
        }
    }
}
