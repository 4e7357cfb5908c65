//! Programs outside of this process as simulators: one that answers requests, one that is run for each simulation, or a
//! UM-Bridge server.
//!
//! Whatever such a program does, a simulation ends: with its summaries, or as a failure with a reason. A program
//! that crashes, hangs, floods its output or speaks nonsense is ended, with all that it has started, and started again.
//! What is recorded of a simulation does not depend on how many of them are under way at once.
//!
//! ```
//! use didyma::Rows;
//! use didyma::rng::{Purpose, Streams};
//! use didyma::simulator::program::{Call, Program};
//! use didyma::simulator::simulate;
//! use std::ops::ControlFlow;
//!
//! // Twice a, and a + b, by awk.
//! let words = ["awk", "BEGIN {{ print 2 * {a}, {a} + {b} }}"];
//! let program = Program {
//!     call: Call::Once { command: words.map(str::to_owned).to_vec() },
//!     folder: ".".into(),
//!     workers: Some(2),
//!     time_limit: 600.0,
//!     start_limit: 60.0,
//!     launcher: Vec::new(),
//! };
//! let names = |names: [&str; 2]| names.map(str::to_owned).to_vec();
//! let simulator = program.simulator(names(["a", "b"]), names(["double", "sum"]))?;
//! let streams = Streams::new(1).simulations(Purpose::Simulation, 0);
//! let theta = Rows::new("theta", &[3.0, 4.0, 5.0, 6.0], 2)?;
//! let go_on = &mut |_: didyma::simulator::Progress| ControlFlow::Continue(());
//! let found = simulate(&*simulator, theta, &streams, 0, 1, go_on)?;
//! assert_eq!(found.x, [6.0, 7.0, 10.0, 11.0]);
//! # Ok::<(), didyma::Error>(())
//! ```

mod gate;
mod group;
mod json;
mod lack;
mod launch;
mod once;
#[doc(hidden)]
pub mod parse;
mod pipes;
mod process;
mod tap;
mod template;
mod umbridge;
mod words;
mod worker;

pub use group::end_all;

use super::Simulator;
use crate::error::{Error, Result};
use crate::parallel;
use gate::Gate;
use launch::Launch;
use once::Once;
use process::Manner;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Duration;
pub(crate) use umbridge::RETRIES;
use umbridge::{Target, UmBridge};
use worker::Worker;

/// Simulations of a request at most.
pub(crate) const LARGEST_BATCH: usize = 1 << 16;
/// Seconds that count as for ever: a year.
const LONGEST: f64 = 366.0 * 86_400.0;

/// A program that simulates.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// How it is called.
    pub call: Call,
    /// Its working directory; a command that is a relative path is found from there.
    pub folder: PathBuf,
    /// How many of it may be at work at once; as many as there are threads, if not said.
    pub workers: Option<usize>,
    /// Seconds that a simulation may take.
    pub time_limit: f64,
    /// Seconds more that a worker has for its first answer.
    pub start_limit: f64,
    /// Words put before the command, such as `srun -n1`.
    pub launcher: Vec<String>,
}

