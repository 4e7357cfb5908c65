//! Simulations by a process each.

use super::gate::{Gate, INTERRUPTED, TICK};
use super::launch::{
    FAREWELL, GRACE, Launch, NUMBER, SHORT_GRACE, Started, no_thread, until_closed,
};
use super::parse::{Answer, once_output};
use super::pipes;
use super::process::late;
use super::template::{Place, Word, has};
use crate::error::Error;
use crate::problem::simulator::{SimulationFailed, Simulator};
use crate::rng::SimulationStream;
use serde_json::{Map, Value, json};
use std::io::Read;
use std::path::Path;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// Bytes of the output, beside those of its numbers.
const OUTPUT: usize = 1 << 20;

/// See [`Call::Once`](super::Call::Once).
#[derive(Debug)]
pub(super) struct Once {
    pub launch: Launch,
    pub command: Vec<Word>,
    pub parameters: Vec<String>,
    pub summaries: Vec<String>,
    pub workers: Option<usize>,
    pub time_limit: Duration,
    pub gate: Gate,
}

impl Once {
    fn run(&self, theta: &[f64], seed: u64) -> Answer {
        let refused = |what: &'static str, error| {
            self.gate.note_scratch(what, &error);
            format!("could not {what} for the program: {error}")
        };
        let scratch = tempfile::Builder::new().prefix("didyma-").tempdir();
        let scratch = scratch.map_err(|error| refused("make a temporary directory", error))?;
        let (input, output) = (scratch.path().join("input.json"), scratch.path().join("output"));
        if has(&self.command, Place::Input) {
            let text = self.input(theta, seed).to_string();
            std::fs::write(&input, text).map_err(|error| refused("write the input", error))?;
        }
        let place = |place| match place {
            // As short as it can be and still exact; 1e300 needs no 301 digits.
            Place::Parameter(i) => format!("{:?}", theta[i]),
            Place::Seed => seed.to_string(),
            Place::Input => input.display().to_string(),
            Place::Output => output.display().to_string(),
        };
        let words: Vec<String> = self.command.iter().map(|word| word.fill(place)).collect();
        let mut started =
            self.launch.start(&words, Stdio::null(), Some(scratch.path()), &self.gate)?;
        let limit = OUTPUT + NUMBER * self.summaries.len();
        let stdout = started.interest.tap(started.group.child.stdout.take().expect("it is piped"));
        let collected = pipes::collect(stdout, limit);
        let (said, closed) = collected.map_err(|error| no_thread(&error, &self.gate))?;
        let outcome = self.wait(&mut started, &closed);
        let said = said.take();
        let to_file = has(&self.command, Place::Output);
        let answer = outcome.and_then(|()| {
            let bytes = if to_file { self.file(&output, limit)? } else { said.clone() };
            match bytes.len() > limit {
                true => Err(format!("the program's output is longer than {limit} bytes")),
                false => once_output(&bytes, &self.summaries),
            }
        });
        answer.map_err(|reason| {
            started.words.push(&said);
            started.reason(&reason)
        })
    }

    fn input(&self, theta: &[f64], seed: u64) -> Value {
        let names = self.parameters.iter().cloned();
        let named: Map<String, Value> = names.zip(theta.iter().map(|&v| json!(v))).collect();
        json!({"seed": seed, "theta": theta, "parameters": named})
    }

    /// Waits for the end of the process, and of its output.
    fn wait(&self, started: &mut Started, closed: &Receiver<()>) -> Result<(), String> {
        let deadline = Instant::now().checked_add(self.time_limit);
        let late = || late(self.time_limit, Duration::ZERO);
        loop {
            let left = deadline.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
            let stop = match (self.gate.interrupted(), left.is_zero()) {
                (true, _) => Some((INTERRUPTED.to_owned(), SHORT_GRACE)),
                (_, true) => Some((late(), GRACE)),
                _ => None,
            };
            if let Some((reason, grace)) = stop {
                started.group.end(grace);
                return Err(reason);
            }
            // Its output closes when it ends, unless it was closed before or others hold it open.
            let pause = left.min(TICK);
            if closed.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                started.group.wait(pause);
            }
            if let Some(end) = started.group.poll() {
                let end = end.clone();
                until_closed(closed, FAREWELL);
                return if end.success { Ok(()) } else { Err(format!("the program {}", end.how)) };
            }
        }
    }

    /// The beginning of a file, up to one byte more than allowed.
    fn file(&self, path: &Path, limit: usize) -> Result<Vec<u8>, String> {
        let read = || {
            // Anything else, such as a pipe, could be waited for without end.
            if !std::fs::metadata(path)?.is_file() {
                return Err(std::io::Error::other("it is no file"));
            }
            let mut bytes = Vec::new();
            std::fs::File::open(path)?.take(limit as u64 + 1).read_to_end(&mut bytes)?;
            Ok(bytes)
        };
        read().map_err(|error| {
            self.gate.note("read the output", &error);
            format!("the program wrote no {{output}} that can be read: {error}")
        })
    }
}

impl Simulator for Once {
    fn theta_dim(&self) -> usize {
        self.parameters.len()
    }

    fn x_dim(&self) -> usize {
        self.summaries.len()
    }

    fn workers(&self) -> Option<usize> {
        self.workers
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        self.gate.answer(|| self.run(theta, rng.seed()), x)
    }

    fn interrupt(&self, now: bool) {
        self.gate.interrupt(now);
    }

    fn lack(&self) -> Option<Error> {
        self.gate.lack()
    }
}
