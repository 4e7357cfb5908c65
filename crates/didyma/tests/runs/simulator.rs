//! Priors and the running of simulations: laws, the same rows for any number of threads, failures as data.

#![allow(clippy::unwrap_used)]

use didyma::Rows;
use didyma::prior::{Marginal, Prior};
use didyma::rng::{Purpose, SimulationStream, Streams};
use didyma::simulator::{Job, Progress, SimulationFailed, Simulator, from_fn, simulate};
use didyma::tasks::Task;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const STREAMS: Streams = Streams::new(4);

fn prior() -> Prior {
    Prior::new([
        ("a", Marginal::Uniform { low: -2.0, high: 5.0 }),
        ("b", Marginal::Normal { mean: 1.5, sd: 0.3 }),
        ("c", Marginal::LogNormal { mean: -0.5, sd: 0.8 }),
    ])
    .unwrap()
}

#[test]
fn the_bijection_is_one_and_its_jacobian_that_of_differences() {
    let prior = prior();
    for z in [[-3.0, 0.5, 1.0], [0.0, 0.0, 0.0], [5.0, -2.0, -1.5], [-6.0, 4.0, 3.0]] {
        let (mut theta, mut back) = ([0.0; 3], [0.0; 3]);
        let log_jacobian = prior.bounded(&z, &mut theta);
        assert!(prior.contains(&theta), "{theta:?}");
        let again = prior.unbounded(&theta, &mut back);
        // Near a bound the place between the bounds has an error of ε, and z one of ε / φ(z).
        let over_density = (0.5 * z[0] * z[0] + 1.0).exp();
        let lost = (1e-15 * over_density).max(1e-12);
        assert!((back[0] - z[0]).abs() < lost && (back[1] - z[1]).abs() < 1e-12);
        assert!((again - log_jacobian).abs() < 1e-9 + lost);
        let h = 1e-5;
        let mut sum = 0.0;
        for k in 0..3 {
            let at = |h: f64| {
                let (mut z, mut theta) = (z, [0.0; 3]);
                z[k] += h;
                prior.bounded(&z, &mut theta);
                theta[k]
            };
            sum += ((at(h) - at(-h)) / (2.0 * h)).ln();
        }
        // Differences of θ near a bound of size 5 have an error of ε 5/h = 1e-10, against a slope of 7 φ(z).
        let error = 1e-9 + 1e-10 * over_density;
        assert!((sum - log_jacobian).abs() < error, "{sum} {log_jacobian}");
        let there = prior.log_density(&theta) + log_jacobian;
        assert!((prior.log_density_unbounded(&z) - there).abs() < 1e-9 + lost);
    }
}

/// Draws have the mean and variance of their laws, and densities integrate to 1 over a grid in the unbounded space.
#[test]
fn samples_and_densities_agree() {
    let prior = prior();
    let streams = STREAMS.simulations(Purpose::Parameters, 0);
    let (n, mut theta) = (200_000, [0.0; 3]);
    let (mut sums, mut squares) = ([0.0; 3], [0.0; 3]);
    for i in 0..n {
        prior.sample(&mut streams.stream(i), &mut theta);
        let values = [theta[0], theta[1], theta[2].ln()];
        for k in 0..3 {
            sums[k] += values[k];
            squares[k] += values[k] * values[k];
        }
    }
    for (k, (mean, sd)) in
        [(1.5, 7.0 / 12f64.sqrt()), (1.5, 0.3), (-0.5, 0.8)].into_iter().enumerate()
    {
        let found = sums[k] / n as f64;
        let found_sd = (squares[k] / n as f64 - found * found).sqrt();
        assert!((found - mean).abs() < 4.0 * sd / (n as f64).sqrt(), "{k}: {found}");
        // √((κ − 1)/4n) with κ = 3 at most.
        assert!((found_sd / sd - 1.0).abs() < 4.0 * (0.5 / n as f64).sqrt(), "{k}: {found_sd}");
    }
    for marginal in prior.parameters().iter().map(|p| p.marginal) {
        let (low, high, cells) = (-10.0, 25.0, 700_000);
        let width = (high - low) / f64::from(cells);
        let total: f64 = (0..cells)
            .map(|i| marginal.log_density(low + width * (f64::from(i) + 0.5)).exp() * width)
            .sum();
        // Midpoints miss a part of a cell at each jump; the log-normal has 4e-6 of its mass beyond 25.
        assert!((total - 1.0).abs() < 2e-5, "{marginal}: {total}");
    }
}

