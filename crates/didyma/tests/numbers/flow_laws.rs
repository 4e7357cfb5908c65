//! Laws that every flow obeys, over random shapes: gradient, Jacobian, inverse, samples.

#![allow(clippy::unwrap_used)]

use didyma::flow::Gradient;
use didyma::kernel::{Kernels, Real};
use didyma::rng::{Purpose, Streams};
use didyma::{FlowConfig, SplineFlow, Tape};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use rand::RngExt;

/// A flow with random parameters, and groups of pairs for it.
struct Case {
    flow: SplineFlow,
    params: Vec<f64>,
    /// x, and the pairs that share it.
    groups: Vec<(Vec<f64>, Vec<Pair>)>,
}

/// θ and its weight.
type Pair = (Vec<f64>, f64);

impl Case {
    fn new(config: FlowConfig, sizes: &[usize], seed: u64) -> Self {
        let flow = SplineFlow::new(config.clone()).unwrap();
        let mut rng = Streams::new(seed).stream(Purpose::Synthetic, 0, 0);
        let mut uniform = |scale: f64| scale * (2.0 * rng.random::<f64>() - 1.0);
        // As large as at the start of training, but in every layer, so that bins, gates and linear
        // maps differ. Weights twice as large make some maps too steep for finite differences.
        let scale = (1.0 / (config.units as f64).sqrt()).min(0.4);
        let params = (0..flow.params_len()).map(|_| uniform(scale)).collect();
        let groups = sizes
            .iter()
            .map(|&size| {
                let x = (0..config.x_dim).map(|_| uniform(1.5)).collect();
                // Some fall outside the bound, into the tails.
                let scale = 1.2 * config.bound;
                let pair =
                    |_| ((0..config.theta_dim).map(|_| uniform(scale)).collect(), uniform(1.0));
                (x, (0..size).map(pair).collect())
            })
            .collect();
        Self { flow, params, groups }
    }

    fn pairs(&self) -> usize {
        self.groups.iter().map(|(_, pairs)| pairs.len()).sum()
    }

    fn weights(&self) -> Vec<f64> {
        self.groups.iter().flat_map(|(_, pairs)| pairs).map(|(_, w)| *w).collect()
    }

    fn fill(&self, tape: &mut Tape<f64>) {
        tape.clear();
        for (x, pairs) in &self.groups {
            tape.context(x.iter().copied());
            for (theta, _) in pairs {
                tape.pair(theta.iter().copied());
            }
        }
    }

    /// Σ w log q.
    fn objective(&self, params: &[f64], tape: &mut Tape<f64>) -> f64 {
        self.fill(tape);
        self.flow.forward(params, tape);
        tape.log_q().iter().zip(self.weights()).map(|(l, w)| l * w).sum()
    }
}

