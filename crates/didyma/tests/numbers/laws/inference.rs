//! Whole runs.

use didyma::config::{Algorithm, Config, Inner, Profile};
use didyma::estimator::Method;
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use didyma::training::{Cpu, Device, Machine};
use didyma::{Inference, Observer, Posterior, SampleStreams, State, infer_from};
use keeper::Keeper;
use std::sync::Arc;

#[path = "../../keeper/mod.rs"]
mod keeper;

/// A run that takes seconds on a device that is emulated.
fn tiny(algorithm: Algorithm) -> Config {
    let mut config = Config::new(Profile::Default, algorithm);
    (config.rounds, config.simulations) = (2, 80);
    (config.flow.layers, config.flow.units) = (2, 8);
    (config.train.steps, config.train.epochs) = (Some(5), 3);
    config.truncation.draws = 1000;
    config.ensemble.members = 1;
    config
}

fn run(
    device: &Arc<dyn Device>,
    config: &Config,
    progress: State,
    observer: &mut dyn Observer,
) -> Inference {
    let task = Task::named("two-moons").unwrap();
    let machine = Machine::new(2, device.clone());
    infer_from(&task.problem, None, config, machine, progress, observer).unwrap()
}

/// Samples, all of which lie in the prior, and their densities.
fn samples(posterior: &Posterior) -> (Vec<f64>, Vec<f64>) {
    let streams = SampleStreams::new(Streams::new(5), Purpose::Posterior, 0);
    let theta = posterior.draw(200, streams, 2).unwrap().theta;
    assert!(theta.iter().all(|t| (-1.0..=1.0).contains(t)), "two moons has a prior on ±1");
    let rows = didyma::Rows::new("theta", &theta, 2).unwrap();
    let log_q = posterior.log_density(rows, 2).unwrap();
    assert!(log_q.iter().all(|l| l.is_finite()));
    (theta, log_q)
}

pub fn a_run_by_tgrr_ends_with_the_same_bytes_here_and_goes_on_elsewhere(device: &Arc<dyn Device>) {
    ends_with_the_same_bytes_here_and_goes_on_elsewhere(device, &tiny(Method::Tgrr.into()));
}

/// Its inner samples are made for every row, and have no x.
pub fn a_run_by_the_mixture_ends_with_the_same_bytes_here_and_goes_on_elsewhere(
    device: &Arc<dyn Device>,
) {
    let mut config = tiny(Method::Atomic.into());
    config.estimator.atoms = 9;
    (config.train.inner, config.train.stock) = (Inner::Mixture, 16);
    ends_with_the_same_bytes_here_and_goes_on_elsewhere(device, &config);
}

pub fn a_run_by_tsnpe_ends_with_the_same_bytes_here_and_goes_on_elsewhere(
    device: &Arc<dyn Device>,
) {
    ends_with_the_same_bytes_here_and_goes_on_elsewhere(device, &tiny(Algorithm::Tsnpe));
}

/// Once in one go; and stopped after the first round, to be gone on with where it was, on the CPU, and the other way round.
fn ends_with_the_same_bytes_here_and_goes_on_elsewhere(device: &Arc<dyn Device>, config: &Config) {
    let mut whole = Keeper::default();
    let expected = run(device, config, State::default(), &mut whole);
    assert!(expected.finished && expected.reports.len() == 2);
    let event = whole.all.iter().position(|progress| progress.reports.len() == 1);
    let stopped = |device| {
        let mut keeper = Keeper { stop_after: event.map(|e| e + 1), ..Keeper::default() };
        let half = run(device, config, State::default(), &mut keeper);
        assert!(!half.finished && half.reports.len() == 1);
        keeper.now
    };
    let (half, cpu) = (stopped(device), Arc::new(Cpu) as Arc<dyn Device>);
    let again = run(device, config, half.clone(), &mut ());
    let [expected, again] = [expected, again].map(|found| found.posterior.unwrap());
    assert!(expected.is_same(&again) && samples(&expected) == samples(&again));
    for (to, progress) in [(&cpu, half), (device, stopped(&cpu))] {
        let elsewhere = run(to, config, progress, &mut ());
        assert!(elsewhere.finished && elsewhere.reports.len() == 2);
        samples(&elsewhere.posterior.unwrap());
    }
}
