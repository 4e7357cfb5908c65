//! Simulations by a UM-Bridge server, over HTTP.

use super::gate::{Gate, INTERRUPTED, TICK};
use super::launch::{NUMBER, no_thread};
use super::parse::{Answer, umbridge_reply, umbridge_sizes};
use super::process::late;
use crate::error::Error;
use crate::problem::simulator::{SimulationFailed, Simulator};
use crate::rng::SimulationStream;
use serde_json::{Map, Value, json};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use ureq::Agent;

/// Bytes of an answer, beside those of its numbers.
const BODY: usize = 1 << 20;
/// The pause before the first repetition; each is twice as long as the one before, up to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(8);
/// Repetitions if nobody says how many: they span the 20 s that a server may need to be started again.
pub(crate) const RETRIES: u64 = 7;
/// Servers close connections that nobody uses; those that are older than this are not tried.
const IDLE: Duration = Duration::from_secs(2);

/// Where the model is, and what it is told: see [`Call::UmBridge`](super::Call::UmBridge).
#[derive(Debug)]
pub(super) struct Target {
    pub url: String,
    pub model: String,
    pub config: Map<String, Value>,
    pub seed: String,
    pub retries: u32,
}

/// Sizes of a model's inputs and of its outputs.
#[derive(Clone, Debug)]
struct Sizes {
    inputs: Vec<usize>,
    outputs: Vec<usize>,
}

/// These, or why they are not known.
type Announced = Result<Sizes, String>;

/// A client of it.
#[derive(Debug)]
pub(super) struct UmBridge {
    target: Target,
    parameters: usize,
    summaries: usize,
    workers: Option<usize>,
    time_limit: Duration,
    gate: Gate,
    agent: Agent,
    /// What the server has announced, and when.
    sizes: Mutex<Option<(Announced, Instant)>>,
}

/// What a server answered, or why it did not.
enum Reply {
    Answer(u16, Vec<u8>),
    /// Worth another try; with what the system said, if it did.
    Absent(String, Option<std::io::Error>),
    Bad(String),
}

impl UmBridge {
    pub(super) fn new(
        target: Target,
        (parameters, summaries): (usize, usize),
        workers: Option<usize>,
        time_limit: Duration,
    ) -> Self {
        // Without proxies and redirections; no status is an error.
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .max_redirects(0)
            .max_idle_age(IDLE)
            .timeout_global(Some(time_limit));
        let (agent, gate) = (config.build().into(), Gate::new(workers));
        let sizes = Mutex::default();
        Self { target, parameters, summaries, workers, time_limit, gate, agent, sizes }
    }

    fn evaluate(&self, theta: &[f64], seed: u64) -> Answer {
        let sizes = self.sizes()?;
        let mut rest = theta;
        let mut input = Vec::with_capacity(sizes.inputs.len());
        for size in sizes.inputs {
            let (part, after) = rest.split_at(size);
            input.push(part);
            rest = after;
        }
        let mut config = self.target.config.clone();
        if !self.target.seed.is_empty() {
            config.insert(self.target.seed.clone(), seed.into());
        }
        let body = json!({"name": self.target.model, "input": input, "config": config});
        let (status, body) = self.post("Evaluate", &body)?;
        umbridge_reply(status, &body, &sizes.outputs)
    }

    /// Sizes of inputs and outputs; asked for once, and compared with what is expected.
    fn sizes(&self) -> Announced {
        // Others wait, rather than ask the same, and take the answer as theirs, also if there was none.
        let begun = Instant::now();
        let mut known = self.sizes.lock().unwrap_or_else(PoisonError::into_inner);
        match &*known {
            Some((Ok(sizes), _)) => return Ok(sizes.clone()),
            Some((Err(reason), when)) if *when > begun => return Err(reason.clone()),
            _ => {}
        }
        let found = self.ask_sizes();
        known.insert((found, Instant::now())).0.clone()
    }

    fn ask_sizes(&self) -> Announced {
        let body = json!({"name": self.target.model, "config": self.target.config});
        let ask = |path: &str, key: &str, expected: usize, what: &str| {
            let (status, answer) = self.post(path, &body)?;
            let sizes = umbridge_sizes(status, &answer, key)?;
            match sizes.iter().try_fold(0usize, |sum, &size| sum.checked_add(size)) {
                Some(sum) if sum == expected => Ok(sizes),
                _ => Err(format!(
                    "model {} at {} has {key} {sizes:?}, but there are {expected} {what}: state as many as it has",
                    self.target.model, self.target.url
                )),
            }
        };
        let inputs = ask("InputSizes", "inputSizes", self.parameters, "parameters")?;
        let outputs = ask("OutputSizes", "outputSizes", self.summaries, "summaries")?;
        Ok(Sizes { inputs, outputs })
    }

