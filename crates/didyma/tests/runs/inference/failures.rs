//! Simulators that fail, now and then or always, and training that does.

use super::{Keeper, tiny};
use didyma::config::{Config, Profile, Schedule, Split};
use didyma::prior::Prior;
use didyma::rng::SimulationStream;
use didyma::simulator::{SimulationFailed, Simulator, from_fn};
use didyma::tasks::Task;
use didyma::training::StopReason;
use didyma::{Error, Inference, Observer, Problem, SimulatedRow, State, infer_from};
use rand::RngExt;

/// x = θ + noise, in two dimensions, with this probability; else one of three failures.
struct Flaky {
    works: f64,
}

impl Simulator for Flaky {
    fn theta_dim(&self) -> usize {
        2
    }

    fn x_dim(&self) -> usize {
        2
    }

    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        x.iter_mut().zip(theta).for_each(|(x, t)| *x = t + 0.2 * rng.random::<f64>());
        if rng.random::<f64>() < self.works {
            return Ok(());
        }
        match rng.random_range(0..3) {
            0 => panic!("the simulator's own mistake"),
            1 => x[1] = f64::NAN,
            _ => return Err(SimulationFailed("it did not start".to_owned())),
        }
        Ok(())
    }
}

fn attempt(works: f64, config: &Config) -> didyma::Result<Inference> {
    let prior = Prior::uniform(["a", "b"], [-1.0; 2], [1.0; 2])?;
    let simulator = Flaky { works };
    let problem = Problem::new(prior, simulator, [0.1, 0.2])?;
    infer_from(&problem, None, config, 2, State::default(), &mut ())
}

#[test]
fn failures_are_counted_and_the_run_goes_on() {
    let found = attempt(0.7, &tiny(Profile::Default)).unwrap();
    assert!(found.finished);
    for report in &found.reports {
        // Binomial with n = 120 and p = 0.3: 36 ± 4 · 5.
        assert!((16..=56).contains(&report.failures), "{}", report.failures);
        assert_eq!(report.simulations, 120);
        let validity = report.validity.unwrap();
        assert!(validity.failed > 0.1 && !validity.depends, "{validity:?}");
        assert!(validity.effective.is_none() && validity.beyond.is_none(), "{validity:?}");
    }
}

#[test]
fn a_simulator_that_always_fails_is_told_with_its_reason() {
    let mut config = tiny(Profile::Default);
    config.failures.in_a_row = 0;
    let told = attempt(0.0, &config).unwrap_err();
    assert!(matches!(told, Error::FewSimulations { round: 1, succeeded: 0, .. }), "{told}");
    let told = told.to_string();
    assert!(told.contains("only 0 of the 120") && told.contains("(the first failure: "), "{told}");
}

/// Once it works, the run goes on: with the failed rows as they are, or without them, as if it had always worked.
#[test]
fn failures_in_a_row_stop_a_run_that_can_go_on() {
    let prior = Prior::uniform(["a", "b"], [-1.0; 2], [1.0; 2]).unwrap();
    let mut config = tiny(Profile::Default);
    (config.simulations, config.failures.in_a_row) = (500, 60);
    let attempt = |works, progress, observer: &mut dyn Observer| {
        let simulator = Flaky { works };
        let problem = Problem::new(prior.clone(), simulator, [0.1, 0.2]).unwrap();
        infer_from(&problem, None, &config, 2, progress, observer)
    };
    let mut keeper = Keeper::default();
    let told = attempt(0.0, State::default(), &mut keeper).unwrap_err();
    assert!(matches!(told, Error::FailuresInARow { failures: 60, round: 1, .. }), "{told}");
    assert!(told.to_string().contains("failed simulations can be made again"), "{told}");
    assert!(keeper.now.rows.len() >= 60 && keeper.now.rows.iter().all(|row| row.x.is_err()));
    // A piece of work has as many rows as take 2 ms: it may be all of them.
    let mut progress = keeper.now;
    progress.rows.truncate(100);
    let found = attempt(1.0, progress.clone(), &mut ()).unwrap();
    assert_eq!(found.reports[0].failures, progress.rows.len());
    progress.rows.clear();
    assert_eq!(attempt(1.0, progress, &mut ()).unwrap().reports[0].failures, 0);
}

/// A few successes, 4 to 15 of 120: they may all be rows to train on, or all held out.
#[test]
fn a_handful_of_successes_is_enough() {
    let mut finished = 0;
    for split in [Split::Fixed, Split::Newest, Split::Pooled] {
        for seed in 1..=6 {
            let mut config = tiny(Profile::Default);
            (config.train.split, config.seed, config.train.steps) = (split, seed, Some(10));
            config.failures.in_a_row = 0;
            match attempt(0.07, &config) {
                Ok(found) => finished += usize::from(found.finished),
                Err(Error::FewSimulations { .. }) => {}
                Err(other) => panic!("{split:?}, seed {seed}: {other}"),
            }
        }
    }
    assert!(finished >= 12, "{finished}");
}

/// Summaries as large as f32 has them, not scaled: the first layer's sums overflow on any kernel, and their difference is NaN.
#[test]
fn diverging_ends_a_round_and_not_the_run() {
    let prior = Prior::uniform(["a", "b"], [-1.0; 2], [1.0; 2]).unwrap();
    let simulator = from_fn(2, 2, |theta, rng, x| {
        x[0] = (3e38 * theta[0]) * rng.random::<f64>();
        x[1] = (3e38 * theta[1]) * rng.random::<f64>();
    });
    let model = Problem::new(prior, simulator, [0.0, 0.0]).unwrap();
    let mut config = tiny(Profile::Paper);
    (config.train.rate, config.train.schedule) = (1.0, Schedule::Constant);
    config.coordinates.space = didyma::coordinates::Space::Unbounded;
    let found = infer_from(&model, None, &config, 2, State::default(), &mut ()).unwrap();
    assert!(found.finished);
    assert!(
        found.reports.iter().any(|r| r.stop_reason == StopReason::Diverged),
        "{:?}",
        found.reports
    );
}

#[test]
fn models_that_do_not_fit_together_are_refused() {
    let task = Task::named("two-moons").unwrap();
    let told = |observation: &[f64]| {
        task.problem.clone().with_observation(observation).unwrap_err().to_string()
    };
    assert!(told(&[0.0]).contains("observation has 1 numbers, but 2 are needed"));
    assert!(told(&[0.0, f64::NAN]).contains("observation holds NaN"));
    let prior = Prior::uniform(["a"], [0.0], [1.0]).unwrap();
    let error = Problem::new(prior, task.problem.simulator(), [0.0; 2]).unwrap_err().to_string();
    assert!(error.contains("prior has 1 numbers, but 2 are needed"), "{error}");
    let mut config = tiny(Profile::Default);
    config.simulations = 2;
    let error = infer_from(&task.problem, None, &config, 1, State::default(), &mut ()).unwrap_err();
    assert!(error.to_string().contains("simulations is 2"), "{error}");
    // Another problem's rows.
    let row = SimulatedRow { round: 1, index: 0, theta: vec![0.0; 3], x: Ok(vec![0.0; 2]) };
    let progress = State { rows: vec![row], ..State::default() };
    let error =
        infer_from(&task.problem, None, &tiny(Profile::Default), 1, progress, &mut ()).unwrap_err();
    assert!(error.to_string().contains("the run is of another one"), "{error}");
}
