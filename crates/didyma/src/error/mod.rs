//! One error type, whose messages are sentences that name the argument and the remedy.

mod run;

pub(crate) use run::model_name;
pub use run::{CHECKPOINT, DATABASE, RunProblem, SEEDS};
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
    /// A setting that does not exist.
    #[error(
        "there is no setting {key}{}: `didyma settings` lists them all",
        .similar.map_or(String::new(), |similar| format!(" (did you mean {similar}?)"))
    )]
    UnknownSetting {
        /// What was asked for.
        key: String,
        /// One that may have been meant.
        similar: Option<&'static str>,
    },
    /// A setting with a value of the wrong kind.
    #[error("{key} cannot be {value}: {problem}")]
    BadSetting {
        /// Its name.
        key: String,
        /// What was given.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A posterior that is nearly all outside the prior's support.
    #[error(
        "only {accepted} of {drawn} draws lie inside the prior, and sampling gives up at fewer than one in 200: use \
         unbounded coordinates (--profile default, or --set coordinates.space=unbounded), where none can lie outside"
    )]
    Leakage {
        /// Draws of the flow.
        drawn: usize,
        /// Draws inside the support.
        accepted: usize,
    },
    /// A part of the prior that cannot be drawn from.
    #[error(
        "only {accepted} of {drawn} candidates fell into the part of the prior that truncated proposals keep: \
         give the posterior so far more to learn from (simulations, train.steps), or take another method (--method tgrr)"
    )]
    ThinRegion {
        /// Candidates that were tried.
        drawn: usize,
        /// Candidates inside.
        accepted: usize,
    },
    /// Simulations handed in that a round cannot use.
    #[error("round {round} {problem}")]
    Proposal {
        /// The round.
        round: u32,
        /// What is wrong, and the remedy.
        problem: String,
    },
    /// A simulator that is a function of the program that began the run.
    #[error(
        "the simulator of this run is a Python function, which is not known here: go on in Python with \
         didyma.resume(directory, simulator)"
    )]
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
    #[error(
        "{failures} simulations of round {round} failed one after another, the last of them: {reason}{}repair the \
         simulator, then run `didyma resume` (with --retry-failed to simulate the failed ones again), or begin anew with a \
         higher failures.in_a_row (0: never stop)",
        if .reason.contains('\n') { "\n" } else { "; " }
    )]
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
    /// The operating system gave no more threads.
    #[error("could not start {threads} threads ({source}): ask for fewer")]
    Threads {
        /// How many were asked for.
        threads: usize,
        /// Its reason.
        source: std::io::Error,
    },
    /// A device that cannot go on: its memory is full, it was lost.
    #[error("{device}: {problem}")]
    Device {
        /// The device, in a user's words.
        device: String,
        /// What went wrong there, and the remedy.
        problem: String,
    },
    /// A model or checkpoint that cannot be used.
    #[error("{} cannot be loaded: {problem}", path.display())]
    ModelFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        problem: FileProblem,
    },
    /// A directory of a run that cannot be used, or a database in it.
    #[error("{}", problem.sentence(path))]
    Run {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        problem: RunProblem,
    },
    /// A table that cannot be used.
    #[error("{}, line {line}: {problem}", path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: u64,
        /// What is wrong there, and the remedy.
        problem: String,
    },
    /// A problem file that cannot be used.
    #[error("{}, line {line}: {field} {problem}", path.display())]
    ProblemFile {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The field.
        field: String,
        /// What is wrong with it, and the remedy.
        problem: String,
    },
    /// Simulations made elsewhere that cannot be used.
    #[error("{} {problem}", path.display())]
    Shard {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and the remedy.
        problem: String,
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

/// The ways in which a saved file can be bad.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileProblem {
    /// Shorter than its header says.
    #[error("{}; copy it again, or use an earlier one", self.fault())]
    Truncated {
        /// Bytes in the file.
        found: usize,
        /// Bytes that its header promises.
        expected: usize,
    },
    /// Its content does not match its checksum, or its header its own rules.
    #[error("{}; copy it again, or use an earlier one", self.fault())]
    Corrupted(String),
    /// Not written by this program: what was needed, and in brackets why it is not that.
    #[error("{}; give one that Didyma saved", self.fault())]
    Foreign(String),
    /// Written by a newer program.
    #[error("{}; update Didyma", self.fault())]
    Newer {
        /// The file's version.
        found: u32,
        /// Ours.
        known: u32,
    },
}

impl FileProblem {
    /// What is wrong, without a remedy.
    pub(crate) fn fault(&self) -> String {
        match self {
            Self::Truncated { found, expected } => {
                format!("it is truncated ({found} bytes of {expected})")
            }
            Self::Corrupted(why) => format!("it is corrupted ({why})"),
            Self::Foreign(what) => format!("it is not {what}"),
            Self::Newer { found, known } => {
                format!("its format is version {found}, and this program reads up to {known}")
            }
        }
    }
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

    pub(crate) fn setting(
        name: &'static str,
        value: impl std::fmt::Display,
        expected: impl Into<Cow<'static, str>>,
    ) -> Self {
        Self::Setting { name: name.into(), value: value.to_string(), expected: expected.into() }
    }
}