    /// Asks, and asks again while there seems to be nobody.
    fn post(&self, path: &str, body: &Value) -> Result<(u16, Vec<u8>), String> {
        let body = serde_json::to_vec(body).expect("numbers and strings");
        let mut pauses = pauses(self.target.retries);
        loop {
            let (reply, pause) = (self.attempt(path, body.clone())?, pauses.next());
            match (reply, pause) {
                (Reply::Answer(429 | 502 | 503 | 504, _) | Reply::Absent(..), Some(pause)) => {
                    self.sleep(pause)?;
                }
                (Reply::Answer(status, body), _) => return Ok((status, body)),
                (Reply::Bad(reason), _) => return Err(reason),
                (Reply::Absent(reason, error), None) => {
                    if let Some(error) = error {
                        self.gate.note("reach the server", &error);
                    }
                    return Err(reason);
                }
            }
        }
    }

    /// One request, in a thread of its own, since only that can be left alone when interrupted.
    fn attempt(&self, path: &str, body: Vec<u8>) -> Result<Reply, String> {
        let url = format!("{}/{path}", self.target.url.trim_end_matches('/'));
        let limit = BODY + NUMBER * self.summaries;
        let (agent, time_limit) = (self.agent.clone(), self.time_limit);
        let (sender, receiver) = channel();
        let request = move || {
            let _ = sender.send(request(&agent, &url, &body, limit, time_limit));
        };
        let thread = std::thread::Builder::new().spawn(request);
        thread.map_err(|error| no_thread(&error, &self.gate))?;
        loop {
            match receiver.recv_timeout(TICK) {
                Ok(reply) => return Ok(reply),
                Err(RecvTimeoutError::Timeout) if !self.gate.interrupted() => {}
                Err(RecvTimeoutError::Timeout) => return Err(INTERRUPTED.to_owned()),
                Err(RecvTimeoutError::Disconnected) => {
                    return Err("the request panicked".to_owned());
                }
            }
        }
    }

    fn sleep(&self, pause: Duration) -> Result<(), String> {
        let until = Instant::now() + pause;
        while Instant::now() < until {
            if self.gate.interrupted() {
                return Err(INTERRUPTED.to_owned());
            }
            std::thread::sleep(TICK.min(until.saturating_duration_since(Instant::now())));
        }
        Ok(())
    }
}

/// The pauses before repetitions.
fn pauses(retries: u32) -> impl Iterator<Item = Duration> {
    let longer = |pause: &Duration| Some((2 * *pause).min(LONGEST_PAUSE));
    std::iter::successors(Some(FIRST_PAUSE), longer).take(retries as usize)
}

fn request(agent: &Agent, url: &str, body: &[u8], limit: usize, time_limit: Duration) -> Reply {
    let answer = || {
        let mut response = agent.post(url).content_type("application/json").send(body)?;
        let body = response.body_mut().with_config().limit(limit as u64).read_to_vec()?;
        Ok((response.status().as_u16(), body))
    };
    match answer() {
        Ok((status, body)) => Reply::Answer(status, body),
        Err(ureq::Error::Timeout(_)) => Reply::Bad(late(time_limit, Duration::ZERO)),
        Err(ureq::Error::BodyExceedsLimit(_)) => {
            Reply::Bad(format!("the model's answer is longer than {limit} bytes"))
        }
        Err(error) => {
            let reason = format!("no answer from {url}: {error}");
            match error {
                ureq::Error::Io(error) => Reply::Absent(reason, Some(error)),
                ureq::Error::HostNotFound | ureq::Error::ConnectionFailed => {
                    Reply::Absent(reason, None)
                }
                _ => Reply::Bad(reason),
            }
        }
    }
}

impl Simulator for UmBridge {
    fn theta_dim(&self) -> usize {
        self.parameters
    }

    fn x_dim(&self) -> usize {
        self.summaries
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
        self.gate.answer(|| self.evaluate(theta, rng.seed()), x)
    }

    fn interrupt(&self, now: bool) {
        self.gate.interrupt(now);
    }

    fn lack(&self) -> Option<Error> {
        self.gate.lack()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_span_the_restart_of_a_server() {
        let seconds: Vec<f64> = pauses(RETRIES as u32).map(|pause| pause.as_secs_f64()).collect();
        assert_eq!(seconds, [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 8.0]);
        assert!((15.0..30.0).contains(&seconds.iter().sum::<f64>()));
        assert_eq!((pauses(0).count(), pauses(100).last()), (0, Some(LONGEST_PAUSE)));
    }
}
