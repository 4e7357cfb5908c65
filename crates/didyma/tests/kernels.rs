//! Every SIMD kernel against its scalar definition in f64, on random sizes and numbers.
//!
//! Tolerances. A sum of n products in f32 is off by at most (n + 2) ε Σ |a b| from the exact one,
//! whatever the order (Higham 2002, eq. 3.5); the bound Σ |a b| is computed by the same kernel on
//! absolute values. Splines are compared by backward error: see [`spline_tolerance`].

use didyma::kernel::*;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

const EPSILON: f64 = f32::EPSILON as f64;

/// The same panels as f32, as f64, and as absolute values in f64.
struct Numbers {
    single: Vec<f32>,
    double: Vec<f64>,
    size: Vec<f64>,
}

impl Numbers {
    fn random(rng: &mut ChaCha8Rng, len: usize, scale: f32) -> Self {
        Self::new((0..len).map(|_| scale * (2.0 * rng.random::<f32>() - 1.0)).collect())
    }

    fn new(single: Vec<f32>) -> Self {
        let double: Vec<f64> = single.iter().map(|&v| f64::from(v)).collect();
        let size = double.iter().map(|v| v.abs()).collect();
        Self { single, double, size }
    }
}

fn check(seeds: impl Fn(&mut ChaCha8Rng, &'static Kernels<f32>) -> TestCaseResult) {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let run = |seed: u64| {
        Kernels::available().try_for_each(|k| seeds(&mut ChaCha8Rng::seed_from_u64(seed), k))
    };
    runner.run(&any::<u64>(), run).unwrap();
}

/// Compares panels; `size` bounds the terms that were summed, `terms` counts them.
fn compare(what: &str, found: &[f32], exact: &[f64], size: &[f64], terms: usize) -> TestCaseResult {
    for (i, ((&found, &exact), &size)) in found.iter().zip(exact).zip(size).enumerate() {
        let tolerance = (terms as f64 + 2.0) * EPSILON * size + 1e-30;
        prop_assert!((f64::from(found) - exact).abs() <= tolerance, "{what}[{i}]: {found} {exact}");
    }
    Ok(())
}

fn rows(rng: &mut ChaCha8Rng) -> usize {
    LANE * rng.random_range(1..=PANEL / LANE)
}

#[test]
fn affine() {
    check(|rng, kernels| {
        let (outputs, inputs, rows) = (rng.random_range(1..70), rng.random_range(0..60), rows(rng));
        let stride = inputs + rng.random_range(0..4);
        let w = Numbers::random(rng, outputs * stride.max(1), 1.0);
        let bias = Numbers::random(rng, outputs, 1.0);
        let input = Numbers::random(rng, inputs * PANEL, 2.0);
        let before = Numbers::random(rng, outputs * PANEL, 1.0);
        for case in 0..3 {
            fn run<F: Real>(
                k: &Kernels<F>, w: Weights<F>, bias: &[F], input: &[F], before: &[F], rows: usize, case: u8,
            ) -> (Vec<F>, Vec<F>) {
                let mut output = before.to_vec();
                let mut rectified = vec![F::zero(); output.len()];
                let (start, finish) = match case {
                    0 => (Start::Bias(bias), Finish::Plain),
                    1 => (Start::Bias(bias), Finish::Relu),
                    _ => (Start::Output(&mut rectified), Finish::Plain),
                };
                (k.affine)(AffineJob { weights: w, start, finish, rows, input, output: &mut output });
                (output, rectified)
            }
            let weights = |data| Weights { data, outputs, inputs, stride };
            let w32 = Weights { data: &w.single[..], outputs, inputs, stride };
            let scalar = Kernels::scalar();
            let found = run(kernels, w32, &bias.single, &input.single, &before.single, rows, case);
            let exact = run(scalar, weights(&w.double), &bias.double, &input.double, &before.double, rows, case);
            let size = run(scalar, weights(&w.size), &bias.size, &input.size, &before.size, rows, case);
            compare("output", &found.0, &exact.0, &size.0, inputs)?;
            compare("rectified", &found.1, &exact.1, &size.1, inputs)?;
        }
        Ok(())
    });
}