/// Truncated laws: the bijection's Jacobian is that of differences, draws have the moments of the density by quadrature,
/// which integrates to 1.
#[test]
fn truncated_laws_are_consistent() {
    let law = |mean, sd, log, low, high| Marginal::Truncated { mean, sd, log, low, high };
    for marginal in [
        law(0.0, 1.0, false, Some(0.0), None),
        law(2.0, 1.0, false, Some(-1.0), Some(2.5)),
        law(0.0, 1.0, false, Some(4.0), None),
        law(-0.5, 0.8, true, Some(0.2), Some(3.0)),
        law(0.0, 1.0, true, None, Some(1.0)),
    ] {
        let prior = Prior::new([("a", marginal)]).unwrap();
        for z in [-3.0, -0.4, 0.0, 1.2, 3.0] {
            let at = |z: f64| {
                let mut theta = [0.0];
                let log_jacobian = prior.bounded(&[z], &mut theta);
                (theta[0], log_jacobian)
            };
            let ((theta, log_jacobian), h) = (at(z), 1e-5);
            assert!(prior.contains(&[theta]), "{marginal}: {theta}");
            let mut back = [0.0];
            assert!((prior.unbounded(&[theta], &mut back) - log_jacobian).abs() < 1e-6);
            assert!((back[0] - z).abs() < 1e-8, "{marginal}: {} {z}", back[0]);
            let slope = (at(z + h).0 - at(z - h).0) / (2.0 * h);
            // Second order in h, and a rounding error of 1e-16 θ/h in the difference.
            assert!((slope.ln() - log_jacobian).abs() < 1e-6, "{marginal} at {z}");
        }
        let (low, high) = marginal.support();
        let (low, high) = (low.max(-10.0), high.min(15.0));
        let cells = 400_000;
        let width = (high - low) / f64::from(cells);
        let mut moments = [0.0; 3];
        for i in 0..cells {
            let value = low + width * (f64::from(i) + 0.5);
            let mass = marginal.log_density(value).exp() * width;
            moments.iter_mut().zip([1.0, value, value * value]).for_each(|(m, v)| *m += mass * v);
        }
        assert!((moments[0] - 1.0).abs() < 1e-6, "{marginal}: {}", moments[0]);
        let (mean, sd) = (moments[1], (moments[2] - moments[1] * moments[1]).sqrt());
        let (streams, n) = (STREAMS.simulations(Purpose::Parameters, 1), 50_000);
        let found = prior.sample_rows(n, &streams, 2).iter().copied().sum::<f64>();
        let error = sd / (n as f64).sqrt();
        assert!((found / n as f64 - mean).abs() < 4.0 * error, "{marginal}: {mean}");
    }
}

#[test]
fn bad_priors_are_refused() {
    for (marginal, part) in [
        (Marginal::Uniform { low: 1.0, high: 1.0 }, "uniform is 1 to 1"),
        (Marginal::Uniform { low: f64::NAN, high: 1.0 }, "uniform is NaN"),
        (Marginal::Normal { mean: 0.0, sd: 0.0 }, "sd 0"),
        (Marginal::LogNormal { mean: 0.0, sd: -1.0 }, "sd -1"),
        (
            Marginal::Truncated { mean: 0.0, sd: 1.0, log: false, low: Some(2.0), high: Some(1.0) },
            "the range of a prior is 2 to 1",
        ),
        (
            Marginal::Truncated { mean: 0.0, sd: 1.0, log: false, low: Some(20.0), high: None },
            "bounds nearer to its mean",
        ),
        (
            Marginal::Truncated { mean: 0.0, sd: 1.0, log: true, low: None, high: Some(-1.0) },
            "wide enough",
        ),
    ] {
        let text = Prior::new([("a", marginal)]).unwrap_err().to_string();
        assert!(text.contains(part) && text.contains("must be"), "{text}");
    }
    let one = Marginal::Normal { mean: 0.0, sd: 1.0 };
    assert!(
        Prior::new([("a", one), ("a", one)]).unwrap_err().to_string().contains("parameter is a")
    );
    assert!(Prior::new([] as [(&str, Marginal); 0]).is_err());
    let text = prior().expect_inside(&[9.0, 0.0, 1.0]).unwrap_err().to_string();
    assert!(text.contains("a is 9") && text.contains("uniform -2 to 5"), "{text}");
    assert!(prior().expect_inside(&[0.0, 0.0, 1.0]).is_ok());
    assert!(prior().expect_inside(&[0.0]).is_err());
}

