//! Runs of the library: rounds, training, failures, and the posterior that they end with.

#![allow(clippy::unwrap_used)]

mod device;
mod failures;
mod fit;
mod inner;
#[path = "../../keeper/mod.rs"]
mod keeper;
mod many;
mod members;
mod missing;
mod noise;
mod posterior;
mod recorder;

use didyma::config::{Algorithm, Config, Profile, Proposal};
use didyma::estimator::Method;
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use didyma::{Inference, Posterior, SampleStreams, State, infer_from};
use keeper::Keeper;

/// Settings of a run that takes a fraction of a second.
fn tiny(profile: Profile) -> Config {
    small(Config::new(profile, Method::Tgrr))
}

fn small(mut config: Config) -> Config {
    (config.rounds, config.simulations) = (2, 120);
    (config.flow.layers, config.flow.units) = (2, 8);
    (config.train.steps, config.train.epochs, config.train.early) = (Some(40), 60, 1.0);
    (config.score.units, config.score.ode_steps, config.truncation.draws) = (16, 10, 1000);
    config.ensemble.members = 1;
    config
}

fn run(task: &Task, config: &Config) -> Inference {
    infer_from(&task.problem, None, config, 2, State::default(), &mut ()).unwrap()
}

fn samples(posterior: &Posterior, count: usize) -> Vec<f64> {
    let streams = SampleStreams::new(Streams::new(5), Purpose::Posterior, 0);
    posterior.draw(count, streams, 2).unwrap().theta
}

#[test]
fn every_task_runs_and_nothing_leaves_the_prior() {
    for name in Task::NAMES {
        let (task, mut config) = (Task::named(name).unwrap(), tiny(Profile::Default));
        config.simulations = if name == "hodgkin-huxley" { 40 } else { 120 };
        let found = run(&task, &config);
        assert!(found.finished && found.reports.len() == 2, "{name}");
        assert!(found.reports.iter().all(|report| report.outside_prior == 0.0), "{name}");
        let theta = samples(&found.posterior.unwrap(), 500);
        let inside = |row: &[f64]| task.problem.prior().contains(row);
        assert!(theta.chunks_exact(task.problem.prior().dim()).all(inside), "{name}");
    }
}

/// Prior and noise have variance 0.1: the posterior has mean x/2 and standard deviation √0.05. Root mean squares of the
/// errors of the means, in standard deviations, and of the logarithms of the widths.
fn gaussian_errors(config: &Config) -> (f64, f64) {
    let task = Task::named("gaussian-linear").unwrap();
    let posterior = run(&task, config).posterior.unwrap();
    let (n, dim) = (4_000, 10);
    let theta = samples(&posterior, n);
    let (mut means, mut widths) = (0.0, 0.0);
    for (i, x) in task.problem.observation().iter().enumerate() {
        let column = || theta.iter().skip(i).step_by(dim).copied();
        let mean = column().sum::<f64>() / n as f64;
        let sd = (column().map(|t| (t - mean).powi(2)).sum::<f64>() / n as f64).sqrt();
        means += ((mean - 0.5 * x) / 0.05f64.sqrt()).powi(2) / dim as f64;
        widths += (sd / 0.05f64.sqrt()).ln().powi(2) / dim as f64;
    }
    (means.sqrt(), widths.sqrt())
}

/// With the n = 1,350 training rows a regression on ten summaries and a constant has an error of √(11/n) = 0.09
/// standard deviations in each mean, and the logarithm of a standard deviation one of 1/√(2n) = 0.02. A model that is
/// trained for seconds is allowed three times the first, and widths wrong by a fifth. Without learning the errors would
/// be those of the prior: 1.03 in the means (root mean square of x/2 in units of √0.05) and log √2 = 0.35.
#[test]
fn a_gaussian_posterior_is_found_by_every_algorithm() {
    for (algorithm, steps) in [
        (Algorithm::Corrected(Method::Tgrr), 400),
        (Algorithm::Tsnpe, 1200),
        (Algorithm::Snse, 1200),
    ] {
        let mut config = small(Config::new(Profile::Default, algorithm));
        (config.rounds, config.simulations) = (3, 500);
        (config.flow.units, config.score.units) = (24, 48);
        config.train.epochs = 1000;
        config.train.steps = Some(steps);
        let (means, widths) = gaussian_errors(&config);
        eprintln!("{algorithm:?}: {means:.3} of the means, {widths:.3} of the widths");
        assert!(means < 0.3 && widths < 0.2, "{algorithm:?}: {means} {widths}");
    }
}

