//! The built-in problems against closed forms, and against figures that other programs measured.
//!
//! Where a figure was measured elsewhere with n runs and ours with m, the tolerance is four standard errors of the
//! difference, or the one that came with the figure.

#![allow(clippy::unwrap_used)]

use crate::columns::moments;
use didyma::Rows;
use didyma::metrics::{median_distance, nlog};
use didyma::rng::{Purpose, Streams};
use didyma::simulator::{Progress, from_fn, simulate};
use didyma::tasks::{Density, Record, Reference, Task, lotka_volterra};
use std::ops::ControlFlow;

const STREAMS: Streams = Streams::new(21);

fn task(name: &str) -> Task {
    Task::named(name).unwrap()
}

fn truth(task: &Task) -> &[f64] {
    task.truth.as_deref().unwrap()
}

fn scale(task: &Task) -> &[f64] {
    task.scale.as_deref().unwrap()
}

/// x of `count` simulations, at θ or at draws of the prior.
fn run(task: &Task, theta: Option<&[f64]>, count: usize) -> (Vec<f64>, Vec<f64>) {
    let all = match theta {
        Some(theta) => theta.to_vec().repeat(count),
        None => {
            task.problem.prior().sample_rows(count, &STREAMS.simulations(Purpose::Parameters, 0), 2)
        }
    };
    let rows = Rows::new("theta", &all, task.problem.prior().dim()).unwrap();
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let go_on = &mut |_: Progress| ControlFlow::Continue(());
    let found = simulate(task.problem.simulator(), rows, &streams, 0, 2, go_on).unwrap();
    assert!(found.failures.is_empty() && found.done == count);
    (all, found.x)
}

fn close(what: &str, found: &[f64], expected: &[f64], tolerance: impl Fn(usize) -> f64) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (i, (f, e)) in found.iter().zip(expected).enumerate() {
        assert!((f - e).abs() <= tolerance(i), "{what} {}: {f} instead of {e}", i + 1);
    }
}

#[test]
fn every_task_is_complete() {
    for name in Task::NAMES {
        let task = task(name);
        assert_eq!(task.name, name);
        let (d, c) = (task.problem.prior().dim(), task.problem.simulator().x_dim());
        assert_eq!((task.problem.simulator().theta_dim(), truth(&task).len()), (d, d), "{name}");
        assert_eq!(
            (task.problem.observation().len(), scale(&task).len(), task.summaries.len()),
            (c, c, c),
            "{name}"
        );
        assert_eq!(task.labels.len(), d, "{name}");
        assert!(
            task.problem.prior().contains(truth(&task)) && scale(&task).iter().all(|&s| s > 0.0),
            "{name}"
        );
        let (_, x) = run(&task, None, 200);
        assert!(x.iter().all(|v| v.is_finite()), "{name}");
    }
}

/// Closed-form moments of the posterior to four digits, from 4·10⁶ exact draws: the standard error of a mean of
/// size 0.23 is 10⁻⁴, that of a variance of size 0.05 is 3·10⁻⁵.
#[test]
fn two_moons_has_its_closed_form_moments() {
    let task = task("two-moons");
    let n = 4_000_000;
    let theta = task.reference(n, &STREAMS, 2).unwrap();
    let pairs = || theta.chunks_exact(2).map(|t| (t[0], t[1]));
    let mean = |of: fn(f64, f64) -> f64| pairs().map(|(a, b)| of(a, b)).sum::<f64>() / n as f64;
    let error = |variance: f64| 4.0 * (variance / n as f64).sqrt();
    let near = |found: f64, expected: f64, error: f64| {
        assert!((found - expected).abs() < error, "{found} instead of {expected} ± {error}");
    };
    near(mean(|a, _| a), 0.0, error(0.0522));
    near(mean(|_, b| b), 0.0, error(0.0522));
    near(mean(|a, _| a * a), 0.052215, error(0.0009));
    near(mean(|a, b| a * b), 0.047165, error(0.0009));
    near(mean(|a, b| 0.5 * (a + b) * (a + b)), 0.099381, error(0.0004));
    near(mean(|a, b| 0.5 * (b - a) * (b - a)), 0.005050, error(2e-5));
    near(mean(|a, b| f64::from(a + b > 0.0)), 0.5, error(0.25));
    near(mean(|a, b| (a + b).abs() / 2f64.sqrt()), 0.25 + 0.2 / std::f64::consts::PI, error(0.001));
    // Given z₀ > 0: mean, variance and covariance.
    let above = |of: fn(f64, f64) -> f64| {
        let upper = pairs().filter(|(a, b)| a + b > 0.0);
        upper.map(|(a, b)| of(a, b)).sum::<f64>() / (0.5 * n as f64)
    };
    near(above(|a, _| a), 0.221793, 1.5 * error(0.05));
    near(above(|a, _| (a - 0.221793).powi(2)), 0.003024, 1.5 * error(2e-5));
    near(above(|a, b| (a - 0.221793) * (b - 0.221793)), -0.002026, 1.5 * error(2e-5));
    let mut upper: Vec<f64> = pairs().filter(|(a, b)| a + b > 0.0).map(|(a, _)| a).collect();
    upper.sort_by(f64::total_cmp);
    for (p, quantile) in
        [(0.05, 0.1187), (0.25, 0.1768), (0.5, 0.2444), (0.75, 0.2670), (0.95, 0.2831)]
    {
        // Four digits are printed.
        near(upper[(p * upper.len() as f64) as usize], quantile, 3e-4);
    }
}

