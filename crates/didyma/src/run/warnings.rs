//! What a user should know of simulations that failed.

use crate::inference::RoundReport;
use crate::inference::config::{Config, Meaning};
use crate::inference::failures::{BEYOND_CHANCE, Correction, FLOOR, ValidityReport};

/// Share of the widened posterior where nothing can be corrected from which a user is told: a border two standard
/// deviations from the middle of a normal law has 2 % beyond it.
const VISIBLE: f64 = 0.02;
/// Share of their number that weights are worth below which a user is told.
const LITTLE: f64 = 0.3;

/// Sentences about the failures of all rounds so far, none if there were none.
pub(super) fn of_failures(config: &Config, rounds: &[RoundReport]) -> Vec<String> {
    let failures: usize = rounds.iter().map(|round| round.failures).sum();
    let simulations: usize = rounds.iter().map(|round| round.simulations).sum();
    if failures == 0 {
        return Vec::new();
    }
    let meaning = config.failures.meaning;
    let validity = rounds.last().and_then(|last| last.validity.as_ref());
    let found = validity.map_or("", |v| dependence(v, meaning));
    let z = validity.and_then(|v| v.z.filter(|_| v.depends));
    let z = z.map_or(String::new(), |z| format!(" (z = {z:.1}, beyond {BEYOND_CHANCE})"));
    let done = validity.map_or(outcome(), |v| correction(v, meaning));
    let mut warnings =
        vec![format!("{failures} of {simulations} simulations failed{found}{z}{done}")];
    warnings.extend(validity.filter(|_| meaning == Meaning::Missing).and_then(beyond));
    warnings.extend(validity.and_then(few_effective));
    warnings
}

/// The same but for what a verdict says of failures.
pub(super) fn notes_of_failures(config: &Config, rounds: &[RoundReport]) -> Vec<String> {
    if rounds.iter().all(|round| round.failures == 0) {
        return Vec::new();
    }
    let validity = rounds.last().and_then(|last| last.validity.as_ref());
    let done = validity.map_or(outcome(), |v| correction(v, config.failures.meaning));
    let mut notes = vec![format!("failed simulations{done}")];
    notes.extend(validity.and_then(few_effective));
    notes
}

fn dependence(validity: &ValidityReport, meaning: Meaning) -> &'static str {
    match (validity.z, validity.depends, meaning) {
        (None, ..) => ", too few of them or of the others to tell where",
        (_, false, _) => ", with no sign that it depends on the parameters",
        (_, true, Meaning::Missing) => ", more often for some parameters than for others",
        (_, true, Meaning::Outcome) => ", at a rate that depends on the parameters",
    }
}

/// What was done about it.
fn correction(validity: &ValidityReport, meaning: Meaning) -> &'static str {
    match (meaning, validity.corrected) {
        (Meaning::Outcome, _) => outcome(),
        (_, Correction::Weights) => {
            ": the others are weighted for it, and the posterior is that of a simulator that does not fail"
        }
        (_, Correction::InnerSamples) => {
            ": inner samples make up for it, and the posterior is that of a simulator that does not fail"
        }
        (_, Correction::None) => ": the posterior rests on the others as they are",
    }
}

fn outcome() -> &'static str {
    ": the posterior is that of parameters and success (failures.meaning=outcome), as it is for an observation that comes \
     from a success"
}

fn beyond(validity: &ValidityReport) -> Option<String> {
    let share = validity.beyond.filter(|share| *share > VISIBLE)?;
    Some(format!(
        "the simulator nearly never succeeds (in less than {} % of cases) for parameters beside those that the posterior \
         finds likely: {:.1} % of it, a little widened, are there. It is the posterior of the parameters for which the \
         simulator works",
        100.0 * FLOOR,
        100.0 * share
    ))
}

fn few_effective(validity: &ValidityReport) -> Option<String> {
    let share = validity.effective.filter(|share| *share < LITTLE)?;
    Some(format!(
        "weights for failures leave the simulations worth {:.0} % of their number: simulate more, or repair the simulator",
        100.0 * share
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inference::Scores;
    use crate::inference::config::{Algorithm, Profile};
    use crate::training::StopReason;

    fn report(validity: Option<ValidityReport>) -> RoundReport {
        RoundReport {
            round: 1,
            simulations: 100,
            failures: 30,
            epochs: 1,
            steps: 1,
            stop_reason: StopReason::Budget,
            seconds_simulate: 0.0,
            seconds_train: 0.0,
            seconds_score: 0.0,
            train_loss: None,
            validation_loss: None,
            scores: Scores::default(),
            outside_prior: 0.0,
            members: Vec::new(),
            disagreement: None,
            pairs: 1,
            inner: None,
            levels: None,
            drawn_elsewhere: false,
            recentred: false,
            device: String::new(),
            validity,
            oddities: Vec::new(),
        }
    }

    /// All sentences in one.
    fn told(meaning: Meaning, validity: Option<ValidityReport>) -> String {
        let mut config = Config::new(Profile::Default, Algorithm::Tsnpe);
        config.failures.meaning = meaning;
        of_failures(&config, &[report(validity)]).join("\n")
    }

    #[test]
    fn notes_say_what_was_done_and_leave_the_rest_to_the_verdict() {
        let config = Config::new(Profile::Default, Algorithm::Tsnpe);
        let notes = notes_of_failures(&config, &[report(None)]);
        assert_eq!(notes.len(), 1);
        assert!(notes[0].starts_with("failed simulations: the posterior is that of"), "{notes:?}");
        let none = RoundReport { failures: 0, ..report(None) };
        assert!(notes_of_failures(&config, &[none]).is_empty());
    }

    #[test]
    fn sentences_say_how_many_where_and_what_was_done() {
        let weighted = ValidityReport {
            failed: 0.3,
            gain: Some(0.1),
            z: Some(8.0),
            depends: true,
            corrected: Correction::Weights,
            effective: Some(0.5),
            beyond: Some(0.0),
        };
        let missing = |validity| told(Meaning::Missing, Some(validity));
        let text = missing(weighted);
        assert!(text.starts_with("30 of 100 simulations failed, more often"), "{text}");
        assert!(text.contains("(z = 8.0, beyond 3): the others are weighted"), "{text}");
        assert_eq!(text.lines().count(), 1);
        let inner = ValidityReport { corrected: Correction::InnerSamples, ..weighted };
        assert!(missing(inner).contains("inner samples make up for it"));
        let text = missing(ValidityReport { effective: Some(0.1), beyond: Some(0.05), ..weighted });
        assert!(text.contains("10 % of their number") && text.contains("5.0 % of it"), "{text}");
        let (z, depends, corrected) = (Some(1.0), false, Correction::None);
        let constant = ValidityReport { z, depends, corrected, effective: None, ..weighted };
        assert!(missing(constant).contains("no sign that it depends on the parameters: the"));
        assert!(missing(ValidityReport { z: None, ..constant }).contains("too few"));
        let text = told(Meaning::Outcome, Some(ValidityReport { corrected, ..weighted }));
        assert!(
            text.contains("depends on the parameters (z = 8.0, beyond 3): the posterior is that")
        );
        assert!(text.contains("failures.meaning=outcome"), "{text}");
        assert!(
            told(Meaning::Outcome, None).contains("30 of 100 simulations failed: the posterior")
        );
    }
}
