//! A worker's process: requests in, answers out, line by line.

use super::gate::{Gate, TICK};
use super::launch::{
    FAREWELL, GRACE, Launch, NUMBER, SHORT_GRACE, Started, no_thread, until_closed,
};
use super::parse::{self, Answer};
use super::pipes::{self, Said};
use crate::problem::simulator::Job;
use crate::rng::mix;
use serde::Serialize;
use std::process::Stdio;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

/// Bytes of a line, beside those of its numbers.
const LINE: usize = 1 << 16;
/// Bytes of a bad line among the last words.
const SHOWN: usize = 200;

/// How a worker is asked, and for how long it is waited for.
#[derive(Clone, Debug)]
pub(super) struct Manner {
    /// Requests in a line, at most.
    pub batch: usize,
    /// Whether a request has the state of its random stream.
    pub stream: bool,
    pub summaries: usize,
    pub time_limit: Duration,
    pub start_limit: Duration,
}

/// A request as it is written.
#[derive(Serialize)]
struct Request<'a> {
    id: u64,
    seed: u64,
    theta: &'a [f64],
    #[serde(skip_serializing_if = "Option::is_none")]
    stream: Option<[String; 4]>,
}

/// Why some requests have no answer.
#[derive(Debug)]
pub(super) enum Trouble {
    /// Nobody waits for them any more.
    Interrupted,
    /// The process is dead, with its last words.
    Ended(String),
}

#[derive(Debug)]
pub(super) struct Process {
    started: Started,
    stdin: Option<Sender<Vec<u8>>>,
    lines: Receiver<Said>,
    ids: Ids,
    /// The count of the next request; all before it are answered.
    next: u64,
}

/// The ids of requests. They rise by leaps that a worker cannot foresee: what it writes about a request before that is made
/// may wait in a pipe until then, and must not be taken for its answer. The leaps follow from the seed of the first
/// request, so that a simulation has the same id in every process that it is the first of.
#[derive(Clone, Copy, Debug, Default)]
struct Ids {
    key: u64,
}

/// An id is below this times the next count.
const LEAP: u64 = 1024;

impl Ids {
    /// The id of a request by its count, from 1. No id is another's successor.
    fn id(self, count: u64) -> u64 {
        count * LEAP + mix(self.key ^ mix(count)) % (LEAP - 1)
    }

    /// The count of the request with this id; none has another.
    fn count(self, id: u64) -> Option<u64> {
        Some(id / LEAP).filter(|&count| count > 0 && self.id(count) == id)
    }
}

impl Process {
    pub(super) fn start(
        launch: &Launch,
        command: &[String],
        manner: &Manner,
        gate: &Gate,
    ) -> Result<Self, String> {
        let mut started = launch.start(command, Stdio::piped(), None, gate)?;
        let child = &mut started.group.child;
        let stdin = started.interest.tap(child.stdin.take().expect("it is piped"));
        let limit = LINE + NUMBER * manner.summaries * manner.batch;
        let stdout = started.interest.tap(child.stdout.take().expect("it is piped"));
        let no_thread = |error| no_thread(&error, gate);
        let stdin = Some(pipes::writer(stdin).map_err(no_thread)?);
        let lines = pipes::lines(stdout, limit, started.words.clone()).map_err(no_thread)?;
        Ok(Self { started, stdin, lines, ids: Ids::default(), next: 1 })
    }

    /// Whether it has not answered anything yet.
    pub(super) fn is_fresh(&self) -> bool {
        self.next == 1
    }

    pub(super) fn is_alive(&mut self) -> bool {
        self.started.group.poll().is_none()
    }

    /// Asks for all of these together; fills in the answers as they come. With trouble, the process is dead.
    pub(super) fn ask(
        &mut self,
        jobs: &[&mut Job],
        answers: &mut [Option<Answer>],
        manner: &Manner,
        gate: &Gate,
    ) -> Result<(), Trouble> {
        let extra = if self.is_fresh() { manner.start_limit } else { Duration::ZERO };
        let time = manner.time_limit.saturating_mul(jobs.len() as u32);
        let deadline = Instant::now().checked_add(time.saturating_add(extra));
        let asked = self.exchange(jobs, answers, manner, (deadline, gate));
        self.next += jobs.len() as u64;
        asked.map_err(|stop| {
            let grace = if matches!(stop, Stop::Interrupted) { SHORT_GRACE } else { GRACE };
            self.started.group.end(grace);
            until_closed(&self.lines, SHORT_GRACE);
            match stop {
                Stop::Interrupted => Trouble::Interrupted,
                Stop::Late => Trouble::Ended(self.started.reason(&late(time, extra))),
                Stop::Because(reason) => Trouble::Ended(self.started.reason(&reason)),
            }
        })
    }

