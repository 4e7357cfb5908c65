//! Products, gates, contexts and the optimiser: sums of products.

use super::{EPSILON, Numbers, check};
use didyma::kernel::*;
use proptest::prelude::*;
use proptest::test_runner::TestCaseResult;
use rand::RngExt;
use rand_chacha::ChaCha8Rng;

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
                k: &Kernels<F>,
                w: Weights<F>,
                bias: &[F],
                input: &[F],
                before: &[F],
                rows: usize,
                case: u8,
            ) -> (Vec<F>, Vec<F>) {
                let mut output = before.to_vec();
                let mut rectified = vec![F::zero(); output.len()];
                let mode = match case {
                    0 => Mode::Plain(bias),
                    1 => Mode::Relu(bias),
                    _ => Mode::Add(&mut rectified),
                };
                (k.affine)(AffineJob { weights: w, mode, rows, input, output: &mut output });
                (output, rectified)
            }
            let weights = |data| Weights { data, outputs, inputs, stride };
            let w32 = Weights { data: &w.single[..], outputs, inputs, stride };
            let scalar = Kernels::scalar();
            let found = run(kernels, w32, &bias.single, &input.single, &before.single, rows, case);
            let exact = run(
                scalar,
                weights(&w.double),
                &bias.double,
                &input.double,
                &before.double,
                rows,
                case,
            );
            let size =
                run(scalar, weights(&w.size), &bias.size, &input.size, &before.size, rows, case);
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
                k: &Kernels<F>,
                w: Weights<F>,
                mask: Option<&[F]>,
                d: &[F],
                before: &[F],
                rows: usize,
                accumulate: bool,
            ) -> Vec<F> {
                let mut d_input = before.to_vec();
                (k.affine_input_gradient)(InputGradientJob {
                    weights: w,
                    mask,
                    accumulate,
                    rows,
                    d_output: d,
                    d_input: &mut d_input,
                });
                d_input
            }
            let w32 = Weights { data: &w.single[..], outputs, inputs, stride };
            let weights = |data| Weights { data, outputs, inputs, stride };
            let scalar = Kernels::scalar();
            let mask64 = masked.then_some(&mask.double[..]);
            let found = run(
                kernels,
                w32,
                masked.then_some(&mask.single[..]),
                &d_output.single,
                &before.single,
                rows,
                accumulate,
            );
            let exact = run(
                scalar,
                weights(&w.double),
                mask64,
                &d_output.double,
                &before.double,
                rows,
                accumulate,
            );
            let size = run(
                scalar,
                weights(&w.size),
                mask64,
                &d_output.size,
                &before.size,
                rows,
                accumulate,
            );
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
            k: &Kernels<F>,
            d_output: &[F],
            input: &[F],
            before: &[F],
            shape: (usize, usize, usize, usize),
            accumulate: bool,
        ) -> (Vec<F>, Vec<F>) {
            let (outputs, inputs, rows, stride) = shape;
            let (mut d_weights, mut d_bias) = (before.to_vec(), before[..outputs].to_vec());
            let mut scratch = vec![F::zero(); transpose_size(rows, inputs)];
            (k.affine_weight_gradient)(WeightGradientJob {
                outputs,
                inputs,
                rows,
                accumulate,
                d_output,
                input,
                d_weights: &mut d_weights,
                stride,
                d_bias: Some(&mut d_bias),
                scratch: &mut scratch,
            });
            (d_weights, d_bias)
        }
        let shape = (outputs, inputs, rows, stride);
        let found =
            run(kernels, &d_output.single, &input.single, &before.single, shape, accumulate);
        let exact = run(
            Kernels::scalar(),
            &d_output.double,
            &input.double,
            &before.double,
            shape,
            accumulate,
        );
        let size =
            run(Kernels::scalar(), &d_output.size, &input.size, &before.size, shape, accumulate);
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
            k: &Kernels<F>,
            rows: ContextRows,
            panels: [&[F]; 4],
            relu: bool,
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
                rows,
                gate,
                value,
                d_hidden: hidden,
                d_value: &mut d_value,
                d_gate: &mut d_gate,
            });
            Out([expanded, collected, after, output, d_value, d_gate])
        }
        let found = run(
            kernels,
            by_context,
            [&gate.single, &value.single, &hidden.single, &sums.single],
            relu,
        );
        let scalar = Kernels::scalar();
        let exact = run(
            scalar,
            by_context,
            [&gate.double, &value.double, &hidden.double, &sums.double],
            relu,
        );
        let size =
            run(scalar, by_context, [&gate.size, &value.size, &hidden.size, &sums.size], relu);
        let names = ["expand", "collect", "hidden", "output", "d_value", "d_gate"];
        for (((name, found), exact), size) in names.iter().zip(&found.0).zip(&exact.0).zip(&size.0)
        {
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

/// φ(a) = a σ(a) and its derivatives. σ is right to 6 ε of itself (see above), and 1 − σ to 6 ε σ + ε ≤ 7 ε of 1. The
/// sums that follow have terms of at most 1 + |a| and 2 + |a| before they are multiplied by σ: 12 roundings of that size.
#[test]
fn silu() {
    check(|rng, kernels| {
        let (features, rows) = (rng.random_range(1..5), rows(rng));
        let x = Numbers::random(rng, features * PANEL, 20.0);
        fn run<F: Real>(k: &Kernels<F>, rows: usize, input: &[F]) -> [Vec<F>; 3] {
            let mut found = [(); 3].map(|()| vec![F::zero(); input.len()]);
            let [value, slope, curvature] = &mut found;
            let (slope, curvature) = (Some(&mut slope[..]), Some(&mut curvature[..]));
            (k.silu)(SiluJob { rows, input, value, slope, curvature });
            found
        }
        let found = run(kernels, rows, &x.single);
        let exact = run(Kernels::scalar(), rows, &x.double);
        let size: Vec<f64> =
            x.double.iter().map(|a| (2.0 + a.abs()) / (1.0 + (-a).exp())).collect();
        for (name, (found, exact)) in
            ["value", "slope", "curvature"].into_iter().zip(found.iter().zip(&exact))
        {
            compare(name, found, exact, &size, 10)?;
        }
        Ok(())
    });
}

#[test]
fn adam_and_sums() {
    check(|rng, kernels| {
        let n = rng.random_range(1..200);
        let [w, g, m] = [1.0, 1.0, 0.1].map(|scale| Numbers::random(rng, n, scale));
        let v = Numbers::new(g.single.iter().map(|g| 0.01 + g * g).collect());
        let step = AdamStep {
            gradient_scale: 0.7,
            coupled_decay: 1e-4,
            shrink: 0.999,
            beta1: [0.9, 0.1],
            beta2: [0.999, 0.001],
            rate: 1e-3,
            v_scale: 1.5,
            epsilon: 1e-8,
        };
        fn run<F: Real>(
            k: &Kernels<F>,
            step: AdamStep,
            w: &[F],
            g: &[F],
            m: &[F],
            v: &[F],
        ) -> Vec<F> {
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

/// Whatever a safe caller asks for, a kernel that does not have the memory for it panics.
#[test]
fn jobs_that_do_not_fit_are_refused() {
    let refused = |job: &dyn Fn(&'static Kernels<f32>)| {
        for kernels in Kernels::available().filter(|k| k.name != "scalar") {
            let run = std::panic::AssertUnwindSafe(|| job(kernels));
            assert!(std::panic::catch_unwind(run).is_err(), "{} accepted it", kernels.name);
        }
    };
    let numbers = [0.5f32; 4 * PANEL];
    let panel = || numbers.to_vec();
    refused(&|k| {
        let rows = ContextRows { context: &[0; 16], features: 1 << 58 };
        (k.expand)(&rows, &[], &mut []);
    });
    refused(&|k| {
        let mut context = [0; 16];
        context[9..].fill(19); // a context without rows in between
        let rows = ContextRows { context: &context, features: 1 };
        (k.expand)(&rows, &numbers, &mut panel());
    });
    let matrix = |outputs, inputs, stride| Weights { data: &numbers[..1], outputs, inputs, stride };
    for weights in [matrix(2, 1, usize::MAX), matrix(2, 2, 1), matrix(1 << 62, 1, 4)] {
        refused(&|k| {
            let mode = Mode::Plain(&numbers);
            let (input, output) = (&numbers[..], &mut panel()[..]);
            (k.affine)(AffineJob { weights, mode, rows: 16, input, output });
        });
    }
    refused(&|k| {
        let shape = SplineShape { bins: 1, bound: 3.0, logit_scale: 1.0 };
        let (logits, value, log_det) = (&mut panel()[..], &mut panel()[..], &mut panel()[..]);
        (k.spline)(SplineJob { shape, rows: 16, logits, value, log_det });
    });
    for rows in [17, usize::MAX] {
        refused(&|k| {
            (k.affine_weight_gradient)(WeightGradientJob {
                outputs: 2,
                inputs: 2,
                rows: rows.max(200),
                accumulate: false,
                d_output: &numbers,
                input: &numbers,
                d_weights: &mut panel(),
                stride: 2,
                d_bias: None,
                scratch: &mut panel(),
            });
        });
    }
}