#[test]
fn two_moons_has_its_ideal_scores() {
    let task = task("two-moons");
    let Density::Normalised(density) = task.density else { panic!("its density is known") };
    let log_p = density(task.problem.observation(), truth(&task));
    assert!((log_p - 4.1508).abs() < 5e-5, "{log_p}");
    assert!((nlog(log_p, 1.0) + 4.1508 - 0.001f64.ln_1p()).abs() < 5e-5);
    // Entropy of the density under its own sampler: −3.6560 in closed form.
    let n = 400_000;
    let theta = task.reference(n, &STREAMS, 2).unwrap();
    let log = |t: &[f64]| density(task.problem.observation(), &[t[0], t[1]]);
    let mean = theta.chunks_exact(2).map(log).sum::<f64>() / n as f64;
    // The log-density has a standard deviation of √½ from the radius.
    assert!((mean - 3.6560).abs() < 4.0 * (0.52 / n as f64).sqrt() + 5e-5, "{mean}");
    // LMD of the exact posterior and of the prior; the median of 400,000 distances has a standard error of about
    // 0.6 · (interquartile range 0.13) / √n = 1.3e-4, relative 0.0014; four of it, and half a digit.
    for (theta, expected) in [(theta, -2.4146), (run(&task, None, n).0, -0.4626)] {
        let rows = Rows::new("theta", &theta, 2).unwrap();
        let streams = STREAMS.simulations(Purpose::Metric, 0);
        let go_on = &mut |_: Progress| ControlFlow::Continue(());
        let x = simulate(task.problem.simulator(), rows, &streams, 0, 2, go_on).unwrap().x;
        let x = Rows::new("x", &x, 2).unwrap();
        let lmd = median_distance(x, task.problem.observation(), scale(&task)).unwrap().ln();
        assert!((lmd - expected).abs() < 4.0 * 0.0014 + 5e-5, "{lmd} instead of {expected}");
    }
}

/// Means and standard deviations at θ* against 100,000 runs of `data/lotka_volterra.c`, within four standard errors
/// of the difference and half a digit; so the means against 10,000 runs of a third program. (Its standard deviations of
/// the autocorrelations, 0.0104 for the seventh, are up to 5 % from those of either 100,000 runs.)
#[test]
fn lotka_volterra_has_the_known_summaries() {
    let mean = [4.4628, 3.7500, 8.4281, 7.7559, 0.9861, 0.9427, 0.9771, 0.9187, 0.1013];
    let sd = [0.3218, 0.5357, 0.6255, 0.9463, 0.0091, 0.0221, 0.0099, 0.0214, 0.1800];
    let third = [4.4573, 3.7490, 8.4371, 7.7643, 0.9861, 0.9426, 0.9771, 0.9186, 0.1032];
    let lookahead = from_fn(4, 9, lotka_volterra(Record::Lookahead));
    let other = task("lotka-volterra");
    let other = Task { problem: other.problem.with_simulator(lookahead).unwrap(), ..other };
    let n = 20_000;
    for task in [task("lotka-volterra"), other] {
        let (_, x) = run(&task, Some(truth(&task)), n);
        let (found_mean, found_sd) = moments(&x, 9);
        let both = (1.0 / n as f64 + 1e-5).sqrt();
        close("mean", &found_mean, &mean, |i| 4.0 * sd[i] * both + 5e-5);
        close("third", &found_mean, &third, |i| {
            4.0 * sd[i] * (1.0 / n as f64 + 1e-4).sqrt() + 5e-5
        });
        // A standard deviation has a relative error of √((κ − 1)/4n), κ the kurtosis.
        let kurtosis = |k: usize| {
            let z = x.iter().skip(k).step_by(9).map(|&v| (v - found_mean[k]) / found_sd[k]);
            z.map(|z| z.powi(4)).sum::<f64>() / n as f64
        };
        close("sd", &found_sd, &sd, |i| {
            4.0 * sd[i] * (0.25 * (kurtosis(i) - 1.0)).sqrt() * both + 5e-5
        });
    }
}