fn runner(cases: u32) -> TestRunner {
    // A fixed generator: the same cases on every run and every machine.
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// Shapes with everything small, except that panels and lanes do not divide them.
fn shapes() -> impl Strategy<Value = (FlowConfig, Vec<usize>, u64)> {
    let shape = (1..=5usize, 1..=6usize, 1..=3usize, 0..=2usize, 3..=20usize, 2..=6usize);
    let sizes = prop::collection::vec(1..=9usize, 1..=5);
    (shape, sizes, any::<u64>()).prop_map(
        |((theta_dim, x_dim, layers, blocks, units, bins), sizes, seed)| {
            let bound = 3.0;
            (FlowConfig { theta_dim, x_dim, layers, blocks, units, bins, bound }, sizes, seed)
        },
    )
}

/// ∂ objective / ∂ params\[i\] by central differences.
///
/// The objective has kinks (relu, spline knots). Central differences with steps h and 2h agree to
/// O(h²) where there is none between the four points; where they do not, h is made smaller. Their
/// rounding error is ε |f| / h.
fn numerical(case: &Case, params: &mut [f64], i: usize, tape: &mut Tape<f64>) -> f64 {
    let start = params[i];
    let mut slope = |params: &mut [f64], h: f64| {
        params[i] = start + h;
        let above = case.objective(params, tape);
        params[i] = start - h;
        let below = case.objective(params, tape);
        params[i] = start;
        (above - below) / (2.0 * h)
    };
    let mut h = 1e-5;
    loop {
        let (fine, coarse) = (slope(params, h), slope(params, 2.0 * h));
        if (fine - coarse).abs() <= 1e-7 * fine.abs().max(1.0) || h < 1e-7 {
            return (4.0 * fine - coarse) / 3.0;
        }
        h /= 4.0;
    }
}

/// Compares the gradient of every tensor with finite differences at some `entries` of it.
fn check_gradient(case: &Case, entries: usize) -> TestCaseResult {
    let mut tape = Tape::with_kernels(&case.flow, case.pairs(), Kernels::scalar());
    let mut params = case.params.clone();
    let value = case.objective(&params, &mut tape);
    let mut grad = vec![f64::NAN; params.len()];
    let gradient = Gradient { sum: &mut grad, accumulate: false };
    case.flow.backward(&params, &mut tape, &case.weights(), gradient);
    let norm = |v: &mut dyn Iterator<Item = f64>| v.map(|v| v * v).sum::<f64>().sqrt();
    for tensor in case.flow.tensors() {
        let step = 1 + tensor.range.len() / entries;
        let entries: Vec<usize> = tensor.range.clone().step_by(step).collect();
        let differences: Vec<f64> =
            entries.iter().map(|&i| numerical(case, &mut params, i, &mut tape) - grad[i]).collect();
        let size = norm(&mut entries.iter().map(|&i| grad[i]));
        let error = norm(&mut differences.into_iter());
        // What the differences themselves cannot resolve: ε |f| / h for each entry.
        let rounding = 4.0 * f64::EPSILON * value.abs() / 1e-5 * (entries.len() as f64).sqrt();
        prop_assert!(
            error <= 1e-6 * size + rounding,
            "{}: {error:.2e} of {size:.2e} ({:?})",
            tensor.name,
            case.flow.config()
        );
    }
    Ok(())
}

#[test]
fn backward_is_the_derivative_of_forward() {
    let test = |(config, sizes, seed): (FlowConfig, Vec<usize>, u64)| {
        check_gradient(&Case::new(config, &sizes, seed), 40)
    };
    runner(60).run(&shapes(), test).unwrap();
}

/// Several panels of pairs, more contexts than lanes, groups across the edge of a panel; and the flow
/// of one dimension, whose conditioner runs over contexts.
#[test]
fn backward_is_the_derivative_over_several_panels() {
    for (theta_dim, sizes) in [(3, vec![3; 50]), (1, vec![3; 50]), (2, vec![70, 1, 100])] {
        let config =
            FlowConfig { theta_dim, layers: 2, units: 6, bins: 3, ..FlowConfig::new(1, 2) };
        check_gradient(&Case::new(FlowConfig { bound: 3.0, ..config }, &sizes, 11), 6).unwrap();
    }
}

/// z → θ → z in f32 on every table of kernels. Each of the 8 inverse splines has a backward error of at
/// most 13 ε B = 3e-5, and the slopes of an untrained flow are below 4: 1e-3 in all.
#[test]
fn forward_undoes_inverse_in_f32() {
    let flow = SplineFlow::new(FlowConfig::new(4, 9)).unwrap();
    let mut rng = Streams::new(8).stream(Purpose::Synthetic, 0, 0);
    let params: Vec<f32> = flow.initial_params(&mut rng);
    for kernels in Kernels::<f32>::available() {
        let x: Vec<f32> = (0..9).map(|_| rng.random_range(-2.0..2.0)).collect();
        let z: Vec<f32> = (0..400).map(|_| rng.random_range(-3.0..3.0)).collect();
        let mut tape = Tape::with_kernels(&flow, 100, kernels);
        tape.context(x.iter().copied());
        z.chunks(4).for_each(|z| tape.pair(z.iter().copied()));
        flow.inverse(&params, &mut tape);
        let log_q = tape.log_q().to_vec();
        let theta: Vec<f32> = (0..400).map(|i| tape.output(i / 4, i % 4)).collect();
        tape.clear();
        tape.context(x.iter().copied());
        theta.chunks(4).for_each(|theta| tape.pair(theta.iter().copied()));
        flow.forward(&params, &mut tape);
        for (i, &z) in z.iter().enumerate() {
            assert!((tape.output(i / 4, i % 4) - z).abs() < 1e-3, "{}", kernels.name);
        }
        assert!(tape.log_q().iter().zip(log_q).all(|(a, b)| (a - b).abs() < 1e-2));
    }
}

#[test]
fn log_density_is_that_of_the_numerical_jacobian() {
    let test = |(config, sizes, seed): (FlowConfig, Vec<usize>, u64)| {
        let case = Case::new(config, &sizes, seed);
        let dim = case.flow.config().theta_dim;
        let (x, pairs) = &case.groups[0];
        let theta = &pairs[0].0;
        let mut tape = Tape::with_kernels(&case.flow, 1, Kernels::scalar());
        let mut z = |theta: &[f64]| {
            tape.clear();
            tape.context(x.iter().copied());
            tape.pair(theta.iter().copied());
            case.flow.forward(&case.params, &mut tape);
            ((0..dim).map(|f| tape.output(0, f)).collect::<Vec<_>>(), tape.log_q()[0])
        };
        let (center, log_q) = z(theta);
        // z is once continuously differentiable in θ where no relu switches: an error of O(h).
        let h = 1e-7;
        let columns: Vec<Vec<f64>> = (0..dim)
            .map(|j| {
                let (mut above, mut below) = (theta.clone(), theta.clone());
                above[j] += h;
                below[j] -= h;
                let (above, below) = (z(&above).0, z(&below).0);
                above.iter().zip(below).map(|(a, b)| (a - b) / (2.0 * h)).collect()
            })
            .collect();
        let base: f64 = center.iter().map(|z| -0.5 * (z * z + std::f64::consts::TAU.ln())).sum();
        let expected = base + log_abs_determinant(columns);
        prop_assert!(
            (log_q - expected).abs() < 1e-4 * expected.abs().max(1.0),
            "{log_q} {expected}"
        );
        Ok(())
    };
    runner(200).run(&shapes(), test).unwrap();
}

/// By Gaussian elimination with pivoting.
fn log_abs_determinant(mut a: Vec<Vec<f64>>) -> f64 {
    let n = a.len();
    let mut sum = 0.0;
    for i in 0..n {
        let pivot = (i..n).max_by(|&p, &q| a[p][i].abs().total_cmp(&a[q][i].abs())).unwrap();
        a.swap(i, pivot);
        sum += a[i][i].abs().ln();
        for r in i + 1..n {
            let factor = a[r][i] / a[i][i];
            let (above, below) = a.split_at_mut(r);
            below[0].iter_mut().zip(&above[i]).for_each(|(b, a)| *b -= factor * a);
        }
    }
    sum
}

#[test]
fn inverse_undoes_forward() {
    let test = |(config, sizes, seed): (FlowConfig, Vec<usize>, u64)| {
        let case = Case::new(config, &sizes, seed);
        let dim = case.flow.config().theta_dim;
        let mut tape = Tape::with_kernels(&case.flow, case.pairs(), Kernels::scalar());
        case.fill(&mut tape);
        case.flow.forward(&case.params, &mut tape);
        let log_q = tape.log_q().to_vec();
        let z: Vec<Vec<f64>> =
            (0..case.pairs()).map(|i| (0..dim).map(|f| tape.output(i, f)).collect()).collect();
        let mut back = Tape::with_kernels(&case.flow, case.pairs(), Kernels::scalar());
        let mut z = z.into_iter();
        for (x, pairs) in &case.groups {
            back.context(x.iter().copied());
            pairs.iter().for_each(|_| back.pair(z.next().unwrap()));
        }
        case.flow.inverse(&case.params, &mut back);
        let theta = case.groups.iter().flat_map(|(_, pairs)| pairs).map(|(theta, _)| theta);
        for (i, theta) in theta.enumerate() {
            for (f, theta) in theta.iter().enumerate() {
                prop_assert!(
                    (back.output(i, f) - theta).abs() < 1e-7,
                    "{} {theta}",
                    back.output(i, f)
                );
            }
            prop_assert!((back.log_q()[i] - log_q[i]).abs() < 1e-6 * log_q[i].abs().max(1.0));
        }
        Ok(())
    };
    runner(200).run(&shapes(), test).unwrap();
}

/// For a normalised density q and any box A, P(θ ∈ A) = ∫_A q: the share of samples in A must agree
/// with the integral of the density on a grid, within 4 standard errors √(p (1 − p) / n) and the
/// grid's own error (its difference from a grid of half the points).
#[test]
fn samples_agree_with_the_density() {
    for (seed, theta_dim) in [(1, 1), (2, 2), (3, 2)] {
        let config =
            FlowConfig { layers: 3, units: 12, bound: 3.0, ..FlowConfig::new(theta_dim, 2) };
        let case = Case::new(config, &[1], seed);
        let params: Vec<f32> = case.params.iter().map(|&p| 0.5 * p as f32).collect();
        let x = [0.3f32, -0.8];
        let n = 200_000;
        let mut rng = Streams::new(seed).stream(Purpose::Posterior, 0, 0);
        let (theta, _) = case.flow.sample(&params, &x, n, &mut rng).unwrap();
        let integral = |points: usize, low: f64, high: f64| {
            let step = (high - low) / points as f64;
            let at = |i: usize| (low + (i as f64 + 0.5) * step) as f32;
            let grid: Vec<f32> = match theta_dim {
                1 => (0..points).map(at).collect(),
                _ => (0..points * points).flat_map(|i| [at(i / points), at(i % points)]).collect(),
            };
            let theta = didyma::Rows::new("theta", &grid, theta_dim).unwrap();
            let x = didyma::Rows::new("x", &x, 2).unwrap();
            let log_q = case.flow.log_density(&params, theta, x).unwrap();
            log_q.iter().map(|l| l.exp()).sum::<f64>() * step.powi(theta_dim as i32)
        };
        for (low, high) in [(-1.0, 0.5), (0.0, 1.0), (-12.0, 12.0)] {
            let points = if theta_dim == 1 { 4000 } else { 600 };
            let p = integral(points, low, high);
            let grid_error = (p - integral(points / 2, low, high)).abs();
            let inside = |row: &&[f32]| row.iter().all(|&v| (low..high).contains(&f64::from(v)));
            let share = theta.chunks_exact(theta_dim).filter(inside).count() as f64 / n as f64;
            let tolerance = 4.0 * (p * (1.0 - p).max(0.0) / n as f64).sqrt() + grid_error + 1e-4;
            assert!(
                (share - p).abs() < tolerance,
                "{share} of the samples, density {p} ± {tolerance}"
            );
        }
    }
}

#[test]
fn flops_are_those_of_the_matrices() {
    // Lotka-Volterra: per pair and layer 4 · 50² + 58 · 50 + 2 · 50 + 4², three times; per group
    // 3 · 9 · 50, twice.
    let flow = SplineFlow::new(FlowConfig::new(4, 9)).unwrap();
    let expected = 2 * 8 * (3 * 13_016 * 3_543 + 2 * 1_350 * 203);
    assert_eq!(flow.flops(3_543, 203), expected);
}

#[test]
fn first_weights_have_the_bounds_of_their_layers() {
    let flow = SplineFlow::new(FlowConfig::new(4, 9)).unwrap();
    let streams = Streams::new(2);
    let params: Vec<f64> = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
    for tensor in flow.tensors() {
        let values = &params[tensor.range.clone()];
        let bound = match tensor.name.split('.').nth_back(1).unwrap() {
            "initial" => 1.0 / 11f64.sqrt(),
            "context" => 1.0 / 3.0,
            "first" | "last" => 1.0 / 50f64.sqrt(),
            "second" => 1e-3,
            _ if tensor.name.ends_with("diagonal") => {
                assert!(values.iter().all(|u| (u.softplus() + 1e-3 - 1.0).abs() < 1e-12));
                continue;
            }
            _ => {
                assert!(values.iter().all(|&v| v == 0.0), "{}", tensor.name);
                continue;
            }
        };
        // A uniform variable on ±bound: the mean square is bound² / 3, with a standard error of
        // bound² √(4/45) / √n; 5 of these for some 60 tensors.
        let n = values.len() as f64;
        let mean_square = values.iter().map(|v| v * v).sum::<f64>() / n;
        let error = 5.0 * bound * bound * (4.0 / 45.0 / n).sqrt();
        assert!(values.iter().all(|v| v.abs() <= bound), "{}", tensor.name);
        assert!((mean_square - bound * bound / 3.0).abs() < error, "{}", tensor.name);
    }
}