#[test]
fn affine_input_gradient() {
    check(|rng, kernels| {
        let (outputs, inputs, rows) = (rng.random_range(1..70), rng.random_range(1..60), rows(rng));
        let stride = inputs + rng.random_range(0..4);
        let w = Numbers::random(rng, outputs * stride, 1.0);
        let d_output = Numbers::random(rng, outputs * PANEL, 1.0);
        let mask = Numbers::random(rng, inputs * PANEL, 1.0);
        let before = Numbers::random(rng, inputs * PANEL, 1.0);
        for case in 0..4 {
            let (masked, accumulate) = (case % 2 == 1, case / 2 == 1);
            fn run<F: Real>(
                k: &Kernels<F>, w: Weights<F>, mask: Option<&[F]>, d: &[F], before: &[F], rows: usize, accumulate: bool,
            ) -> Vec<F> {
                let mut d_input = before.to_vec();
                (k.affine_input_gradient)(InputGradientJob {
                    weights: w, mask, accumulate, rows, d_output: d, d_input: &mut d_input,
                });
                d_input
            }
            let w32 = Weights { data: &w.single[..], outputs, inputs, stride };
            let weights = |data| Weights { data, outputs, inputs, stride };
            let scalar = Kernels::scalar();
            let mask64 = masked.then_some(&mask.double[..]);
            let found = run(
                kernels, w32, masked.then_some(&mask.single[..]), &d_output.single, &before.single, rows, accumulate,
            );
            let exact = run(scalar, weights(&w.double), mask64, &d_output.double, &before.double, rows, accumulate);
            let size = run(scalar, weights(&w.size), mask64, &d_output.size, &before.size, rows, accumulate);
            compare("d_input", &found, &exact, &size, outputs)?;
        }
        Ok(())
    });
}

#[test]
fn affine_weight_gradient() {
    check(|rng, kernels| {
        let (outputs, inputs) = (rng.random_range(1..70), rng.random_range(0..70));
        let rows: usize = rng.random_range(1..200);
        let panels = rows.div_ceil(PANEL);
        let stride = inputs + rng.random_range(1..4);
        let mut d_output = Numbers::random(rng, panels * outputs * PANEL, 1.0).single;
        for (o, feature) in d_output.chunks_exact_mut(PANEL).enumerate() {
            feature[PANEL.min(rows - o / outputs * PANEL)..].fill(0.0);
        }
        let d_output = Numbers::new(d_output);
        let input = Numbers::random(rng, panels * inputs * PANEL, 1.0);
        let before = Numbers::random(rng, outputs * stride, 1.0);
        let accumulate = rng.random();
        fn run<F: Real>(
            k: &Kernels<F>, d_output: &[F], input: &[F], before: &[F], shape: (usize, usize, usize, usize), accumulate: bool,
        ) -> (Vec<F>, Vec<F>) {
            let (outputs, inputs, rows, stride) = shape;
            let (mut d_weights, mut d_bias) = (before.to_vec(), before[..outputs].to_vec());
            let mut scratch = vec![F::zero(); transpose_size(rows, inputs)];
            (k.affine_weight_gradient)(WeightGradientJob {
                outputs, inputs, rows, accumulate, d_output, input, d_weights: &mut d_weights, stride,
                d_bias: Some(&mut d_bias), scratch: &mut scratch,
            });
            (d_weights, d_bias)
        }
        let shape = (outputs, inputs, rows, stride);
        let found = run(kernels, &d_output.single, &input.single, &before.single, shape, accumulate);
        let exact = run(Kernels::scalar(), &d_output.double, &input.double, &before.double, shape, accumulate);
        let size = run(Kernels::scalar(), &d_output.size, &input.size, &before.size, shape, accumulate);
        compare("d_weights", &found.0, &exact.0, &size.0, rows + 1)?;
        compare("d_bias", &found.1, &exact.1, &size.1, rows + 1)
    });
}

/// Non-decreasing context numbers in runs of random length.
fn contexts(rng: &mut ChaCha8Rng, rows: usize) -> Vec<u32> {
    let longest = rng.random_range(1..40);
    let mut context = Vec::new();
    let mut number = 0;
    while context.len() < rows {
        let run = rng.random_range(1..=longest).min(rows - context.len());
        context.extend(std::iter::repeat_n(number, run));
        number += 1;
    }
    context
}

