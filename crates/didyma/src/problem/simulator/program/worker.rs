//! Simulations by processes that live long and answer requests, line by line.

use super::gate::{Gate, INTERRUPTED};
use super::launch::Launch;
use super::parse::Answer;
use super::process::{Manner, Process, Trouble};
use crate::error::Error;
use crate::problem::simulator::{Job, SimulationFailed, Simulator};
use crate::rng::SimulationStream;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// What processes are given, all together, to end when there is no more to do.
const LEAVE: Duration = Duration::from_secs(1);

/// See [`Call::Worker`](super::Call::Worker).
#[derive(Debug)]
pub(super) struct Worker {
    pub launch: Launch,
    pub command: Vec<String>,
    pub manner: Manner,
    pub parameters: usize,
    pub workers: Option<usize>,
    pub gate: Gate,
    /// Processes with nothing to do.
    pub idle: Mutex<Vec<Process>>,
}

impl Worker {
    fn idle(&self) -> MutexGuard<'_, Vec<Process>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn start(&self) -> Result<Process, String> {
        Process::start(&self.launch, &self.command, &self.manner, &self.gate)
    }

    /// A process that waits for work, or a new one.
    fn process(&self) -> Result<Process, String> {
        loop {
            let Some(mut process) = self.idle().pop() else { return self.start() };
            if process.is_alive() {
                return Ok(process);
            }
        }
    }

    /// Asks for all in one line.
    ///
    /// A crash, a time-out or nonsense in a process that has answered before, or that was asked for several at once, is no
    /// verdict on a simulation: it may be the fault of one before it, or beside it. So what is without an answer is
    /// asked for once more, alone in a fresh process. This makes rows independent of how they are spread over processes.
    fn together(&self, jobs: &mut [Job]) {
        let Some(_place) = self.gate.enter() else { return jobs.iter_mut().for_each(interrupted) };
        let mut process = match self.process() {
            Ok(process) => process,
            Err(reason) => return jobs.iter_mut().for_each(|job| fill(job, Err(reason.clone()))),
        };
        let verdict = process.is_fresh() && jobs.len() == 1;
        let mut open: Vec<&mut Job> = jobs.iter_mut().collect();
        match self.ask(&mut process, &mut open) {
            Ok(()) => self.idle().push(process),
            Err(Trouble::Interrupted) => open.into_iter().for_each(interrupted),
            Err(Trouble::Ended(reason)) if verdict => {
                open.into_iter().for_each(|job| fill(job, Err(reason.clone())));
            }
            Err(Trouble::Ended(_)) => {
                drop(process);
                self.each_alone(open);
            }
        }
    }

    /// Asks a process, and leaves in `open` what has no answer.
    fn ask(&self, process: &mut Process, open: &mut Vec<&mut Job>) -> Result<(), Trouble> {
        let mut answers: Vec<Option<Answer>> = vec![None; open.len()];
        let asked = process.ask(open, &mut answers, &self.manner, &self.gate);
        let mut answers = answers.into_iter();
        open.retain_mut(|job| match answers.next().flatten() {
            Some(answer) => {
                fill(job, answer);
                false
            }
            None => true,
        });
        asked
    }

    /// Each in a fresh process, whose fate is its own.
    fn each_alone(&self, jobs: Vec<&mut Job>) {
        let mut last: Option<Process> = None;
        for job in jobs {
            if let Some(mut process) = last.take() {
                leave(std::slice::from_mut(&mut process));
            }
            if self.gate.interrupted() {
                interrupted(job);
                continue;
            }
            let mut process = match self.start() {
                Ok(process) => process,
                Err(reason) => {
                    fill(job, Err(reason));
                    continue;
                }
            };
            let mut open = vec![job];
            let asked = self.ask(&mut process, &mut open);
            match (asked, open.pop()) {
                (Ok(()), _) => last = Some(process),
                (Err(Trouble::Interrupted), Some(job)) => interrupted(job),
                (Err(Trouble::Ended(reason)), Some(job)) => fill(job, Err(reason)),
                // It was answered, and is in order.
                (Err(_), None) => {}
            }
        }
        self.idle().extend(last);
    }
}

fn fill(job: &mut Job, answer: Answer) {
    job.result = match answer {
        Ok(x) => {
            job.x.copy_from_slice(&x);
            Ok(())
        }
        Err(reason) => Err(SimulationFailed(reason)),
    };
}

fn interrupted(job: &mut Job) {
    job.result = Err(SimulationFailed(INTERRUPTED.to_owned()));
}

/// Lets processes end by themselves for a moment; they are killed when they are dropped.
fn leave(processes: &mut [Process]) {
    processes.iter_mut().for_each(Process::close);
    let until = Instant::now() + LEAVE;
    for process in processes {
        process.wait(until.saturating_duration_since(Instant::now()));
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        leave(&mut self.idle());
    }
}

impl Simulator for Worker {
    fn theta_dim(&self) -> usize {
        self.parameters
    }

    fn x_dim(&self) -> usize {
        self.manner.summaries
    }

    fn workers(&self) -> Option<usize> {
        self.workers
    }

    fn batch(&self) -> usize {
        self.manner.batch
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        let (theta, rng) = (theta.to_vec(), rng.clone());
        let mut job = [Job { theta, rng, x: vec![f64::NAN; x.len()], result: Ok(()) }];
        self.together(&mut job);
        let [Job { x: found, result, .. }] = job;
        x.copy_from_slice(&found);
        result
    }

    fn simulate_batch(&self, batch: &mut [Job]) {
        batch.chunks_mut(self.manner.batch).for_each(|jobs| self.together(jobs));
    }

    fn interrupt(&self, now: bool) {
        self.gate.interrupt(now);
    }

    fn lack(&self) -> Option<Error> {
        self.gate.lack()
    }
}