/// Under the prior: figures of 2,000 draws; four standard errors of the difference to our 4,000.
#[test]
fn lotka_volterra_under_its_prior() {
    let mean = [3.769, 1.095, 7.087, 4.602, 0.770, 0.666, 0.150, 0.090, 0.027];
    let sd = [2.459, 1.523, 3.290, 1.984, 0.285, 0.321, 0.289, 0.233, 0.466];
    let (found, _) = moments(&run(&task("lotka-volterra"), None, 4000).1, 9);
    close("mean", &found, &mean, |i| 4.0 * sd[i] * (1f64 / 2000.0 + 1.0 / 4000.0).sqrt() + 5e-4);
}

/// At θ*: figures of 100,000 runs; four standard errors of the difference to ours, and half a digit.
#[test]
fn mg1_has_the_known_summaries() {
    let task = task("mg1");
    let n = 100_000;
    let mean = [0.1190, 0.9551, 1.3686, 1.7540, 3.0116];
    let sd = [0.1046, 0.1344, 0.1017, 0.1904, 0.2934];
    let (_, x) = run(&task, Some(truth(&task)), n);
    let (found_mean, found_sd) = moments(&x, 5);
    close("mean", &found_mean, &mean, |i| 4.0 * sd[i] * (2.0 / n as f64).sqrt() + 5e-5);
    // A standard deviation of n numbers has a relative error of about √(κ − 1)/(2√n), κ ≤ 6 here.
    close("sd", &found_sd, &sd, |i| 4.0 * sd[i] * 1.12 * (2.0 / n as f64).sqrt() + 5e-5);
    let correlation = |a: usize, b: usize| {
        let products =
            x.chunks_exact(5).map(|row| (row[a] - found_mean[a]) * (row[b] - found_mean[b]));
        products.sum::<f64>() / (n as f64 - 1.0) / found_sd[a] / found_sd[b]
    };
    for (a, b, expected) in [
        (0, 1, 0.234),
        (0, 2, 0.128),
        (0, 3, 0.088),
        (0, 4, 0.025),
        (1, 2, 0.606),
        (1, 3, 0.384),
        (1, 4, 0.115),
        (2, 3, 0.664),
        (2, 4, 0.180),
        (3, 4, 0.273),
    ] {
        // (1 − ρ²)/√n each, on numbers with three digits; the figure may come from 10,000 runs.
        assert!((correlation(a, b) - expected).abs() < 4.0 * 0.0105 + 5e-4, "{a} {b}");
    }
    let (found, _) = moments(&run(&task, None, 20_000).1, 5);
    let sd = [0.852, 0.700, 0.778, 0.890, 1.107];
    close("prior", &found, &[1.406, 1.936, 2.261, 2.579, 3.380], |i| {
        4.0 * sd[i] * (1f64 / 5000.0 + 1.0 / 20_000.0).sqrt() + 5e-4
    });
    // No time between departures is shorter than the shortest service.
    assert!(x.chunks_exact(5).all(|row| row[0] > 0.0));
}

/// At the truth: figures of 500 runs; under the prior: of 2,000. Four standard errors of the difference.
#[test]
fn hodgkin_huxley_has_the_known_summaries() {
    let task = task("hodgkin-huxley");
    let n = 1000;
    let mean = [5.0, -70.265, 0.038442, -56.454, 375.20, 3.7037, 18.324];
    let sd = [0.0, 0.12699, 0.01579, 0.03891, 0.43044, 0.0037927, 0.021456];
    let digit = [0.0, 5e-4, 5e-7, 5e-4, 5e-3, 5e-5, 5e-4];
    let (found, found_sd) = moments(&run(&task, Some(truth(&task)), n).1, 7);
    // f64 has 24 bits: 375 is stored to 1.5e-5.
    close("mean", &found, &mean, |i| {
        4.0 * sd[i] * (1f64 / 500.0 + 1.0 / n as f64).sqrt() + digit[i] + 2e-5
    });
    close("sd", &found_sd, &sd, |i| 4.0 * sd[i] * (0.5f64 / 500.0 + 0.5 / n as f64).sqrt() + 1e-5);
    let sd = [7.656, 14.15, 7.919, 15.52, 358.5, 4.100, 19.10];
    let (found, _) = moments(&run(&task, None, n).1, 7);
    close("prior", &found, &[5.20, -68.26, 2.481, -61.88, 272.2, -0.404, 23.43], |i| {
        4.0 * sd[i] * (1f64 / 2000.0 + 1.0 / n as f64).sqrt()
    });
}