#[test]
fn rows_are_the_same_for_any_number_of_threads_and_any_cut() {
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let go_on = &mut |_: Progress| ControlFlow::Continue(());
    for name in Task::NAMES {
        let task = Task::named(name).unwrap();
        let (count, dim) =
            (if name == "hodgkin-huxley" { 24 } else { 600 }, task.problem.prior().dim());
        let theta = task.problem.prior().sample_rows(
            count,
            &STREAMS.simulations(Purpose::Parameters, 1),
            2,
        );
        let rows = |part: std::ops::Range<usize>| {
            Rows::new("theta", &theta[part.start * dim..part.end * dim], dim).unwrap()
        };
        let mut run = |part: std::ops::Range<usize>, threads| {
            let first = part.start as u64;
            simulate(task.problem.simulator(), rows(part), &streams, first, threads, go_on)
                .unwrap()
                .x
        };
        let whole = run(0..count, 1);
        assert_eq!(run(0..count, 3), whole, "{name}");
        let cut = count / 3;
        assert_eq!([run(0..cut, 2), run(cut..count, 1)].concat(), whole, "{name}");
    }
}

/// Fails in every way a simulator can, depending on θ.
struct Fragile;

impl Simulator for Fragile {
    fn theta_dim(&self) -> usize {
        1
    }
    fn x_dim(&self) -> usize {
        2
    }
    fn simulate(
        &self,
        theta: &[f64],
        _: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        x.copy_from_slice(&[theta[0], 2.0 * theta[0]]);
        match theta[0] as i64 {
            1 => Err(SimulationFailed("it is out of order".to_owned())),
            2 => {
                x[1] = f64::NAN;
                Ok(())
            }
            3 => {
                x[0] = 1e300;
                Ok(())
            }
            4 => panic!("at the {}", "disco"),
            _ => Ok(()),
        }
    }
}

#[test]
fn failures_are_recorded_and_the_run_goes_on() {
    // The panic below is part of the test: its message need not be seen.
    std::panic::set_hook(Box::new(|_| {}));
    let theta = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0];
    let rows = Rows::new("theta", &theta, 1).unwrap();
    let mut seen = (0, 0);
    let mut observe = |progress: Progress| {
        seen = (seen.0.max(progress.done), seen.1.max(progress.failed));
        ControlFlow::Continue(())
    };
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let found = simulate(&Fragile, rows, &streams, 0, 2, &mut observe).unwrap();
    let _ = std::panic::take_hook();
    assert_eq!((found.done, seen), (6, (6, 4)));
    let expected = [
        (1, "it is out of order"),
        (2, "summary 2 is NaN"),
        (3, "summary 1 is 1e300"),
        (4, "the simulator panicked: at the disco"),
    ];
    assert_eq!(found.failures.len(), expected.len());
    for (failure, (row, reason)) in found.failures.iter().zip(expected) {
        assert!(failure.row == row && failure.reason.contains(reason), "{failure:?}");
    }
    assert_eq!((found.x[0], found.x[1], found.x[10], found.x[11]), (0.0, 0.0, 5.0, 10.0));
    assert!(found.x[2..10].iter().all(|v| v.is_nan()));
}

#[test]
fn an_observer_can_stop_a_run() {
    let slow = from_fn(1, 1, |theta, _, x| {
        std::thread::sleep(Duration::from_millis(1));
        x[0] = theta[0];
    });
    let theta = vec![1.0; 10_000];
    let rows = Rows::new("theta", &theta, 1).unwrap();
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let found = simulate(&slow, rows, &streams, 0, 2, &mut |_| ControlFlow::Break(())).unwrap();
    assert!(found.done > 0 && found.done < 10_000);
    assert_eq!(found.x.iter().filter(|x| !x.is_nan()).count(), found.done);
}

