//! Faults of the directory of a run.

use super::{FileFault, Remedy, Wording};
use std::path::Path;

/// The ways in which the directory of a run cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// A run cannot begin in a file.
    NotADirectory,
    /// A run cannot begin among files of something else.
    NotEmpty,
    /// A run cannot begin twice.
    Exists,
    /// The directory holds another run than the one asked for.
    Differs {
        /// Settings, or parts of the problem, that differ.
        what: String,
    },
    /// There is nothing to open.
    Missing,
    /// A run was ended before its first entry.
    NotBegun,
    /// The directory holds the runs of several seeds, and one run is needed: `file` is the first of them.
    Seeds,
    /// The runs of several seeds cannot begin twice.
    SeedsExist,
    /// The description of the runs of several seeds cannot be read.
    SeedsFile(String),
    /// Another run is in the place of a seed's run.
    OtherRun,
    /// No round is finished, so that there is no posterior yet.
    NoRound,
    /// Some rounds are not finished, and what is asked for needs all.
    Unfinished {
        /// Finished rounds.
        done: usize,
        /// All of them.
        rounds: usize,
    },
    /// The simulations that there are cannot calibrate it.
    Uncalibrated {
        /// The reason.
        why: String,
    },
    /// Another process works on it.
    Locked {
        /// Its number, where the system tells.
        process: Option<u32>,
    },
    /// Another program keeps the database to itself.
    Busy,
    /// The database cannot be used.
    Database(FileFault),
    /// The state of training cannot be used.
    Checkpoint {
        /// The reason.
        why: String,
        /// Whether the run cannot go on without it.
        needed: bool,
    },
    /// The model after a round cannot be used.
    Model {
        /// The reason.
        why: String,
        /// Whether the state of training can replace it.
        replaceable: bool,
    },
    /// The operating system does not let the files be read or written.
    Refused {
        /// Its words.
        reason: String,
        /// The repair.
        remedy: &'static str,
        /// Whether there is a run to continue.
        begun: bool,
    },
}

impl Fault {
    /// The whole message about the run in `dir`, whose `file` is at fault.
    pub(super) fn sentence(&self, dir: &Path, file: &Path, word: Wording) -> String {
        format!("{}: {}", self.fact(dir, file), self.remedy(dir, file, word))
    }

    fn fact(&self, dir: &Path, file: &Path) -> String {
        let (dir, file) = (dir.display(), file.display());
        match self {
            Self::NotADirectory => format!("{dir} is a file, but a run needs a directory"),
            Self::NotEmpty => format!(
                "{dir} holds files of something else, and a run needs a directory of its own"
            ),
            Self::Exists => format!("{dir} already holds a run"),
            Self::Differs { what } => format!("{dir} holds another run ({what} differ)"),
            Self::Missing => format!("{dir} holds no run (there is no {file})"),
            Self::NotBegun => format!("{dir} holds a run that was ended before it began"),
            Self::Seeds => format!("{dir} holds the runs of several seeds"),
            Self::SeedsExist => format!("{dir} already holds runs of several seeds"),
            Self::OtherRun => format!("{dir} holds another run than the ones beside it"),
            Self::NoRound => format!("{dir} has no posterior yet, since no round is finished"),
            Self::Unfinished { done, rounds } => {
                format!("{dir} is not finished ({done} of {rounds} rounds are)")
            }
            Self::Uncalibrated { why } => format!("{dir} cannot be calibrated, {why}"),
            Self::Locked { process: Some(number) } => {
                format!("another process (number {number}) works on {dir}")
            }
            Self::Locked { process: None } => format!("another process works on {dir}"),
            Self::Busy => format!("{file} is kept busy by another program"),
            Self::Database(_) => format!("{file} cannot be loaded"),
            Self::Checkpoint { why, .. } | Self::Model { why, .. } | Self::SeedsFile(why) => {
                format!("{file} cannot be used, {why}")
            }
            Self::Refused { reason, begun: true, .. } => {
                format!("{dir} could not be read or written ({reason})")
            }
            Self::Refused { reason, begun: false, .. } => {
                format!("no run could begin in {dir} ({reason})")
            }
        }
    }

    fn remedy(&self, dir: &Path, file: &Path, word: Wording) -> String {
        let (resume, another) = (word(&Remedy::resume(dir)), word(&Remedy::AnotherDirectory));
        let (keep, backup) = (|what| word(&Remedy::keep(what, dir)), "copy it back from a backup");
        match self {
            Self::NotADirectory => another,
            Self::NotEmpty => format!("{another}, or empty it first"),
            Self::Exists => format!("{}, or {another}", keep("it")),
            Self::SeedsExist => format!("{}, or {another}", keep("them")),
            Self::Differs { .. } => format!("{another}, or {}", keep("that one")),
            Self::NoRound => keep("the run"),
            Self::Unfinished { .. } => format!("{resume} first"),
            Self::Uncalibrated { .. } => word(&Remedy::NewSimulations),
            Self::NotBegun => word(&Remedy::SameDirectory),
            Self::Missing => {
                let name = file.file_name().unwrap_or_default().to_string_lossy();
                format!("{}, or copy {name} back if it was lost", word(&Remedy::RunDirectory))
            }
            Self::Seeds => format!("give one of them, as {}", file.display()),
            Self::OtherRun => "move it away, and the run of this seed begins anew".to_owned(),
            Self::Locked { .. } => "wait for it, or end it first".to_owned(),
            Self::Busy => format!("close it, then {resume}"),
            Self::Database(fault) => fault.to_string(),
            Self::Checkpoint { needed: false, .. } => format!(
                "delete it, then {resume}; training of the present round starts again, and no simulation is lost"
            ),
            Self::Checkpoint { needed: true, .. } => format!(
                "{backup}, or start the run anew; it holds the optimiser's state, which train.start=carried needs"
            ),
            Self::Model { replaceable: true, .. } => {
                format!("{resume}, which writes it again, or that of the next round")
            }
            Self::Model { replaceable: false, .. } => format!("{backup}, or start the run anew"),
            Self::SeedsFile(_) => format!("{backup}, or continue the runs beside it one by one"),
            Self::Refused { remedy, begun: true, .. } => {
                format!("nothing stored so far is lost; {remedy}, then {resume}")
            }
            Self::Refused { remedy, begun: false, .. } => format!("{remedy}, then start it again"),
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
        Self::Database(FileFault::Corrupted(why.to_string()))
    }

    pub(crate) fn foreign(why: &str) -> Self {
        Self::Database(FileFault::Foreign(format!("a Didyma run ({why})")))
    }
}
