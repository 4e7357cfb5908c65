//! Messages whose remedy each front end words in its own way.

use super::{Error, Remedy, Wording};

impl Error {
    /// The message with the remedies in a front end's words; `Display` has neutral ones.
    pub fn sentence(&self, word: Wording) -> String {
        match self {
            Self::UnknownSetting { key, similar } => {
                let similar = similar.map_or(String::new(), |s| format!(" (did you mean {s}?)"));
                format!("there is no setting {key}{similar}: {}", word(&Remedy::ListSettings))
            }
            Self::ProfileSetting { value } => format!(
                "profile is {value}, but it must be {}, since it sets everything else",
                word(&Remedy::ChooseProfile)
            ),
            Self::NoReference { task } => format!(
                "task is {task}, but it must be a task whose posterior is known: this one has no reference; {}",
                word(&Remedy::Abc)
            ),
            Self::Leakage { drawn, accepted } => format!(
                "only {accepted} of {drawn} draws lie inside the prior, and sampling gives up at fewer than one in 200: \
                 {}, where none can lie outside",
                word(&Remedy::UnboundedCoordinates)
            ),
            Self::AtRow { name, row, error } => {
                format!("row {row} of {name}: {}", error.sentence(word))
            }
            Self::ThinRegion { drawn, accepted } => format!(
                "only {accepted} of {drawn} candidates fell into the part of the prior that truncated proposals keep: \
                 give the posterior so far more to learn from (simulations, train.steps), or {}",
                word(&Remedy::OtherMethod { name: "tgrr" })
            ),
            Self::NoSimulator => format!(
                "the simulator of this run is a function of the program that began it, which is not known here: {}",
                word(&Remedy::ResumeWithSimulator)
            ),
            Self::FailuresInARow { failures, round, reason } => format!(
                "{failures} simulations of round {round} failed one after another, the last of them: {reason}{}repair \
                 the simulator, then {}, or begin anew with a higher failures.in_a_row (0: never stop)",
                if reason.contains('\n') { "\n" } else { "; " },
                word(&Remedy::RetryFailed)
            ),
            _ => self.with_fault(word),
        }
    }

    /// The message about a fault that has a remedy of its own.
    fn with_fault(&self, word: Wording) -> String {
        match self {
            Self::Run { path, file, fault } => fault.sentence(path, file, word),
            Self::Proposal { round, fault } => format!("round {round} {}", fault.sentence(word)),
            Self::Device { device, fault } => format!("{device}: {}", fault.sentence(word)),
            Self::NoDevice { device, fault } => {
                format!("the device is {device}, but {}", fault.sentence(word))
            }
            Self::Table { path, line, fault } => {
                format!("{}, line {line}: {}", path.display(), fault.sentence(word))
            }
            Self::SettingInFile { path, line, field, error } => format!(
                "{}, line {line}: {field} cannot be used: {}",
                path.display(),
                error.sentence(word)
            ),
            Self::Shard { path, fault } => format!("{} {}", path.display(), fault.sentence(word)),
            other => other.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Advice, Fault};
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_front_end_words_the_remedies_of_every_sentence() {
        let (text, path) = (|| "a".to_owned(), || PathBuf::from("a"));
        let fault = || Advice::new("is bad:", Remedy::Cpu);
        let unknown = || Error::UnknownSetting { key: text(), similar: None };
        let errors = [
            unknown(),
            Error::ProfileSetting { value: text() },
            Error::NoReference { task: text() },
            Error::Leakage { drawn: 9, accepted: 0 },
            unknown().at_row("x", 3),
            Error::ThinRegion { drawn: 9, accepted: 0 },
            Error::NoSimulator,
            Error::FailuresInARow { failures: 9, round: 1, reason: text() },
            Error::Run { path: path(), file: path(), fault: Fault::Exists },
            Error::Proposal { round: 1, fault: fault() },
            Error::Device { device: text(), fault: fault() },
            Error::NoDevice { device: "cuda", fault: fault() },
            Error::Table { path: path(), line: 1, fault: fault() },
            Error::SettingInFile { path: path(), line: 1, field: text(), error: unknown().into() },
            Error::Shard { path: path(), fault: fault() },
        ];
        for error in errors {
            let told = error.sentence(&|_| "do this".to_owned());
            assert!(told.contains("do this") && !error.to_string().contains("do this"), "{told}");
        }
    }
}