#[test]
fn contexts_and_gates() {
    check(|rng, kernels| {
        let (features, rows) = (rng.random_range(1..60), rows(rng));
        let context = contexts(rng, rows);
        let by_context = ContextRows { context: &context, features };
        let [gate, value, hidden, sums] =
            [1.0, 2.0, 1.0, 1.0].map(|scale| Numbers::random(rng, features * PANEL, scale));
        let relu = rng.random();
        struct Out<F>([Vec<F>; 6]);
        fn run<F: Real>(
            k: &Kernels<F>, rows: ContextRows, panels: [&[F]; 4], relu: bool,
        ) -> Out<F> {
            let [gate, value, hidden, sums] = panels;
            let blank = || vec![F::zero(); gate.len()];
            let (mut expanded, mut collected) = (blank(), sums.to_vec());
            (k.expand)(&rows, gate, &mut expanded);
            (k.collect)(&rows, value, &mut collected);
            let (mut after, mut output) = (hidden.to_vec(), blank());
            (k.gate)(GateJob { rows, gate, value, hidden: &mut after, output: &mut output, relu });
            let (mut d_value, mut d_gate) = (blank(), sums.to_vec());
            (k.gate_gradient)(GateGradientJob {
                rows, gate, value, d_hidden: hidden, d_value: &mut d_value, d_gate: &mut d_gate,
            });
            Out([expanded, collected, after, output, d_value, d_gate])
        }
        let found = run(
            kernels, by_context, [&gate.single, &value.single, &hidden.single, &sums.single], relu,
        );
        let scalar = Kernels::scalar();
        let exact = run(scalar, by_context, [&gate.double, &value.double, &hidden.double, &sums.double], relu);
        let size = run(scalar, by_context, [&gate.size, &value.size, &hidden.size, &sums.size], relu);
        let names = ["expand", "collect", "hidden", "output", "d_value", "d_gate"];
        for (((name, found), exact), size) in names.iter().zip(&found.0).zip(&exact.0).zip(&size.0) {
            compare(name, found, exact, size, rows + 1)?;
        }
        Ok(())
    });
}

/// σ by the vectorised exp: relative error of a few ε for |x| up to 80.
#[test]
fn sigmoid() {
    check(|rng, kernels| {
        let x = Numbers::random(rng, PANEL, 80.0);
        let (mut found, mut exact) = (x.single.clone(), x.double.clone());
        (kernels.sigmoid)(&mut found, PANEL);
        (Kernels::scalar().sigmoid)(&mut exact, PANEL);
        let size = exact.clone();
        // exp: 2 ulp and |x| ε from reducing the argument is below 1 ulp; sum and quotient: 1 each.
        compare("sigmoid", &found, &exact, &size, 4)
    });
}

struct Spline {
    shape: SplineShape,
    logits: Numbers,
    x: Numbers,
}

impl Spline {
    /// Anything from a nearly straight spline to bins at the smallest size allowed.
    fn random(rng: &mut ChaCha8Rng) -> Self {
        let bins = rng.random_range(2..14);
        let bound = *[3.0, 20.0].get(rng.random_range(0..2usize)).unwrap();
        let shape = SplineShape { bins, bound, logit_scale: 0.3 };
        let spread = 10f32.powf(rng.random_range(-1.0..2.0));
        let logits = Numbers::random(rng, shape.logits() * PANEL, spread);
        Self { shape, logits, x: Numbers::random(rng, PANEL, 1.1 * bound as f32) }
    }

