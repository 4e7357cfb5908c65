//! Verdicts of runs: on good ones, on broken ones, and on what cannot be checked.

#![allow(clippy::unwrap_used)]

use didyma::calibration::Evidence;
use didyma::run::{CALIBRATION, Findings, Outcome, SUMMARY, Word};
use didyma::{Algorithm, Event, Infer, Named, Observer, Prior, Problem, Result, from_fn, infer};
use rand_distr::{Distribution, StandardNormal};
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;

/// x = θ + noise, twice, under a normal prior.
fn problem(x_o: [f64; 2]) -> Problem<'static> {
    let normal = didyma::Marginal::Normal { mean: 0.0, sd: 1.0 };
    let prior = Prior::new([("a", normal), ("b", normal)]).unwrap();
    let simulator = from_fn(2, 2, |theta, rng, x| {
        for (x, theta) in x.iter_mut().zip(theta) {
            let noise: f64 = StandardNormal.sample(rng);
            *x = theta + 0.3 * noise;
        }
    });
    Problem::new(prior, simulator, x_o).unwrap()
}

fn run<'a>(problem: &'a Problem<'a>, method: &str) -> Infer<'a> {
    let (_, method) = Algorithm::ALL.iter().find(|(name, _)| *name == method).unwrap();
    let run = infer(problem).rounds(3).simulations(300).method(*method).seed(4).threads(2);
    run.set("train.steps", 800).set("train.cycles", 1)
}

fn findings(path: &Path) -> Findings {
    Findings::read(path, 2).unwrap()
}

fn names(findings: &Findings, outcome: Outcome) -> Vec<String> {
    let checks = &findings.verdict().unwrap().checks;
    checks.iter().filter(|check| check.outcome == outcome).map(|c| c.name.clone()).collect()
}

/// By every kind of proposal: a posterior, a region, both, the prior.
#[test]
fn a_good_run_is_trusted_by_simulations_that_training_never_saw() {
    let problem = problem([0.5, -0.4]);
    for (method, proposal) in
        [("tgrr", "posterior"), ("tsnpe", "truncated"), ("tgrr", "mixed"), ("npe", "prior")]
    {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path().join("run");
        run(&problem, method).set("proposal", proposal).out(&dir).run().unwrap();
        let findings = findings(&dir);
        let verdict = findings.verdict().unwrap();
        assert_eq!(verdict.word, Word::Trust, "{method} {proposal}: {verdict}");
        let calibration = findings.calibration().as_ref().unwrap();
        // A tenth of each round is held out by each of four members; of truncated proposals the last round alone is asked.
        let first = match method {
            "npe" => 1,
            "tsnpe" => 3,
            _ => 2,
        };
        assert_eq!(calibration.evidence, Evidence::HeldOut(first, 3));
        assert!(calibration.rows >= 60 && calibration.effective > 5.0, "{calibration:?}");
        let stored: Value =
            serde_json::from_slice(&std::fs::read(dir.join(SUMMARY)).unwrap()).unwrap();
        assert_eq!(stored["verdict"]["word"], "trust");
        assert!(stored["verdict"]["reasons"].as_array().unwrap().len() > 2);
    }
}

/// Same bytes for any number of threads, and made again where it is lost.
#[test]
fn a_calibration_is_a_function_of_the_run() {
    let problem = problem([0.5, -0.4]);
    let folder = tempfile::tempdir().unwrap();
    let stored = |threads: usize| {
        let dir = folder.path().join(format!("run-{threads}"));
        run(&problem, "tgrr").set("train.steps", 60).threads(threads).out(&dir).run().unwrap();
        std::fs::read(dir.join(CALIBRATION)).unwrap()
    };
    assert_eq!(stored(1), stored(3));
    let dir = folder.path().join("run-1");
    let before = findings(&dir);
    std::fs::remove_file(dir.join(CALIBRATION)).unwrap();
    let again = findings(&dir);
    assert_eq!(before.calibration(), again.calibration());
    assert_eq!(before.verdict().unwrap(), again.verdict().unwrap());
    // One of another run counts as lost.
    let other = std::fs::read_to_string(folder.path().join("run-3").join(CALIBRATION)).unwrap();
    std::fs::write(dir.join(CALIBRATION), other.replace("\"round\":3", "\"round\":2")).unwrap();
    assert_eq!(findings(&dir).calibration(), before.calibration());
}

/// A flow that was hardly trained is still the prior: ranks cannot see that, the summaries that it ignores do.
#[test]
fn an_untrained_run_is_not_trusted() {
    let problem = problem([0.5, -0.4]);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    run(&problem, "npe").set("train.steps", 3).out(&dir).run().unwrap();
    let findings = findings(&dir);
    assert_ne!(findings.verdict().unwrap().word, Word::Trust);
    let doubted = [names(&findings, Outcome::Doubtful), names(&findings, Outcome::Bad)].concat();
    assert!(doubted.contains(&"near the observation".to_owned()), "{doubted:?}");
}

/// An observation that the model cannot give.
#[test]
fn a_misspecified_run_is_not_trusted() {
    let problem = problem([9.0, -0.4]);
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    run(&problem, "npe").out(&dir).run().unwrap();
    let findings = findings(&dir);
    assert_eq!(findings.verdict().unwrap().word, Word::DoNotTrust);
    assert!(names(&findings, Outcome::Bad).contains(&"observation".to_owned()));
}

/// Stops after the first round.
struct Stop;

impl Observer for Stop {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        Ok(match event {
            Event::RoundFinished { .. } => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}

#[test]
fn what_was_not_checked_is_not_trusted() {
    let problem = problem([0.5, -0.4]);
    let folder = tempfile::tempdir().unwrap();
    let stopped = folder.path().join("stopped");
    run(&problem, "tgrr").set("train.steps", 60).out(&stopped).observer(&mut Stop).run().unwrap();
    let found = findings(&stopped);
    assert_eq!(found.verdict().unwrap().word, Word::Check);
    assert!(names(&found, Outcome::NotChecked).contains(&"calibration".to_owned()));
    assert!(names(&found, Outcome::Doubtful).contains(&"run".to_owned()));
    // Too few rows: a tenth of 40 and 40, by one member.
    let few = folder.path().join("few");
    let run = run(&problem, "tgrr").set("train.steps", 60).set("ensemble.members", 1);
    run.simulations(40).rounds(2).out(&few).run().unwrap();
    let found = findings(&few);
    let why = found.calibration().as_ref().unwrap_err();
    assert!(why.contains("20") && why.contains("simulate more"), "{why}");
    assert!(names(&found, Outcome::NotChecked).contains(&"calibration".to_owned()));
    assert_ne!(found.verdict().unwrap().word, Word::Trust);
}