/// For θ of the prior and x simulated at it, the rank of θ among exact draws of the posterior at x is uniform: for
/// every parameter, and for the log-density, which ties sampler and density together.
#[test]
fn exact_samplers_agree_with_simulators_and_densities() {
    for name in ["two-moons", "gaussian-linear", "gaussian-mixture"] {
        let task = task(name);
        let Reference::Exact(sample) = task.reference else {
            panic!("{name} has an exact sampler")
        };
        let Density::Normalised(density) = task.density else { panic!("{name} has a density") };
        let (dim, draws, tests) = (task.problem.prior().dim(), 19, 4000);
        let streams = STREAMS.simulations(Purpose::Posterior, 1);
        let mut ranks = vec![[0u32; 20]; dim + 1];
        let (all, x) = run(&task, None, tests);
        for i in 0..tests {
            let widen = |row: &[f64]| row.to_vec();
            let truth = widen(&all[i * dim..][..dim]);
            let x = widen(
                &x[i * task.problem.observation().len()..][..task.problem.observation().len()],
            );
            let mut rng = streams.stream(i as u64);
            let mut theta = vec![0.0; dim];
            let mut below = vec![0; dim + 1];
            for _ in 0..draws {
                sample(&x, &mut rng, &mut theta);
                for k in 0..dim {
                    below[k] += usize::from(theta[k] < truth[k]);
                }
                below[dim] += usize::from(density(&x, &theta) < density(&x, &truth));
            }
            below.iter().zip(&mut ranks).for_each(|(&rank, counts)| counts[rank] += 1);
        }
        let expected = tests as f64 / 20.0;
        for (k, counts) in ranks.iter().enumerate() {
            let chi: f64 =
                counts.iter().map(|&c| (f64::from(c) - expected).powi(2) / expected).sum();
            // χ² with 19 degrees of freedom exceeds 50 with probability 1.3e-4; there are 17 of them.
            assert!(chi < 50.0, "{name}, statistic {k}: χ² = {chi}");
        }
    }
}

/// Densities that are called normalised integrate to 1, over a grid of midpoints.
#[test]
fn normalised_densities_integrate_to_one() {
    for (name, half) in [("two-moons", [0.4, 0.4]), ("gaussian-mixture", [5.0, 5.0])] {
        let task = task(name);
        let Density::Normalised(density) = task.density else { panic!("{name} has a density") };
        // A grid of midpoints over a box that holds all but 1e-6 of the mass.
        let (n, centre) = (1600, if name == "two-moons" { [0.0, 0.0] } else { [-3.27, 3.87] });
        let place =
            |i: usize, k: usize| centre[k] + half[k] * (2.0 * (i as f64 + 0.5) / n as f64 - 1.0);
        let cell = 4.0 * half[0] * half[1] / (n * n) as f64;
        let grid = (0..n * n).map(|i| {
            density(task.problem.observation(), &[place(i / n, 0), place(i % n, 1)]).exp()
        });
        let total = grid.sum::<f64>() * cell;
        // The crescents' edge is cut by cells of 5e-4: some 1e-3 of the mass may be missed or counted twice.
        assert!((total - 1.0).abs() < 2e-3, "{name}: {total}");
    }
}