/// Both profiles, since they differ in what is carried from round to round; and all that is drawn from or trained.
#[test]
fn from_any_event_a_run_ends_with_the_same_bytes() {
    let task = Task::named("two-moons").unwrap();
    let model = &task.problem;
    let tgrr = Algorithm::Corrected(Method::Tgrr);
    for (profile, algorithm, members) in [
        (Profile::Default, tgrr, 1),
        (Profile::Default, tgrr, 3),
        (Profile::Paper, tgrr, 1),
        (Profile::Paper, tgrr, 2),
        (Profile::Default, Algorithm::Tsnpe, 1),
        (Profile::Default, Algorithm::Snse, 1),
        (Profile::Paper, Algorithm::Snse, 1),
    ] {
        let mut config = small(Config::new(profile, algorithm));
        config.ensemble.members = members;
        // Noise belongs to a simulation, whoever makes it and whenever it is read.
        config.train.noise = if members == 3 { 0.25 } else { 0.0 };
        config.train.epochs = if algorithm == tgrr && members == 1 { 12 } else { 5 };
        let mut keeper = Keeper::default();
        let whole = infer_from(model, None, &config, 2, State::default(), &mut keeper).unwrap();
        let expected = samples(&whole.posterior.unwrap(), 300);
        assert!(keeper.all.len() > 10);
        for (event, progress) in keeper.all.into_iter().enumerate() {
            // Rows in any order, and some of the last round's missing.
            let mut progress = progress;
            progress.rows.reverse();
            if progress.training.is_none() {
                progress.rows.truncate(70);
            }
            let again = infer_from(model, None, &config, 1, progress, &mut ()).unwrap();
            let found = samples(&again.posterior.unwrap(), 300);
            let place = format!("{profile:?}, {algorithm:?}, {members} members, event {event}");
            assert!(again.finished && found == expected, "{place}");
        }
    }
}

/// Where each half of a round's proposals comes from shows in their spread: flat, the prior's share, the posterior.
#[test]
fn proposals_are_mixed_as_the_settings_say() {
    let task = Task::named("gaussian-linear").unwrap();
    let propose = |prior_share: f64, proposal: Proposal| -> Vec<f64> {
        let mut config = small(Config::new(Profile::Default, Method::Tgrr));
        (config.simulations, config.train.steps) = (400, Some(400));
        (config.prior_share, config.proposal) = (prior_share, proposal);
        let mut keeper = Keeper::default();
        let first = Config { rounds: 1, ..config.clone() };
        infer_from(&task.problem, None, &first, 2, State::default(), &mut keeper).unwrap();
        didyma::propose(&task.problem, &config, 2, keeper.now).unwrap().unwrap().1
    };
    let from_q = propose(0.0, Proposal::Posterior);
    let flat = propose(0.0, Proposal::Truncated);
    let mixed = propose(0.0, Proposal::Mixed);
    let shared = propose(0.25, Proposal::Posterior);
    assert!([&from_q, &flat, &mixed, &shared].iter().all(|theta| theta.len() == 4000));
    // Half and half, by streams of their own; the first half is the flat one.
    assert_eq!(mixed[..2000], flat[..2000]);
    assert!(mixed[2000..].chunks_exact(10).all(|row| !from_q.chunks_exact(10).any(|q| q == row)));
    // A quarter from the prior, the same as round 2 of a run that stays with it.
    assert_eq!(shared[1000..], from_q[..3000]);
    assert_eq!(shared[..1000], propose(0.0, Proposal::Prior)[..1000]);
}

#[test]
fn an_observer_stops_a_run_wherever_it_wants() {
    let task = Task::named("two-moons").unwrap();
    let (model, mut config) = (&task.problem, tiny(Profile::Default));
    for members in [1, 2] {
        config.ensemble.members = members;
        let mut whole = Keeper::default();
        infer_from(model, None, &config, 2, State::default(), &mut whole).unwrap();
        let events = whole.all.len();
        for stop in (1..events).step_by(2 * members + 1) {
            let mut keeper = Keeper { stop_after: Some(stop), ..Keeper::default() };
            let found = infer_from(model, None, &config, 2, State::default(), &mut keeper).unwrap();
            assert!(!found.finished || keeper.now.reports.len() == 2, "{stop} of {events}");
            assert_eq!(found.reports.len(), keeper.now.reports.len(), "{stop}");
            assert_eq!(found.posterior.is_some(), !found.reports.is_empty(), "{stop} of {events}");
            // What is told after the wish to stop is no more than the end of what was under way.
            assert!(keeper.all.len() <= stop + 1 + members, "{stop}: {}", keeper.all.len());
        }
    }
}
