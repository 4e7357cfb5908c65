//! SMC-ABC: a posterior that is known, acceptance tests on M/G/1, and the stored references.

#![allow(clippy::unwrap_used)]

use crate::columns::moments;
use didyma::abc::{SmcAbc, SmcAbcResult, StopReason};
use didyma::rng::{Purpose, Streams};
use didyma::tasks::Task;
use std::ops::ControlFlow;

const STREAMS: Streams = Streams::new(8);

fn abc(task: &Task, particles: usize, simulations: u64) -> SmcAbc<'_> {
    SmcAbc {
        prior: task.problem.prior(),
        simulator: task.problem.simulator(),
        support: None,
        observation: task.problem.observation(),
        scale: task.scale.as_ref().unwrap(),
        particles,
        simulations,
        tolerance: 0.0,
        acceptance: 0.005,
        threads: 2,
    }
}

fn run(abc: &SmcAbc) -> SmcAbcResult {
    abc.run(&STREAMS, &mut |_| ControlFlow::Continue(())).unwrap()
}

fn sample(abc: &SmcAbc, result: &SmcAbcResult, adjust: bool) -> Vec<f64> {
    let mut rng = STREAMS.simulations(Purpose::Posterior, 0).stream(0);
    result.sample(abc, 4000, adjust, &mut rng).unwrap()
}

