//! Remedies of the library in Python's words: its functions and their arguments.

use didyma::{Error, Remedy};

/// The message of an error.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::NoDevice { device, fault } => {
            format!("device is \"{device}\", but {}", fault.sentence(&word))
        }
        other => other.sentence(&word),
    }
}

/// A phrase for a remedy.
pub fn word(remedy: &Remedy) -> String {
    let words = match remedy {
        Remedy::Resume { dir } => {
            let dir = dir.display();
            return format!("run `didyma.resume` or on the command line `didyma resume {dir}`");
        }
        Remedy::Continue { what: "it", .. } => "go on with it by resume=True or didyma.resume",
        Remedy::Continue { what, dir } => {
            let dir = dir.display();
            return format!(
                "continue {what} with `didyma.resume` or on the command line `didyma resume {dir}`"
            );
        }
        Remedy::Propose { dir } => {
            return format!("run `didyma propose {}` on the command line", dir.display());
        }
        Remedy::ProposeSimulations { dir, count } => {
            let dir = dir.display();
            return format!("propose {count} simulations for {dir} by `didyma calibrate`");
        }
        Remedy::OtherMethod { name } => return format!("take another method (method=\"{name}\")"),
        Remedy::RetryFailed => "go on (retry_failed=True makes the failed ones again)",
        Remedy::ResumeOnCpu => {
            "`didyma.resume` goes on from what is saved, with device=\"cpu\" if it happens again"
        }
        Remedy::ResumeWithSimulator => "go on with didyma.resume(directory, simulator)",
        Remedy::AnotherDirectory => "choose another out",
        Remedy::SameDirectory => "start it again with the same out",
        Remedy::RunDirectory => "give the directory of one",
        Remedy::AnotherShard => "give another path",
        Remedy::ProposeAgain => "write the file anew with `didyma propose` on the command line",
        Remedy::ListSettings => "didyma.settings() lists them all",
        Remedy::ChooseProfile => "chosen by the argument profile",
        Remedy::UnboundedCoordinates => {
            "use unbounded coordinates (profile=\"default\", or settings={\"coordinates.space\": \"unbounded\"})"
        }
        Remedy::StateProposal => "say where they come from, as proposal=prior",
        Remedy::Abc => "try `didyma abc` on the command line",
        Remedy::Predictive => "a report with its simulator: result.report(path, simulator=...)",
        Remedy::Calibrate => "run `didyma calibrate RUN` on the command line",
        Remedy::NewSimulations => {
            "make new simulations for it: result.calibrate(simulator, simulations=1000)"
        }
        Remedy::Cpu => "choose device=\"cpu\"",
        Remedy::CpuOrMethod => "choose device=\"cpu\", or another method",
    };
    words.to_owned()
}