/// The Markov chain of SIR against its density on a grid: means and standard deviations.
#[test]
fn the_chain_of_sir_agrees_with_quadrature() {
    let task = task("sir");
    let Density::Unnormalised(density) = task.density else { panic!("it has a density") };
    let n = 4000;
    let theta = task.reference(n, &STREAMS, 2).unwrap();
    let (mean, sd) = moments(&theta, 2);
    let points = 300;
    let place =
        |i: usize, k: usize| mean[k] + sd[k] * 7.0 * (2.0 * (i as f64 + 0.5) / points as f64 - 1.0);
    let grid: Vec<([f64; 2], f64)> = (0..points * points)
        .map(|i| [place(i / points, 0), place(i % points, 1)])
        .map(|theta| (theta, density(task.problem.observation(), &theta)))
        .collect();
    let top = grid.iter().map(|g| g.1).fold(f64::NEG_INFINITY, f64::max);
    let total: f64 = grid.iter().map(|g| (g.1 - top).exp()).sum();
    for k in 0..2 {
        let expect = |of: &dyn Fn(f64) -> f64| {
            grid.iter().map(|(t, l)| of(t[k]) * (l - top).exp()).sum::<f64>() / total
        };
        let exact_mean = expect(&|t| t);
        let exact_sd = expect(&|t| (t - exact_mean).powi(2)).sqrt();
        // Draws of a chain 15 sweeps apart are nearly independent: effective sizes of n/2 at least.
        let error = (2.0 / n as f64).sqrt();
        assert!(
            (mean[k] - exact_mean).abs() < 4.5 * exact_sd * error,
            "{k}: {} {exact_mean}",
            mean[k]
        );
        assert!((sd[k] / exact_sd - 1.0).abs() < 4.5 * error, "{k}: {} {exact_sd}", sd[k]);
    }
}

/// SLCP's chain: ranks as above, with short chains at simulated observations; and all four modes at the task's own.
#[test]
fn the_chain_of_slcp_agrees_with_its_simulator() {
    let mut task = task("slcp");
    let theta = task.reference(2000, &STREAMS, 2).unwrap();
    let mut modes = [0; 4];
    for t in theta.chunks_exact(5) {
        modes[usize::from(t[2] > 0.0) + 2 * usize::from(t[3] > 0.0)] += 1;
    }
    // Binomial with p = 1/4: four standard deviations.
    assert!(
        modes.iter().all(|&count| (f64::from(count) - 500.0).abs() < 4.0 * 375f64.sqrt()),
        "{modes:?}"
    );
    let (tests, draws) = (400, 75);
    let (all, x) = run(&task, None, tests);
    let mut ranks = [[0u32; 4]; 5];
    for i in 0..tests {
        let x: Vec<f64> = x[8 * i..8 * i + 8].to_vec();
        task.problem = task.problem.with_observation(x).unwrap();
        let theta = task.reference(draws, &Streams::new(i as u64), 2).unwrap();
        for k in 0..5 {
            let below = theta.chunks_exact(5).filter(|t| t[k] < all[5 * i + k]).count();
            ranks[k][(below * 4 / (draws + 1)).min(3)] += 1;
        }
    }
    for (k, counts) in ranks.iter().enumerate() {
        let chi: f64 = counts.iter().map(|&c| (f64::from(c) - 100.0).powi(2) / 100.0).sum();
        // χ² with 3 degrees of freedom exceeds 20 with probability 1.7e-4.
        assert!(chi < 20.0, "parameter {k}: {counts:?}");
    }
}

/// Scores of an estimator that knows nothing but the prior, and of one that knows the truth.
#[test]
fn scores_of_prior_and_truth_are_known() {
    for (name, expected) in [("two-moons", 1.3863), ("lotka-volterra", 7.7836), ("mg1", 3.5066)] {
        let task = task(name);
        let found = -task.problem.prior().log_density(truth(&task));
        assert!((found - expected).abs() < 5e-5, "{name}: {found}");
    }
    // Medians of n distances: a standard error of about 1.25 sd/√n of the log-distance near the median. It is 0.4
    // to 0.5 at the truth and 1 to 1.3 under the prior; four of them, for two programs.
    for (name, n, at_truth, at_prior) in
        [("lotka-volterra", 10_000, 1.240, 4.605), ("mg1", 40_000, 0.997, 2.990)]
    {
        let task = task(name);
        let lmd = |theta: Option<&[f64]>| {
            let (_, x) = run(&task, theta, n);
            let x = Rows::new("x", &x, scale(&task).len()).unwrap();
            median_distance(x, task.problem.observation(), scale(&task)).unwrap().ln()
        };
        let error = |sd: f64| 4.0 * 1.25 * sd * (1.0 / n as f64 + 1.0 / 2000.0).sqrt();
        let (truth, prior) = (lmd(Some(truth(&task))), lmd(None));
        assert!((truth - at_truth).abs() < error(0.5), "{name}: {truth}");
        assert!((prior - at_prior).abs() < error(1.3), "{name}: {prior}");
    }
}
