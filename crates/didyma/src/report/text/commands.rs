//! Commands that a page quotes, since its reader may have come by neither front end.

use crate::inference::config::{Config, Profile};
use crate::named::Named;
use crate::problem::record::Source;
use crate::problem::tasks::Task;
use crate::report::data::RunData;

/// The call that simulates at the posterior of a run.
pub(super) fn predicting(run: &RunData) -> &'static str {
    match run.manifest.problem.as_ref().map(|problem| &problem.source) {
        Some(Source::Function { .. }) => "in Python: result.report(path, simulator=simulator)",
        _ => "`didyma report DIR --predictive COUNT`",
    }
}

/// The command that makes this run again, if its task is a built-in one.
pub fn command(run: &RunData) -> Option<String> {
    if run.manifest.problem.is_some() || Task::named(&run.manifest.task).is_none() {
        return None;
    }
    let config = &run.manifest.config;
    let usual = Config::new(config.profile, config.algorithm());
    let mut words = format!("didyma infer {} --method {}", run.manifest.task, config.method_name());
    if config.profile != Profile::Default {
        words.push_str(&format!(" --profile {}", config.profile.name()));
    }
    let own = ["profile", "seed", "rounds", "simulations", "estimator.method"];
    words.push_str(&format!(
        " --rounds {} --simulations {} --seed {}",
        config.rounds, config.simulations, config.seed
    ));
    for ((key, value, _), (_, before, _)) in config.list().into_iter().zip(usual.list()) {
        if value != before && !own.contains(&key) {
            let quoted = if value.contains(' ') {
                format!("\"{key}={value}\"")
            } else {
                format!("{key}={value}")
            };
            words.push_str(&format!(" --set {quoted}"));
        }
    }
    Some(words)
}