/// Waits until it is interrupted where θ is 1; fails where it is 2.
#[derive(Default)]
struct Patient {
    interrupted: AtomicBool,
    largest: AtomicUsize,
    batch: usize,
}

impl Simulator for Patient {
    fn theta_dim(&self) -> usize {
        1
    }
    fn x_dim(&self) -> usize {
        1
    }
    fn workers(&self) -> Option<usize> {
        Some(2)
    }
    fn batch(&self) -> usize {
        self.batch
    }
    fn simulate(
        &self,
        theta: &[f64],
        rng: &mut SimulationStream,
        x: &mut [f64],
    ) -> Result<(), SimulationFailed> {
        if theta[0] == 1.0 {
            while !self.interrupted.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(1));
            }
            return Err(SimulationFailed("interrupted".to_owned()));
        }
        if theta[0] == 2.0 {
            return Err(SimulationFailed("two".to_owned()));
        }
        x[0] = rng.seed() as f64;
        Ok(())
    }
    fn simulate_batch(&self, batch: &mut [Job]) {
        self.largest.fetch_max(batch.len(), Ordering::SeqCst);
        for job in batch {
            job.result = self.simulate(&job.theta, &mut job.rng, &mut job.x);
        }
    }
    fn interrupt(&self, now: bool) {
        self.interrupted.store(now, Ordering::SeqCst);
    }
}

#[test]
fn an_observer_is_asked_while_nothing_comes_and_interrupted_rows_are_not_done() {
    let theta: Vec<f64> = (0..100).map(|i| if i < 90 { 0.0 } else { 1.0 }).collect();
    let rows = Rows::new("theta", &theta, 1).unwrap();
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    for batch in [1, 8] {
        let patient = Patient { batch, ..Patient::default() };
        let (mut empty, mut told, clock) = (0, 0, Instant::now());
        let found = simulate(&patient, rows, &streams, 0, 1, &mut |progress| {
            told += progress.rows.len();
            empty += usize::from(progress.rows.is_empty());
            if empty > 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        assert!(clock.elapsed() < Duration::from_secs(2), "{:?}", clock.elapsed());
        assert_eq!((found.failures.len(), found.done, told, empty), (0, 90, 90, 3));
        assert!(found.x[..90].iter().all(|x| x.is_finite()));
        assert!(found.x[90..].iter().all(|x| x.is_nan()));
    }
}

#[test]
fn batches_give_the_same_rows() {
    let theta: Vec<f64> = (0..500).map(|i| if i % 7 == 3 { 2.0 } else { 0.0 }).collect();
    let rows = Rows::new("theta", &theta, 1).unwrap();
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let run = |batch| {
        let patient = Patient { batch, ..Patient::default() };
        let go_on = &mut |_: Progress| ControlFlow::Continue(());
        let found = simulate(&patient, rows, &streams, 0, 1, go_on).unwrap();
        assert_eq!(patient.largest.into_inner(), if batch == 1 { 0 } else { batch });
        (found.done, found.failures, found.x.iter().map(|x| x.to_bits()).collect::<Vec<_>>())
    };
    let one = run(1);
    assert!(one.0 == 500 && one.1.len() == 71 && one.1[0].reason == "two");
    assert_eq!(run(8), one);
    assert_eq!(run(64), one);
}

#[test]
fn bad_rows_are_refused() {
    let streams = STREAMS.simulations(Purpose::Simulation, 0);
    let go_on = &mut |_: Progress| ControlFlow::Continue(());
    let mut run = |data: &[f64], columns, threads| {
        let rows = Rows::new("theta", data, columns).unwrap();
        simulate(&Fragile, rows, &streams, 0, threads, go_on).map(|found| found.x.len())
    };
    assert!(run(&[0.0, 0.0], 2, 1).unwrap_err().to_string().contains("2 columns"));
    assert!(run(&[f64::NAN], 1, 1).unwrap_err().to_string().contains("theta holds NaN"));
    assert!(run(&[0.0], 1, 0).unwrap_err().to_string().contains("threads is 0"));
    assert_eq!(run(&[], 1, 2).unwrap(), 0);
}