    fn exchange(
        &mut self,
        jobs: &[&mut Job],
        answers: &mut [Option<Answer>],
        manner: &Manner,
        until: (Option<Instant>, &Gate),
    ) -> Result<(), Stop> {
        if let (true, [first, ..]) = (self.is_fresh(), jobs) {
            self.ids.key = first.rng.seed();
        }
        if let Some(stdin) = &self.stdin {
            // An error would mean that the process has ended, which is noticed below.
            let _ = stdin.send(self.requests(jobs, manner));
        }
        let mut open = answers.len();
        while open > 0 {
            let line = self.hear(until)?;
            let replies = parse::worker_line(&line, manner.summaries).map_err(|reason| {
                self.started.words.push(&line[..line.len().min(SHOWN)]);
                Stop::Because(reason)
            })?;
            for (id, answer) in replies {
                // What was answered already is of no interest; what was never asked is a sign of confusion.
                let count = self.ids.count(id);
                if count.is_some_and(|count| count < self.next) {
                    continue;
                }
                let place = count.and_then(|count| usize::try_from(count - self.next).ok());
                let Some(slot) = place.and_then(|place| answers.get_mut(place)) else {
                    return Err(Stop::Because(format!(
                        "the worker answered {id}, which was not asked"
                    )));
                };
                open -= usize::from(slot.is_none());
                slot.get_or_insert(answer);
            }
        }
        Ok(())
    }

    fn requests(&self, jobs: &[&mut Job], manner: &Manner) -> Vec<u8> {
        let requests: Vec<Request> = (self.next..)
            .zip(jobs)
            .map(|(count, job)| Request {
                id: self.ids.id(count),
                seed: job.rng.seed(),
                theta: &job.theta,
                stream: manner.stream.then(|| job.rng.words().map(|word| format!("{word:016x}"))),
            })
            .collect();
        let line = match (&requests[..], manner.batch) {
            ([request], 1) => serde_json::to_vec(request),
            (requests, _) => serde_json::to_vec(requests),
        };
        let mut line = line.expect("numbers and strings");
        line.push(b'\n');
        line
    }

    /// The next line that may be an answer.
    fn hear(&mut self, (deadline, gate): (Option<Instant>, &Gate)) -> Result<Vec<u8>, Stop> {
        let mut gone: Option<Instant> = None;
        loop {
            let left = deadline.map_or(TICK, |at| at.saturating_duration_since(Instant::now()));
            if gate.interrupted() {
                return Err(Stop::Interrupted);
            }
            if left.is_zero() {
                return Err(Stop::Late);
            }
            match self.lines.recv_timeout(left.min(TICK)) {
                Ok(Said::Line(line)) => return Ok(line),
                Ok(Said::TooLong) => {
                    return Err(Stop::Because("the worker's answer is too long a line".to_owned()));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.farewell()),
                Err(RecvTimeoutError::Timeout) => match gone {
                    // Its output was kept open by others; they are dead now, and it should close.
                    None if !self.is_alive() => gone = Some(Instant::now()),
                    Some(gone) if gone.elapsed() > FAREWELL => return Err(self.farewell()),
                    _ => {}
                },
            }
        }
    }

    /// How it ended, when its output has.
    fn farewell(&mut self) -> Stop {
        Stop::Because(match self.started.group.wait(FAREWELL) {
            Some(end) => format!("the worker {}", end.how),
            None => "the worker closed its output".to_owned(),
        })
    }

    /// Tells it that nothing more will come.
    pub(super) fn close(&mut self) {
        self.stdin = None;
    }

    /// Gives it some time to end by itself, after [`Self::close`].
    pub(super) fn wait(&mut self, at_most: Duration) {
        self.started.group.wait(at_most);
    }
}

/// Why nothing more is heard.
enum Stop {
    Interrupted,
    Late,
    Because(String),
}

/// The sentence for a process that took too long.
pub(super) fn late(time: Duration, start: Duration) -> String {
    match start.is_zero() {
        true => format!("no answer within {} s", time.as_secs_f64()),
        false => format!(
            "no answer within {} s, and {} s for the start",
            time.as_secs_f64(),
            start.as_secs_f64()
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_of_one_request_and_its_successor_of_none() {
        let ids = Ids { key: 12345 };
        for count in 1..3000 {
            let id = ids.id(count);
            assert_eq!(ids.count(id), Some(count));
            assert!(ids.count(id + 1).is_none());
        }
        // Nor is any a count, as far as workers get that count for themselves.
        assert!((0..LEAP).all(|id| ids.count(id).is_none()));
        let leaps: std::collections::BTreeSet<u64> =
            (1..3000).map(|count| ids.id(count + 1) - ids.id(count)).collect();
        assert!(leaps.len() > 500, "{}", leaps.len());
    }
}
