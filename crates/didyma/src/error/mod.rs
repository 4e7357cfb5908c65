//! One error type, whose messages are sentences that name the argument and the remedy.
//!
//! `Display` speaks to everybody; [`Error::sentence`] takes a front end's words for what can be done.

mod fault;
mod file;
mod remedy;
mod sentence;

pub use fault::Fault;
pub use file::FileFault;
pub use remedy::{Advice, Remedy, Wording};
use std::borrow::Cow;
use std::path::PathBuf;

/// What the library returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Everything that can be wrong with what the library is given.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting outside its range.
    #[error("{name} is {value}, but it must be {expected}")]
    Setting {
        /// The argument or field.
        name: Cow<'static, str>,
        /// What was given.
        value: String,
        /// What is allowed.
        expected: Cow<'static, str>,
    },
    /// A name that cannot be used.
    #[error("{what} {name:?} {fault}")]
    Name {
        /// The kind of thing that has it.
        what: &'static str,
        /// Its beginning.
        name: String,
        /// What is wrong with it, and the remedy.
        fault: &'static str,
    },
    /// A setting that does not exist.
    #[error("{}", self.sentence(&Remedy::to_string))]
    UnknownSetting {
        /// What was asked for.
        key: String,
        /// One that may have been meant.
        similar: Option<&'static str>,
    },
    /// The profile as one setting of others, all of which it determines.
    #[error("{}", self.sentence(&Remedy::to_string))]
    ProfileSetting {
        /// The profile.
        value: String,
    },
    /// A setting with a value of the wrong kind.
    #[error("{key} cannot be {value}: {fault}")]
    BadSetting {
        /// Its name.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        fault: String,
    },
    /// A task whose true posterior nobody knows.
    #[error("{}", self.sentence(&Remedy::to_string))]
    NoReference {
        /// The task.
        task: String,
    },
    /// A posterior that is nearly all outside the prior's support.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Leakage {
        /// Draws of the flow.
        drawn: usize,
        /// Draws inside the support.
        accepted: usize,
    },
    /// A row of several at which the work could not be done.
    #[error("{}", self.sentence(&Remedy::to_string))]
    AtRow {
        /// The argument.
        name: &'static str,
        /// Row, from 0.
        row: usize,
        /// The reason.
        error: Box<Error>,
    },
    /// A part of the prior that cannot be drawn from.
    #[error("{}", self.sentence(&Remedy::to_string))]
    ThinRegion {
        /// Candidates that were tried.
        drawn: usize,
        /// Candidates inside.
        accepted: usize,
    },
    /// Simulations handed in that a round cannot use.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Proposal {
        /// The round.
        round: u32,
        /// What is wrong, and the remedy.
        fault: Advice,
    },
    /// A simulator that is a function of the program that began the run.
    #[error("{}", self.sentence(&Remedy::to_string))]
    NoSimulator,
    /// A round in which too few simulations succeeded.
    #[error(
        "only {succeeded} of the {simulations} simulations of round {round} succeeded, too few to train on{}: \
         repair the simulator, narrow the prior, or simulate more",
        .reason.as_ref().map_or(String::new(), |reason| format!(" (the first failure: {reason})"))
    )]
    FewSimulations {
        /// The round.
        round: u32,
        /// Its simulations.
        simulations: usize,
        /// Those that gave finite summaries.
        succeeded: usize,
        /// Why the first one failed.
        reason: Option<String>,
    },
    /// Simulations that failed one after another.
    #[error("{}", self.sentence(&Remedy::to_string))]
    FailuresInARow {
        /// How many.
        failures: usize,
        /// The round.
        round: u32,
        /// Why the last of them failed: the simulator's own words, which may be several lines.
        reason: String,
    },
    /// A pool with fewer rows than an estimator needs.
    #[error(
        "the largest block (level {level}) needs {block} different inner samples, but the pool can give \
         {rows}: simulate more, or lower m0, atoms or the top level"
    )]
    SmallPool {
        /// Samples needed.
        block: usize,
        /// At which level.
        level: u32,
        /// Samples there are, the outer row left out.
        rows: usize,
    },
    /// An unbounded level where blocks are finite.
    #[error(
        "{method} has no top level, and its blocks would outgrow any pool: set top{}; its target is then \
         the nested (or atomic) loss at that level",
        .highest.map_or(String::new(), |level| format!(" to at most {level}, the last level that this pool can fill"))
    )]
    NoTop {
        /// The method.
        method: &'static str,
        /// The highest level that the source of inner samples can serve.
        highest: Option<u32>,
    },
    /// A query whose loss or gradient is no number.
    #[error(
        "a query at level {level} has a loss of {value}, or a gradient that is not finite: q gives a whole block \
         of inner samples no density; widen q, or draw inner samples from another law with log-weights"
    )]
    InfiniteQuery {
        /// The level measured.
        level: u32,
        /// Its loss.
        value: f64,
    },
    /// Two arguments that must agree in size do not.
    #[error("{name} has {found} {unit}, but {expected} are needed ({why})")]
    Shape {
        /// The argument.
        name: &'static str,
        /// Rows, columns or numbers.
        unit: &'static str,
        /// What it has.
        found: usize,
        /// What it must have.
        expected: usize,
        /// Where the expectation comes from.
        why: &'static str,
    },
    /// NaN or infinity where a number is needed.
    #[error(
        "{name} holds {value} in row {row}, column {column}: remove or repair that row first, only \
         finite numbers can be used"
    )]
    NotFinite {
        /// The argument.
        name: &'static str,
        /// Row, from 0.
        row: usize,
        /// Column, from 0.
        column: usize,
        /// NaN, inf or -inf.
        value: f64,
    },
    /// A plan that refers to a row that is not there.
    #[error(
        "the plan refers to row {row} of a dataset of {rows} rows: plan only with rows that were loaded"
    )]
    NoSuchRow {
        /// The row asked for.
        row: usize,
        /// How many there are.
        rows: usize,
    },
    /// A plan without work.
    #[error("the plan has no group: add at least one before it is run")]
    EmptyPlan,
    /// Parameters that are no numbers.
    #[error(
        "params holds {value} at place {index}: start from a model whose parameters are finite, and \
         train it with a lower learning rate"
    )]
    BadParams {
        /// Place in the flat vector.
        index: usize,
        /// NaN or infinite.
        value: f64,
    },
    /// Finite input that is too large for the flow.
    #[error(
        "{what} of row {row} is {value}: theta, x or the parameters are too large there for f32; \
         bring theta and x to unit scale before the flow"
    )]
    OutOfRange {
        /// log q, or a sampled θ.
        what: &'static str,
        /// Row, from 0.
        row: usize,
        /// NaN or infinite.
        value: f64,
    },
    /// The loss or its gradient is no longer a number.
    #[error(
        "the {what} is {value} at step {step}, and the parameters were left as before it: lower the \
         learning rate or clip the gradient, and look for weights, theta or x far from unit scale"
    )]
    Diverged {
        /// Loss or gradient norm.
        what: &'static str,
        /// NaN or infinite.
        value: f64,
        /// Number of the step, from 1.
        step: u64,
    },
    /// Something that this process lacks for its simulations: descriptors, processes, memory, room on the disk.
    #[error(
        "could not {action} for a simulation ({reason}): {remedy}, then go on; it has not failed"
    )]
    Lack {
        /// What could not be done.
        action: &'static str,
        /// The operating system's words.
        reason: String,
        /// What to do about it.
        remedy: &'static str,
    },
    /// The operating system gave no more threads.
    #[error("could not start {threads} threads ({source}): ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// Its reason.
        source: std::io::Error,
    },
    /// A device that cannot go on: its memory is full, it was lost.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Device {
        /// The device, in a user's words.
        device: String,
        /// What went wrong there, and the remedy.
        fault: Advice,
    },
    /// A device that was asked for and cannot be used.
    #[error("{}", self.sentence(&Remedy::to_string))]
    NoDevice {
        /// Its name.
        device: &'static str,
        /// The reason, and the remedy.
        fault: Advice,
    },
    /// An image that cannot become a bitmap.
    #[error(transparent)]
    Bitmap(didyma_plot::PngError),
    /// A model or checkpoint that cannot be used.
    #[error("{} cannot be loaded: {fault}", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        fault: FileFault,
    },
    /// Something else in the place of a file of a run.
    #[error("{} is {found}, and not a file of the run: remove it, or put the file itself in its place", path.display())]
    NotAFile {
        /// Where it is.
        path: PathBuf,
        /// What it is: a link, a directory, a pipe or a device.
        found: &'static str,
    },
    /// A directory of a run that cannot be used, or a database in it.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Run {
        /// The directory.
        path: PathBuf,
        /// The file in it that the fault is about.
        file: PathBuf,
        /// What is wrong with it.
        fault: Fault,
    },
    /// A table that cannot be used.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Table {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there, and the remedy.
        fault: Advice,
    },
    /// A problem file that cannot be used.
    #[error("{}, line {line}: {field} {fault}", path.display())]
    ProblemFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it, and the remedy.
        fault: String,
    },
    /// A setting in a problem file that cannot be used.
    #[error("{}", self.sentence(&Remedy::to_string))]
    SettingInFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: String,
        /// The fault of the setting.
        error: Box<Self>,
    },
    /// Simulations made elsewhere that cannot be used.
    #[error("{}", self.sentence(&Remedy::to_string))]
    Shard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        fault: Advice,
    },
    /// Parameters that the prior excludes.
    #[error(
        "{name} is {value}, outside of its prior ({prior}): give parameters inside of it, not on an end"
    )]
    OutsidePrior {
        /// The parameter.
        name: String,
        /// Its value.
        value: f64,
        /// Its law.
        prior: String,
    },
    /// The operating system refused.
    #[error("could not {action} {}: {source}", path.display())]
    Io {
        /// Read or write.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// Its reason.
        source: std::io::Error,
    },
}

impl Error {
    /// The same about a setting of a group, by its full name.
    pub(crate) fn within(self, group: &str) -> Self {
        match self {
            Self::Setting { name, value, expected } => {
                Self::Setting { name: format!("{group}.{name}").into(), value, expected }
            }
            other => other,
        }
    }

    /// The same error, which befell this row (from 0) of an argument.
    pub(crate) fn at_row(self, name: &'static str, row: usize) -> Self {
        Self::AtRow { name, row, error: Box::new(self) }
    }

    /// A setting outside its range: its name, its value and the values that are allowed.
    pub fn setting(
        name: &'static str,
        value: impl std::fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Setting { name: name.into(), value: value.to_string(), expected: expected.into() }
    }
}
