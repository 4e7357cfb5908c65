//! What can be wrong with the directory of a run, as sentences with the remedy.

use super::FileProblem;
use std::path::Path;

/// Name of the file with the simulations.
pub const DATABASE: &str = "run.db";
/// Name of the file that says where training stands.
pub const CHECKPOINT: &str = "checkpoint.safetensors";
/// Name of the file that says what the runs of several seeds are of.
pub const SEEDS: &str = "seeds.json";

/// Name of the file with the model after a round.
pub(crate) fn model_name(round: u32) -> String {
    format!("round-{round}.safetensors")
}

/// The ways in which the directory of a run cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum RunProblem {
    /// A run cannot begin in a file.
    NotADirectory,
    /// A run cannot begin among files of something else.
    NotEmpty,
    /// A run cannot begin twice.
    Exists,
    /// There is nothing to open.
    Missing,
    /// What was to be a run was ended before its first entry.
    NotBegun,
    /// It holds the runs of several seeds, and one run is needed.
    Seeds {
        /// The first of them.
        first: u64,
    },
    /// The runs of several seeds cannot begin twice.
    SeedsExist,
    /// What the runs of several seeds are of cannot be read.
    SeedsFile(String),
    /// Where the run of a seed should be, there is another one.
    OtherRun,
    /// No round is finished, so that there is no posterior yet.
    NoRound,
    /// Another process works on it.
    Locked {
        /// Its number, where the system tells.
        process: Option<u32>,
    },
    /// Another program keeps the database to itself.
    Busy,
    /// The database cannot be used.
    Database(FileProblem),
    /// The state of training cannot be used.
    Checkpoint {
        /// What is wrong with it.
        fault: String,
        /// Whether the run cannot go on without it.
        needed: bool,
    },
    /// The model after a round cannot be used.
    Model {
        /// The round.
        round: u32,
        /// What is wrong with it.
        fault: String,
        /// Whether the state of training can replace it.
        replaceable: bool,
    },
    /// The operating system does not let the files be read or written.
    Refused {
        /// Its words.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
        /// Whether there is a run to continue.
        begun: bool,
    },
}

impl RunProblem {
    /// The whole message about the run in `path`.
    pub(crate) fn sentence(&self, path: &Path) -> String {
        let (dir, database) = (path.display(), path.join(DATABASE));
        let database = database.display();
        match self {
            Self::NotADirectory => {
                format!("{dir} is a file, but a run needs a directory: choose another --out")
            }
            Self::NotEmpty => format!(
                "{dir} holds files of something else, and a run needs a directory of its own: \
                 choose another --out, or empty it first"
            ),
            Self::Exists => format!(
                "{dir} already holds a run: continue it with `didyma resume {dir}`, or choose another --out"
            ),
            Self::Seeds { .. } | Self::SeedsExist | Self::SeedsFile(_) | Self::OtherRun => {
                self.about_seeds(path)
            }
            Self::NoRound => format!(
                "{dir} has no posterior yet, since no round is finished: continue the run with `didyma resume {dir}`"
            ),
            Self::Missing => format!(
                "{dir} holds no run (there is no {database}): give the directory that was the --out of one, or copy run.db back if it was lost"
            ),
            Self::NotBegun => format!(
                "{dir} holds a run that was ended before it began: start it again with the same --out"
            ),
            Self::Locked { process } => {
                let number = process.map_or(String::new(), |number| format!(" (number {number})"));
                format!("another process{number} works on {dir}: wait for it, or end it first")
            }
            Self::Busy => format!(
                "{database} is kept busy by another program: close it, then run `didyma resume {dir}`"
            ),
            Self::Database(problem) => format!("{database} cannot be loaded: {problem}"),
            Self::Checkpoint { fault, needed: false } => format!(
                "{} cannot be used, {fault}: delete it, then run `didyma resume {dir}`; training of the present round \
                 starts again, and no simulation is lost",
                path.join(CHECKPOINT).display()
            ),
            Self::Checkpoint { fault, needed: true } => format!(
                "{} cannot be used, {fault}: copy it back from a backup, or start the run anew; it holds the \
                 optimiser's state, which train.start=carried needs",
                path.join(CHECKPOINT).display()
            ),
            Self::Model { round, fault, replaceable } => {
                let remedy = match replaceable {
                    true => format!("run `didyma resume {dir}`, which writes it again"),
                    false => "copy it back from a backup, or start the run anew".to_owned(),
                };
                let model = path.join(model_name(*round));
                format!("{} cannot be used, {fault}: {remedy}", model.display())
            }
            Self::Refused { reason, remedy, begun: true } => format!(
                "{dir} could not be read or written ({reason}): nothing stored so far is lost; \
                 {remedy}, then run `didyma resume {dir}`"
            ),
            Self::Refused { reason, remedy, begun: false } => {
                format!("no run could begin in {dir} ({reason}): {remedy}, then start it again")
            }
        }
    }

    /// The message about a directory with the runs of several seeds.
    fn about_seeds(&self, path: &Path) -> String {
        let dir = path.display();
        match self {
            Self::Seeds { first } => {
                let run = path.join(format!("seed-{first}"));
                let run = run.display();
                format!("{dir} holds the runs of several seeds: give one of them, as {run}")
            }
            Self::SeedsExist => format!(
                "{dir} already holds runs of several seeds: continue them with `didyma resume {dir}`, or choose another --out"
            ),
            Self::SeedsFile(fault) => format!(
                "{} cannot be used, {fault}: copy it back from a backup, or continue the runs beside it one by one",
                path.join(SEEDS).display()
            ),
            _ => format!(
                "{dir} holds another run than the ones beside it: move it away, and the run of this seed begins anew"
            ),
        }
    }

    /// The same where there is no run yet that could be continued.
    pub(crate) fn at_the_beginning(self) -> Self {
        match self {
            Self::Refused { reason, remedy, .. } => Self::Refused { reason, remedy, begun: false },
            other => other,
        }
    }

    pub(crate) fn corrupted(why: impl ToString) -> Self {
        Self::Database(FileProblem::Corrupted(why.to_string()))
    }

    pub(crate) fn foreign(why: &str) -> Self {
        Self::Database(FileProblem::Foreign(format!("a Didyma run ({why})")))
    }
}
