//! The kernels that a training step consists of, on one panel in the first-level cache.
//!
//! `cargo bench -p didyma --bench kernels`; throughput in floating-point operations (Gelem/s = GFLOP/s).

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use didyma::kernel::*;

const UNITS: usize = 50;

fn panel(features: usize) -> Aligned<f32> {
    let mut panel = Aligned::zeros(features * PANEL);
    panel.iter_mut().enumerate().for_each(|(i, v)| *v = (i * 7919 % 1000) as f32 / 1000.0 - 0.5);
    panel
}

fn products(c: &mut Criterion) {
    let k = f32::kernels();
    let mut group = c.benchmark_group(format!("product 50x50, {} kernels", k.name));
    group.throughput(Throughput::Elements((2 * UNITS * UNITS * PANEL) as u64));
    let (w, input, mask) = (panel(UNITS), panel(UNITS), panel(UNITS));
    let weights = Weights { data: &w[..], outputs: UNITS, inputs: UNITS, stride: UNITS };
    let (rows, mut output, mut scratch) = (PANEL, panel(UNITS), panel(64));
    group.bench_function("forward", |b| {
        b.iter(|| {
            let (mode, output) = (Mode::Relu(&w[..UNITS]), &mut output);
            (k.affine)(AffineJob { weights, mode, rows, input: &input, output });
        });
    });
    group.bench_function("input gradient", |b| {
        b.iter(|| {
            (k.affine_input_gradient)(InputGradientJob {
                weights,
                mask: Some(&mask),
                accumulate: false,
                rows,
                d_output: &input,
                d_input: &mut output,
            });
        });
    });
    let (mut d_weights, mut d_bias) = (vec![0.0; UNITS * UNITS], vec![0.0; UNITS]);
    group.bench_function("weight gradient", |b| {
        b.iter(|| {
            (k.affine_weight_gradient)(WeightGradientJob {
                outputs: UNITS,
                inputs: UNITS,
                rows,
                accumulate: false,
                d_output: &mask,
                input: &input,
                d_weights: &mut d_weights,
                stride: UNITS,
                d_bias: Some(&mut d_bias),
                scratch: &mut scratch,
            });
        });
    });
    group.finish();
}

fn splines(c: &mut Criterion) {
    let k = f32::kernels();
    let mut group = c.benchmark_group(format!("spline of 64 rows, {} kernels", k.name));
    group.throughput(Throughput::Elements(PANEL as u64));
    let shape = SplineShape { bins: 10, bound: 20.0, logit_scale: 0.14 };
    let (source, mut logits) = (panel(shape.logits()), panel(shape.logits()));
    let (mut value, mut log_det, input) = (panel(1), panel(1), panel(1));
    let rows = PANEL;
    let (value, log_det) = (&mut value[..], &mut log_det[..]);
    group.bench_function("forward", |b| {
        b.iter(|| {
            logits.copy_from_slice(&source);
            (k.spline)(SplineJob { shape, rows, logits: &mut logits, value, log_det });
        });
    });
    group.bench_function("gradient", |b| {
        b.iter(|| {
            logits.copy_from_slice(&source);
            (k.spline_gradient)(SplineGradientJob {
                shape,
                rows,
                logits: &mut logits,
                input: &input,
                d_value: value,
                d_log_det: &input,
            });
        });
    });
    group.finish();
}

criterion_group!(benches, products, splines);
criterion_main!(benches);
