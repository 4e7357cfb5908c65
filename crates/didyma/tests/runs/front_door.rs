//! `infer(&problem)`: runs on the disk and in a temporary directory, stopped, continued and refused.

#![allow(clippy::unwrap_used)]

use didyma::run::{Findings, REPORT, RunDir};
use didyma::storage::TensorFile;
use didyma::{
    Event, Fault, Found, Infer, Observer, Posterior, Prior, Problem, Result, Rows, from_fn, infer,
};
use rand::RngExt;
use serde_json::Value;
use std::ops::ControlFlow;
use std::path::Path;

fn problem() -> Problem<'static> {
    let prior = Prior::uniform(["theta"], [-1.0], [1.0]).unwrap();
    let simulator =
        from_fn(1, 1, |theta, rng, x| x[0] = theta[0] + 0.1 * rng.random_range(-1.0..1.0));
    Problem::new(prior, simulator, [0.25]).unwrap()
}

fn small<'a>(problem: &'a Problem<'a>) -> Infer<'a> {
    infer(problem).rounds(2).simulations(60).set("train.steps", 30).threads(1)
}

fn samples(found: &Found) -> Vec<f64> {
    found.posterior().sample(50, 1).unwrap().theta
}

fn fault(result: Result<Found>) -> Fault {
    match result {
        Err(didyma::Error::Run { fault, .. }) => fault,
        other => panic!("{other:?}"),
    }
}

/// Stops after a round.
struct StopAfter(u32);

impl Observer for StopAfter {
    fn notice(&mut self, event: &Event) -> Result<ControlFlow<()>> {
        Ok(match event {
            Event::RoundFinished { report, .. } if report.round == self.0 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        })
    }
}

/// A model of an earlier version has no ranges of summaries: the run's rows have them.
#[test]
fn a_run_knows_where_its_simulations_fell() {
    let (problem, folder) = (problem(), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    let found = small(&problem).out(&dir).run().unwrap();
    let x = Rows::new("x", &[0.25, 3.0], 1).unwrap();
    let told = found.posterior().untrained(x, &[]).unwrap();
    assert_eq!((told.rows, told.first), (1, 1));
    let model = dir.join("round-2.safetensors");
    let mut file = TensorFile::load(&model, "posterior", &["params"]).unwrap();
    let mut described: Value = serde_json::from_str(&file.json).unwrap();
    assert!(described.as_object_mut().unwrap().remove("ranges").is_some());
    file.json = described.to_string();
    file.save(&model).unwrap();
    assert_eq!(Posterior::load(&model).unwrap().untrained(x, &[]), None);
    let run = RunDir::read(&dir).unwrap();
    assert_eq!(run.posterior().unwrap().untrained(x, &[]), Some(told));
}

#[test]
fn a_stopped_run_continues_to_the_same_posterior() {
    let (problem, folder) = (problem(), tempfile::tempdir().unwrap());
    let (whole, dir) = (small(&problem).run().unwrap(), folder.path().join("run"));
    assert!(whole.is_finished() && whole.directory().is_none());
    let mut stop = StopAfter(1);
    let stopped = small(&problem).out(&dir).observer(&mut stop).run().unwrap();
    assert!(!stopped.is_finished() && stopped.directory() == Some(&*dir));
    assert!(!dir.join(REPORT).exists(), "an unfinished run has no page");
    let found = small(&problem).resume(&dir).run().unwrap();
    assert_eq!(samples(&found), samples(&whole));
    assert!(dir.join(REPORT).is_file());
    // A finished run is found again, and what it stored is what was returned.
    assert_eq!(samples(&small(&problem).resume(&dir).run().unwrap()), samples(&whole));
    let findings = Findings::read(&dir, 1).unwrap();
    assert!(findings.is_finished() && findings.samples().unwrap().is_some());
    let text = found.summary().to_string();
    assert!(text.contains("problem by tgrr") && text.contains("theta"), "{text}");
}

#[test]
fn what_cannot_be_done_is_a_fault_that_says_why() {
    let (problem, folder) = (problem(), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    small(&problem).out(&dir).run().unwrap();
    assert_eq!(fault(small(&problem).out(&dir).run()), Fault::Exists);
    let differs = fault(small(&problem).seed(5).resume(&dir).run());
    assert_eq!(differs, Fault::Differs { what: "seed".to_owned() });
    let _held = RunDir::open(&dir).unwrap();
    assert!(matches!(fault(small(&problem).resume(&dir).run()), Fault::Locked { .. }));
    assert_eq!(fault(small(&problem).out(&dir).run()), Fault::Exists, "not our own lock");
    assert!(small(&problem).set("train.bacth", 1).run().is_err());
    for name in ["a/b", "..", "\u{1b}[2J", ""] {
        let (named, new) = (small(&problem).name(name), folder.path().join("new"));
        let told = named.out(&new).run().unwrap_err().to_string();
        assert!(told.starts_with("the problem's name \"") && !new.exists(), "{told}");
    }
}

/// What no inference can use is refused before it simulates.
#[test]
fn observations_beyond_all_measure_are_refused() {
    let at = |x: f64| problem().with_observation([x]).map(|_| ());
    assert!(at(1e150).is_ok() && at(-1e150).is_ok());
    for x in [1e308, -1.1e150] {
        let told = at(x).unwrap_err().to_string();
        assert!(told.starts_with(&format!("number 1 of the observation is {x:e}")), "{told}");
    }
    assert!(at(f64::NAN).unwrap_err().to_string().contains("NaN"));
}

/// Nothing of a run is lost because its page cannot be written.
#[test]
fn a_page_that_cannot_be_written_is_no_loss() {
    let (problem, folder) = (problem(), tempfile::tempdir().unwrap());
    let dir = folder.path().join("run");
    let mut stop = StopAfter(1);
    small(&problem).out(&dir).observer(&mut stop).run().unwrap();
    std::fs::create_dir(dir.join(REPORT)).unwrap();
    assert!(small(&problem).resume(&dir).run().unwrap().is_finished());
}

/// An error leaves the directory where it was, also a temporary one: its message may name it.
#[test]
fn a_run_that_fails_keeps_its_directory() {
    let prior = Prior::uniform(["theta"], [-1.0], [1.0]).unwrap();
    let problem = Problem::new(prior, from_fn(1, 1, |_, _, x| x[0] = f64::NAN), [0.0]).unwrap();
    let kept = |folder: &Path| {
        let folders = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        folders.filter(|path| RunDir::read(path).is_ok()).count()
    };
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("run");
    let told = small(&problem).out(&dir).run().unwrap_err().to_string();
    assert!(told.contains("one after another"), "{told}");
    assert_eq!(kept(folder.path()), 1);
}
