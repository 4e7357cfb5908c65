//! A whole inference by a worker, interrupted in the middle of a simulation that hangs.

use super::Bench;
use didyma::config::{Config, Profile};
use didyma::estimator::Method;
use didyma::prior::Prior;
use didyma::rng::{Purpose, Streams};
use didyma::run::{Manifest, Recorder, RunDir};
use didyma::{Event, Inference, Observer, Problem, SampleStreams, State, infer_from};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Breaks once nothing has come for a while.
struct Impatient {
    empty: usize,
    broken: Option<Instant>,
}

impl Observer for Impatient {
    fn notice(&mut self, event: &Event) -> didyma::Result<ControlFlow<()>> {
        if let Event::Simulated { rows, .. } = event {
            self.empty = if rows.is_empty() { self.empty + 1 } else { 0 };
        }
        if self.empty < 10 {
            return Ok(ControlFlow::Continue(()));
        }
        self.broken.get_or_insert(Instant::now());
        Ok(ControlFlow::Break(()))
    }
}

fn samples(found: Inference) -> Vec<f64> {
    assert!(found.finished);
    let streams = SampleStreams::new(Streams::new(5), Purpose::Posterior, 0);
    found.posterior.unwrap().draw(100, streams, 2).unwrap().theta
}

const SCRIPT: &str = r#"
import random
for r in requests():
    a, b = r["theta"]
    while a > 0.7 and os.path.exists("hang"):
        time.sleep(1000)
    if b > 0.8:
        sys.exit("too much")
    noise = random.Random(r["seed"])
    answer(r, x=[a + noise.gauss(0, 0.1), b + noise.gauss(0, 0.1)])
"#;

#[test]
fn a_run_that_was_interrupted_ends_as_if_it_had_not_been() {
    let bench = Bench::worker(SCRIPT).limits(600.0, 600.0);
    let simulator = bench.simulator();
    let prior = Prior::uniform(["a", "b"], [0.0; 2], [1.0; 2]).unwrap();
    let model = Problem::new(prior, simulator, [0.5, 0.4]).unwrap();
    let mut config = Config::new(Profile::Default, Method::Tgrr);
    (config.rounds, config.simulations, config.train.steps) = (2, 60, Some(20));
    (config.flow.layers, config.flow.units) = (2, 8);
    let whole = samples(infer_from(&model, None, &config, 2, State::default(), &mut ()).unwrap());

    let hang = bench.folder.path().join("hang");
    std::fs::write(&hang, "").unwrap();
    let dir = bench.folder.path().join("run");
    let manifest = Manifest::of_task("two-moons", config.clone());
    let run = RunDir::create(&dir, &manifest).unwrap();
    let impatient = Impatient { empty: 0, broken: None };
    let mut observer = (Recorder::new(run, Vec::new()), impatient);
    let found = infer_from(&model, None, &config, 2, State::default(), &mut observer).unwrap();
    assert!(!found.finished);
    assert!(observer.1.broken.unwrap().elapsed() < Duration::from_secs(1));
    drop(observer);

    std::fs::remove_file(&hang).unwrap();
    let run = RunDir::open(&dir).unwrap();
    let stored = run.progress().unwrap();
    // What hung is not there; what failed is, with its reason.
    assert!(stored.rows.len() < 60 && stored.rows.iter().all(|row| row.theta[0] <= 0.7));
    let reasons: Vec<&String> = stored.rows.iter().filter_map(|row| row.x.as_ref().err()).collect();
    assert!(reasons.iter().all(|reason| reason.contains("exit code 1\nits last words:\ntoo much")));
    let mut recorder = Recorder::new(run, Vec::new());
    assert_eq!(
        samples(infer_from(&model, None, &config, 2, stored, &mut recorder).unwrap()),
        whole
    );
}
