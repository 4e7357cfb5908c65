//! Faults of saved files.

/// The ways in which a saved file can be bad.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FileFault {
    /// Shorter than its header says.
    #[error("{}; copy it again, or use an earlier one", self.fact())]
    Truncated {
        /// Bytes in the file.
        found: usize,
        /// Bytes that its header promises.
        expected: usize,
    },
    /// Its content does not match its checksum, or its header its own rules.
    #[error("{}; copy it again, or use an earlier one", self.fact())]
    Corrupted(String),
    /// Not written by this program: what was needed, and in brackets why it is not that.
    #[error("{}; give one that Didyma saved", self.fact())]
    Foreign(String),
    /// Written by an earlier program: it can be read, and not be added to.
    #[error("{}; go on with the program that began it, or begin anew", self.fact())]
    Older {
        /// The file's version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Written by a newer program.
    #[error("{}; update Didyma", self.fact())]
    Newer {
        /// The file's version.
        found: u32,
        /// Ours.
        known: u32,
    },
}

impl FileFault {
    /// The fault without a remedy.
    pub(crate) fn fact(&self) -> String {
        match self {
            Self::Truncated { found, expected } => {
                format!("it is truncated ({found} bytes of {expected})")
            }
            Self::Corrupted(why) => format!("it is corrupted ({why})"),
            Self::Foreign(what) => format!("it is not {what}"),
            Self::Older { found, known } => {
                format!(
                    "its format is version {found}, and this program adds to version {known} only"
                )
            }
            Self::Newer { found, known } => {
                format!("its format is version {found}, and this program reads up to {known}")
            }
        }
    }
}