/// How a program is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Call {
    /// A process that lives long. It reads requests from its standard input, one JSON object a line:
    /// `{"id":7,"seed":123,"theta":[0.1,0.2]}`. It writes answers to its standard output, in any order:
    /// `{"id":7,"x":[1.5,2.5]}` or `{"id":7,"error":"why not"}`. It ends when its input does.
    ///
    /// Ids rise by leaps that a worker cannot foresee: it gives them back as they are, and answers nothing before it is asked.
    ///
    /// Lines that begin neither with `{` nor with `[` are ignored. NaN, Infinity and null are understood as numbers, and such a
    /// row fails. A process that crashes, does not answer in time or breaks these rules is replaced; a simulation that ends
    /// one has failed if it does so alone in a fresh process.
    Worker {
        /// The words of the command.
        command: Vec<String>,
        /// Requests at a time: with more than one, a line is an array of up to so many.
        batch: usize,
        /// Whether requests have `"stream"`, the four words of [`SimulationStream::words`] in hexadecimal, from which a worker
        /// can draw the very numbers that a simulator in this process would.
        ///
        /// [`SimulationStream::words`]: crate::rng::SimulationStream::words
        stream: bool,
    },
    /// A process for each simulation, which must end with exit code 0 within the time limit.
    Once {
        /// The words of the command. In them, `{name of a parameter}` is its value, `{seed}` a number, `{input}` the path
        /// of a JSON file with `seed`, `theta` and `parameters` (by name), `{output}` the path of a file that the program
        /// writes, and `{{` a brace. These files are in a temporary directory, `$DIDYMA_SCRATCH`, that is gone afterwards.
        ///
        /// Without `{output}` the summaries are read from the standard output: a JSON array, a JSON object (with `x`, with
        /// `error`, or with the names of the summaries), or numbers between blanks or commas, below names if there are any.
        command: Vec<String>,
    },
    /// A UM-Bridge server.
    UmBridge {
        /// Where it is, such as `http://localhost:4242`.
        url: String,
        /// The model's name.
        model: String,
        /// What is sent as `config`.
        config: Map<String, Value>,
        /// The key under which `config` holds the seed; no seed is sent, if it is empty.
        seed: String,
        /// How often a request is repeated if nobody answers, or with status 429, 502, 503 or 504: after 0.2 s, and then after
        /// twice as long each time, up to 8 s.
        retries: u32,
    },
}

impl Program {
    /// A simulator with these parameters and summaries; nothing is started before the first simulation.
    pub fn simulator(
        &self,
        parameters: Vec<String>,
        summaries: Vec<String>,
    ) -> Result<Box<dyn Simulator>> {
        let time_limit = seconds("time_limit", self.time_limit, f64::MIN_POSITIVE)?;
        let start_limit = seconds("start_limit", self.start_limit, 0.0)?;
        self.check()?;
        let workers = self.workers;
        let launch = Launch { folder: self.folder.clone(), launcher: self.launcher.clone() };
        let gate = Gate::new(workers);
        Ok(match self.call.clone() {
            Call::Worker { command, batch, stream } => {
                let (parameters, summaries) = (parameters.len(), summaries.len());
                let manner = Manner { batch, stream, summaries, time_limit, start_limit };
                let idle = Mutex::default();
                Box::new(Worker { launch, command, manner, parameters, workers, gate, idle })
            }
            Call::Once { command } => {
                let command = template::parse(&command, &parameters)?;
                Box::new(Once { launch, command, parameters, summaries, workers, time_limit, gate })
            }
            Call::UmBridge { url, model, config, seed, retries } => {
                let target = Target { url, model, config, seed, retries };
                let dims = (parameters.len(), summaries.len());
                Box::new(UmBridge::new(target, dims, workers, time_limit))
            }
        })
    }

    fn check(&self) -> Result<()> {
        if let Some(workers) = self.workers {
            let expected = "between 1 and 1024, or left out";
            let error = Error::setting("workers", workers, expected);
            parallel::check_threads(workers).map_err(|_| error)?;
        }
        match &self.call {
            Call::Worker { batch, .. } if !(1..=LARGEST_BATCH).contains(batch) => {
                Err(Error::setting("batch", batch, "between 1 and 65536"))
            }
            Call::Worker { command, .. } | Call::Once { command }
                if command.first().is_none_or(String::is_empty) =>
            {
                Err(Error::setting("command", "empty", "a program and its arguments"))
            }
            Call::UmBridge { url, .. } if url.strip_prefix("http://").is_none_or(str::is_empty) => {
                Err(Error::setting("url", url, "like http://localhost:4242 (there is no TLS)"))
            }
            _ => Ok(()),
        }
    }
}

fn seconds(name: &'static str, value: f64, least: f64) -> Result<Duration> {
    match value >= least && value <= LONGEST {
        true => Ok(Duration::from_secs_f64(value)),
        false if least > 0.0 => {
            Err(Error::setting(name, value, "more than 0, in seconds, and at most a year"))
        }
        false => Err(Error::setting(name, value, "0 or more, in seconds, and at most a year")),
    }
}