/// Two Moons' posterior is known: the tolerance falls, weights sum to 1, and moments tend to the exact ones.
#[test]
fn generations_tend_to_the_posterior() {
    let task = Task::named("two-moons").unwrap();
    let abc = SmcAbc { tolerance: 0.02, acceptance: 0.0, ..abc(&task, 2000, 6_000_000) };
    let result = run(&abc);
    assert_eq!(result.reason, StopReason::Tolerance);
    let tolerances: Vec<f64> = result.generations.iter().map(|g| g.tolerance).collect();
    assert!(
        tolerances.windows(2).all(|pair| pair[1] < pair[0]) && tolerances.last() == Some(&0.02)
    );
    assert!((result.weights.iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert!(result.distance.iter().all(|&d| d <= 0.02));
    let last = result.generations.last().unwrap();
    assert!(last.effective > 1000.0 && last.effective <= 2000.0, "{last:?}");
    let (mean, sd) = moments(&sample(&abc, &result, false), 2);
    // Exact: 0 and 0.2285. Four standard errors of 1,000 effective draws; the tolerance adds 0.02²/4 in variance.
    assert!(mean.iter().all(|m| m.abs() < 4.0 * 0.2285 / 1000f64.sqrt()), "{mean:?}");
    assert!(sd.iter().all(|s| (s / 0.2285 - 1.0).abs() < 4.0 * 0.5 / 1000f64.sqrt()), "{sd:?}");
}

/// On a Gaussian, whose regression is exactly linear, adjustment removes the effect of the tolerance.
#[test]
fn adjustment_is_exact_where_the_regression_is_linear() {
    let task = Task::named("gaussian-linear").unwrap();
    let abc = SmcAbc { tolerance: 4.0, acceptance: 0.0, ..abc(&task, 3000, 4_000_000) };
    let result = run(&abc);
    let (raw_mean, raw_sd) = moments(&sample(&abc, &result, false), 10);
    let (mean, sd) = moments(&sample(&abc, &result, true), 10);
    let exact = 0.05f64.sqrt();
    // Posterior mean x/2, sd √0.05; the error is that of the particles' weights after the kernel.
    let largest = result.distance.iter().copied().fold(0.0, f64::max);
    let kernel = |d: &f64| 1.0 - (d / largest).powi(2);
    let weights: Vec<f64> =
        result.weights.iter().zip(&result.distance).map(|(w, d)| w * kernel(d)).collect();
    let effective =
        weights.iter().sum::<f64>().powi(2) / weights.iter().map(|w| w * w).sum::<f64>();
    assert!(effective > 100.0, "{effective}");
    let error = 4.5 / effective.sqrt();
    for k in 0..10 {
        assert!(
            (mean[k] - 0.5 * task.problem.observation()[k]).abs() < error * exact,
            "{k}: {}",
            mean[k]
        );
        assert!((sd[k] / exact - 1.0).abs() < error, "{k}: {}", sd[k]);
    }
    let total = |sd: &[f64]| sd.iter().sum::<f64>();
    assert!(
        total(&raw_sd) > 1.1 * total(&sd),
        "the raw particles are wider: {raw_sd:?} {raw_mean:?}"
    );
}

/// M/G/1, as it was accepted elsewhere: means within 0.15 standard deviations, these within 10 % of particles of
/// another program at a tolerance of about 0.5.
#[test]
fn mg1_passes_its_acceptance_test() {
    let task = Task::named("mg1").unwrap();
    let abc = SmcAbc { acceptance: 0.0, tolerance: 0.8, ..abc(&task, 6000, 40_000_000) };
    let result = run(&abc);
    assert_eq!(result.reason, StopReason::Tolerance);
    let (mean, sd) = moments(&sample(&abc, &result, false), 3);
    let (known, known_sd) = ([0.9394, 3.1774, 0.1817], [0.1687, 2.0775, 0.0302]);
    for k in 0..3 {
        assert!((mean[k] - known[k]).abs() < 0.15 * known_sd[k], "{k}: {mean:?}");
        assert!((sd[k] / known_sd[k] - 1.0).abs() < 0.1, "{k}: {sd:?}");
    }
}

/// Rejection keeps the nearest of all its simulations, inside the known support only.
#[test]
fn rejection_keeps_the_nearest() {
    let task = Task::named("mg1").unwrap();
    let abc = SmcAbc { support: task.support.as_ref(), ..abc(&task, 300, 200_000) };
    let few = abc.reject(&STREAMS, &mut |_| ControlFlow::Continue(())).unwrap();
    assert_eq!((few.weights.len(), few.generations[0].simulations), (300, 200_000));
    assert!(few.theta.chunks_exact(3).all(|t| t[0] < 1.0974));
    let all = SmcAbc { particles: 20_000, ..abc };
    let all = all.reject(&STREAMS, &mut |_| ControlFlow::Continue(())).unwrap();
    let mut distances = all.distance.clone();
    distances.sort_by(f64::total_cmp);
    let mut nearest = few.distance.clone();
    nearest.sort_by(f64::total_cmp);
    assert_eq!(nearest, distances[..300]);
}

#[test]
fn the_result_is_the_same_for_any_number_of_threads() {
    let task = Task::named("mg1").unwrap();
    let one = run(&SmcAbc { threads: 1, ..abc(&task, 500, 100_000) });
    let three = run(&SmcAbc { threads: 3, ..abc(&task, 500, 100_000) });
    assert_eq!(
        (&one.theta, &one.weights, one.generations),
        (&three.theta, &three.weights, three.generations)
    );
}

#[test]
fn bad_settings_and_stops_are_told() {
    let task = Task::named("mg1").unwrap();
    let says = |abc: SmcAbc, part: &str| {
        let text = abc.run(&STREAMS, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
        assert!(text.contains(part), "{text}");
    };
    says(abc(&task, 10, 100_000), "particles is 10");
    says(abc(&task, 1000, 5000), "simulations is 5000");
    says(SmcAbc { tolerance: f64::NAN, ..abc(&task, 500, 100_000) }, "tolerance is NaN");
    says(SmcAbc { acceptance: 1.0, ..abc(&task, 500, 100_000) }, "acceptance is 1");
    let stopped = abc(&task, 500, 100_000).run(&STREAMS, &mut |_| ControlFlow::Break(())).unwrap();
    assert_eq!((stopped.reason, stopped.generations.len()), (StopReason::Stopped, 1));
    let spent = run(&SmcAbc { acceptance: 0.0, ..abc(&task, 500, 20_000) });
    assert!(
        spent.reason == StopReason::Budget
            && spent.generations.last().unwrap().simulations <= 20_000
    );
}

/// A summary that never varies does not spoil the adjustment, and shapes are checked.
#[test]
fn a_constant_summary_is_no_obstacle() {
    use didyma::simulator::from_fn;
    let task = Task::named("two-moons").unwrap();
    let simulator = from_fn(2, 3, |theta, rng, x| {
        didyma::tasks::two_moons(theta, rng, &mut x[..2]);
        x[2] = 7.0;
    });
    let (observation, scale) = ([0.0, 0.0, 7.0], [1.0; 3]);
    let abc = SmcAbc {
        simulator: &simulator,
        observation: &observation,
        scale: &scale,
        ..abc(&task, 500, 50_000)
    };
    let theta = sample(&abc, &run(&abc), true);
    assert!(theta.iter().all(|t| t.is_finite()));
    let short = SmcAbc { scale: &scale[..2], ..abc };
    let text = short.run(&STREAMS, &mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(text.contains("scale has 2 numbers"), "{text}");
}
