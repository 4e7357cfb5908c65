//! Remedies of the library in the words of the command line: its flags and its commands.

use didyma::{Error, Remedy};

/// The message of an error.
pub(crate) fn sentence(error: &Error) -> String {
    match error {
        Error::NoDevice { device, fault } => {
            format!("--device is {device}, but {}", fault.sentence(&word))
        }
        other => other.sentence(&word),
    }
}

/// A phrase for a remedy.
pub(crate) fn word(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::Resume { dir } => return format!("run `didyma resume {}`", dir.display()),
        Remedy::Continue { what, dir } => {
            return format!("continue {what} with `didyma resume {}`", dir.display());
        }
        Remedy::Propose { dir } => return format!("run `didyma propose {}`", dir.display()),
        Remedy::ProposeSimulations { dir, count } => {
            let dir = dir.display();
            return format!("run `didyma calibrate {dir} --simulations {count} --propose`");
        }
        Remedy::OtherMethod { name } => return format!("take another method (--method {name})"),
        Remedy::RetryFailed => {
            "run `didyma resume` (with --retry-failed to simulate the failed ones again)"
        }
        Remedy::ResumeOnCpu => {
            "`didyma resume DIR` goes on from what is saved, with --device cpu if it happens again"
        }
        Remedy::ResumeWithSimulator => {
            "go on there, in Python with didyma.resume(directory, simulator), in Rust with infer(&problem).resume(directory)"
        }
        Remedy::AnotherDirectory => "choose another --out",
        Remedy::SameDirectory => "start it again with the same --out",
        Remedy::RunDirectory => "give the directory that was the --out of one",
        Remedy::AnotherShard => "give another --out",
        Remedy::ProposeAgain => "write the file anew with `didyma propose`",
        Remedy::ListSettings => "`didyma settings` lists them all",
        Remedy::ChooseProfile => "chosen by --profile",
        Remedy::UnboundedCoordinates => {
            "use unbounded coordinates (--profile default, or --set coordinates.space=unbounded)"
        }
        Remedy::StateProposal => "say their proposal",
        Remedy::Abc => "try didyma abc",
        Remedy::Predictive => "`didyma report --predictive` for a problem of your own",
        Remedy::Calibrate => "run `didyma calibrate RUN`",
        Remedy::NewSimulations => {
            "make new simulations for it (didyma calibrate DIR --simulations N)"
        }
        Remedy::Cpu => "choose --device cpu",
        Remedy::CpuOrMethod => "choose --device cpu, or another --method",
    };
    words.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn every_remedy_has_words_of_the_command_line() {
        for remedy in Remedy::examples() {
            let words = word(&remedy);
            assert!(!words.is_empty() && words != remedy.to_string(), "{remedy:?}: {words}");
        }
    }

    #[test]
    fn a_sentence_names_the_command() {
        let (path, file) = (PathBuf::from("runs/a"), PathBuf::from("runs/a/run.db"));
        let told = sentence(&Error::Run { path, file, fault: didyma::Fault::Exists });
        assert_eq!(
            told,
            "runs/a already holds a run: continue it with `didyma resume runs/a`, or choose another --out"
        );
    }
}
