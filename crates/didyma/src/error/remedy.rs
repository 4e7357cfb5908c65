//! Remedies as values: errors carry them, and each front end has its own words for them.

use std::fmt;
use std::path::{Path, PathBuf};

/// A front end's words for a remedy, a phrase in the imperative that fits into a sentence.
pub type Wording<'a> = &'a dyn Fn(&Remedy) -> String;

/// Something that the user can do, said differently by each front end. `Display` names no flag and no function. A front
/// end matches all variants, so that none is forgotten.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Resume the run in a directory.
    Resume {
        /// The directory.
        dir: PathBuf,
    },
    /// Continue the run, or the runs, that a directory holds.
    Continue {
        /// The object of the sentence: it, them, the run.
        what: &'static str,
        /// The directory.
        dir: PathBuf,
    },
    /// Resume the run, and simulate again what failed.
    RetryFailed,
    /// Resume the run, and leave the GPU if it fails again.
    ResumeOnCpu,
    /// Resume the run in a program that has its simulator.
    ResumeWithSimulator,
    /// Choose another directory for a run.
    AnotherDirectory,
    /// Start the run again in the same directory.
    SameDirectory,
    /// Give the directory of a run.
    RunDirectory,
    /// Give another file for a shard.
    AnotherShard,
    /// Propose the parameters of a round of the run in a directory.
    Propose {
        /// The directory.
        dir: PathBuf,
    },
    /// Write the proposal of a round again.
    ProposeAgain,
    /// Propose so many new simulations for the calibration of a run again.
    ProposeSimulations {
        /// The directory.
        dir: PathBuf,
        /// Their number.
        count: usize,
    },
    /// Look into the list of settings.
    ListSettings,
    /// Choose a profile other than by a setting.
    ChooseProfile,
    /// Set the density up in unbounded coordinates.
    UnboundedCoordinates,
    /// Take another method.
    OtherMethod {
        /// Its name.
        name: &'static str,
    },
    /// State the law that parameters were drawn from.
    StateProposal,
    /// Approximate the posterior by ABC.
    Abc,
    /// Simulate at the posterior for a report.
    Predictive,
    /// Calibrate the posterior of a finished run.
    Calibrate,
    /// Make new simulations for a calibration.
    NewSimulations,
    /// Compute on the CPU.
    Cpu,
    /// Compute on the CPU, or take another method.
    CpuOrMethod,
}

impl Remedy {
    /// One of each kind, for tests of a front end's words.
    pub fn examples() -> Vec<Self> {
        let dir = || PathBuf::from("run");
        vec![
            Self::Resume { dir: dir() },
            Self::Continue { what: "it", dir: dir() },
            Self::RetryFailed,
            Self::ResumeOnCpu,
            Self::ResumeWithSimulator,
            Self::AnotherDirectory,
            Self::SameDirectory,
            Self::RunDirectory,
            Self::AnotherShard,
            Self::Propose { dir: dir() },
            Self::ProposeAgain,
            Self::ProposeSimulations { dir: dir(), count: 20 },
            Self::ListSettings,
            Self::ChooseProfile,
            Self::UnboundedCoordinates,
            Self::OtherMethod { name: "tgrr" },
            Self::StateProposal,
            Self::Abc,
            Self::Predictive,
            Self::Calibrate,
            Self::NewSimulations,
            Self::Cpu,
            Self::CpuOrMethod,
        ]
    }

    pub(super) fn resume(dir: &Path) -> Self {
        Self::Resume { dir: dir.to_owned() }
    }

    pub(super) fn keep(what: &'static str, dir: &Path) -> Self {
        Self::Continue { what, dir: dir.to_owned() }
    }
}

impl fmt::Display for Remedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Resume { .. } => "resume the run",
            Self::Continue { what, .. } => return write!(f, "continue {what}"),
            Self::RetryFailed => "resume the run (failed simulations can be made again)",
            Self::ResumeOnCpu => "resume the run, on the CPU if it happens again",
            Self::ResumeWithSimulator => "resume the run in that program",
            Self::AnotherDirectory => "choose another directory",
            Self::SameDirectory => "start it again in the same directory",
            Self::RunDirectory => "give the directory of a run",
            Self::AnotherShard => "give another file",
            Self::Propose { .. } => "propose the round's parameters again",
            Self::ProposeAgain => "write the file anew",
            Self::ProposeSimulations { .. } => "propose the new simulations again",
            Self::ListSettings => "look it up in the list of settings",
            Self::ChooseProfile => "chosen as the profile",
            Self::UnboundedCoordinates => {
                "use unbounded coordinates (coordinates.space=unbounded, as in the profile default)"
            }
            Self::OtherMethod { name } => return write!(f, "take another method ({name})"),
            Self::StateProposal => "state their proposal",
            Self::Abc => "approximate it by ABC",
            Self::Predictive => "a report with simulations at the posterior",
            Self::Calibrate => "calibrate the run",
            Self::NewSimulations => "make new simulations for it",
            Self::Cpu => "choose the CPU",
            Self::CpuOrMethod => "choose the CPU, or another method",
        })
    }
}

/// A text that may end with a remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Advice {
    text: String,
    remedy: Option<Remedy>,
}

impl Advice {
    /// The text, and the remedy after it.
    pub fn new(text: impl Into<String>, remedy: Remedy) -> Self {
        Self { text: text.into(), remedy: Some(remedy) }
    }

    /// The whole text in a front end's words.
    pub fn sentence(&self, word: Wording) -> String {
        match &self.remedy {
            Some(remedy) => format!("{} {}", self.text, word(remedy)),
            None => self.text.clone(),
        }
    }

    /// The same with words before it.
    #[must_use]
    pub fn after(self, words: &str) -> Self {
        Self { text: format!("{words}{}", self.text), ..self }
    }
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence(&Remedy::to_string))
    }
}

impl From<String> for Advice {
    fn from(text: String) -> Self {
        Self { text, remedy: None }
    }
}

impl From<&str> for Advice {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}