    /// Value, log-derivative, and the saved softmax at x.
    fn run<F: Real>(&self, kernel: fn(SplineJob<'_, F>), logits: &[F], x: &[F]) -> [Vec<F>; 3] {
        let (mut logits, mut value) = (logits.to_vec(), x.to_vec());
        let mut log_det = vec![F::zero(); PANEL];
        (kernel)(SplineJob {
            shape: self.shape,
            rows: PANEL,
            logits: &mut logits,
            value: &mut value,
            log_det: &mut log_det,
        });
        [value, log_det, logits]
    }

    fn exact(&self, shift: f64) -> [Vec<f64>; 3] {
        let x: Vec<f64> = self.x.double.iter().map(|x| x + shift).collect();
        self.run(Kernels::<f64>::scalar().spline, &self.logits.double, &x)
    }

    /// Gradients of x and of all logits, for d_value = 1 and d_log_det = ½.
    fn gradient<F: Real>(&self, k: &Kernels<F>, logits: &[F], x: &[F]) -> (Vec<F>, Vec<F>) {
        let [_, _, mut saved] = self.run(k.spline, logits, x);
        let mut d_value = vec![F::one(); PANEL];
        (k.spline_gradient)(SplineGradientJob {
            shape: self.shape,
            rows: PANEL,
            logits: &mut saved,
            input: x,
            d_value: &mut d_value,
            d_log_det: &[F::of(0.5); PANEL],
        });
        (d_value, saved)
    }
}

/// How far the knots of a spline in f32 lie from the exact ones.
///
/// An extent 2B p has a relative error of at most 4 ε from the softmax (exp 2 ulp, its argument and
/// the quotient 1 each), together 8 ε B over all bins; each of the K partial sums rounds by ½ ε B. So
/// what a spline gives at x in f32 lies among what the exact one gives within this δ of x, up to a
/// few rounding errors of its own formula.
fn spline_tolerance(spline: &Spline) -> f64 {
    (0.5 * spline.shape.bins as f64 + 8.0) * EPSILON * spline.shape.bound
}

fn within(what: &str, found: f32, nearby: [f64; 3], rounding: f64) -> TestCaseResult {
    let low = nearby.into_iter().fold(f64::INFINITY, f64::min) - rounding;
    let high = nearby.into_iter().fold(f64::NEG_INFINITY, f64::max) + rounding;
    prop_assert!((low..=high).contains(&f64::from(found)), "{what}: {found} not in {low}..{high}");
    Ok(())
}

#[test]
fn splines() {
    check(|rng, kernels| {
        let spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let [value, log_det, _] = spline.run(kernels.spline, &spline.logits.single, &spline.x.single);
        let nearby = [-delta, 0.0, delta].map(|shift| spline.exact(shift));
        let bound = spline.shape.bound;
        for i in 0..PANEL {
            if (spline.x.double[i].abs() - bound).abs() < delta {
                continue; // the derivative jumps to 1 at the bound
            }
            let at = |column: usize| [0, 1, 2].map(|n: usize| nearby[n][column][i]);
            within("value", value[i], at(0), delta)?;
            // The slope h / w has a relative error of about 14 ε (6 for an extent near the smallest
            // allowed, whose logit is rounded too) and enters squared, in D and in E: 64 ε.
            within("log_det", log_det[i], at(1), 64.0 * EPSILON * (1.0 + at(1)[1].abs()))?;
        }
        Ok(())
    });
}

/// x' = f⁻¹(y) is right if the exact spline at x' ± δ brackets y: backward error at f32 precision,
/// however flat or steep the bin.
#[test]
fn spline_inverses() {
    check(|rng, kernels| {
        let mut spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let y = spline.x.single.clone();
        let [x, log_det, _] = spline.run(kernels.spline_inverse, &spline.logits.single, &y);
        prop_assert!(x.iter().chain(&log_det).all(|v| v.is_finite()));
        spline.x = Numbers::new(x);
        let nearby = [-delta, 0.0, delta].map(|shift| spline.exact(shift));
        for i in 0..PANEL {
            within("y", y[i], [0, 1, 2].map(|n: usize| nearby[n][0][i]), delta)?;
        }
        Ok(())
    });
}

#[test]
fn spline_gradients() {
    check(|rng, kernels| {
        let spline = Spline::random(rng);
        let delta = spline_tolerance(&spline);
        let found = spline.gradient(kernels, &spline.logits.single, &spline.x.single);
        let nearby = [-delta, 0.0, delta].map(|shift| {
            let x: Vec<f64> = spline.x.double.iter().map(|x| x + shift).collect();
            spline.gradient(Kernels::scalar(), &spline.logits.double, &x)
        });
        let [_, _, softmax] = spline.exact(0.0);
        for i in 0..PANEL {
            let logits = || (0..spline.shape.logits()).map(|j| j * PANEL + i);
            // Every component is a sum of a dozen terms, each with the 14 ε of the slope, or fewer. The
            // terms are as large as the largest component, or as 1 / w, by which d_x is divided.
            let largest = logits().map(|j| nearby[1].1[j].abs()).fold(nearby[1].0[i].abs(), f64::max);
            let share = (0..spline.shape.bins).map(|j| softmax[j * PANEL + i]).fold(1.0, f64::min);
            let narrowest = 2.0 * spline.shape.bound * share.max(MIN_BIN);
            let rounding = 12.0 * 14.0 * EPSILON * largest.max(1.0 / narrowest);
            // A knot within δ of x: the derivative jumps there.
            let moved = (nearby[0].0[i] - nearby[2].0[i]).abs() > 0.1 * nearby[1].0[i].abs();
            if moved || (spline.x.double[i].abs() - spline.shape.bound).abs() < delta {
                continue;
            }
            within("d_x", found.0[i], [0, 1, 2].map(|n: usize| nearby[n].0[i]), rounding)?;
            for j in logits() {
                within("d_logit", found.1[j], [0, 1, 2].map(|n: usize| nearby[n].1[j]), rounding)?;
            }
        }
        Ok(())
    });
}

/// Tails, ends, knots and absurd logits: everything stays finite, forward, backward and inverse.
#[test]
fn splines_are_finite_everywhere() {
    for kernels in Kernels::available() {
        for scale in [0.0, 1.0, 1e2, 1e4, 1e6] {
            let shape = SplineShape { bins: 10, bound: 20.0, logit_scale: 0.14 };
            let mut rng = ChaCha8Rng::seed_from_u64(1);
            let logits = Numbers::random(&mut rng, shape.logits() * PANEL, scale);
            let special = [0.0, 20.0, -20.0, 19.999998, -19.999998, 1e-30, 1e10, -1e10, 1e30, 4.0, 0.04];
            let x = Numbers::new((0..PANEL).map(|i| special[i % special.len()]).collect());
            let spline = Spline { shape, logits, x };
            let (logits, x) = (&spline.logits.single, &spline.x.single);
            let forward = spline.run(kernels.spline, logits, x);
            let inverse = spline.run(kernels.spline_inverse, logits, x);
            let (d_x, d_logits) = spline.gradient(kernels, logits, x);
            let all = forward.iter().chain(&inverse).chain([&d_x, &d_logits]).flatten();
            assert!(all.clone().all(|v| v.is_finite()), "{} at scale {scale}", kernels.name);
        }
    }
}

#[test]
fn adam_and_sums() {
    check(|rng, kernels| {
        let n = rng.random_range(1..200);
        let [w, g, m] = [1.0, 1.0, 0.1].map(|scale| Numbers::random(rng, n, scale));
        let v = Numbers::new(g.single.iter().map(|g| 0.01 + g * g).collect());
        let step = AdamStep {
            gradient_scale: 0.7, coupled_decay: 1e-4, shrink: 0.999, beta1: 0.9, beta2: 0.999,
            rate: 1e-3, v_scale: 1.5, epsilon: 1e-8,
        };
        fn run<F: Real>(k: &Kernels<F>, step: AdamStep, w: &[F], g: &[F], m: &[F], v: &[F]) -> Vec<F> {
            let (mut weights, mut m, mut v) = (w.to_vec(), m.to_vec(), v.to_vec());
            (k.adam)(AdamJob { weights: &mut weights, gradient: g, m: &mut m, v: &mut v, step });
            weights
        }
        let found = run(kernels, step, &w.single, &g.single, &m.single, &v.single);
        let exact = run(Kernels::scalar(), step, &w.double, &g.double, &m.double, &v.double);
        let size = vec![1.0; n];
        compare("weights", &found, &exact, &size, 2)?;
        let mut sums = vec![0.5; n];
        (kernels.add_to)(&mut sums, &g.single);
        prop_assert!(sums.iter().zip(&g.double).all(|(s, g)| *s == 0.5 + g));
        Ok(())
    });
}
