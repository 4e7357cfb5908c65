//! Numbers made by another implementation (nflows 0.14 in float64, tail bound 3).
//!
//! All parameters are 0.2 sin(0.7 n + 0.3) for the running index n, in nflows' own order, which
//! pins down the parameter order, every mask and every formula at once.

#![allow(clippy::unwrap_used)]

use crate::laws::vectors::flow as vectors;
use didyma::kernel::{Kernels, PANEL, Real, SplineJob, SplineShape};
use didyma::{FlowConfig, SplineFlow, Tape};

fn close(found: f64, expected: f64, tolerance: f64) {
    assert!((found - expected).abs() <= tolerance, "{found} instead of {expected} ± {tolerance}");
}

fn spline_alone<F: Real>(kernels: &Kernels<F>, tolerance: f64) {
    let shape = SplineShape { bins: 10, bound: 3.0, logit_scale: 1.0 };
    let inputs = [-3.5, -2.5, -1.0, 0.0, 0.3, 2.9];
    let outputs = [-3.5, -2.514996, -1.71412671, 0.03191309, 1.00770869, 2.8903917];
    let log_dets = [0.0, -0.05255342, -0.70087562, 2.00550232, 0.00048127, 0.11295105];
    let mut logits = vec![F::zero(); 29 * PANEL];
    for (j, feature) in logits.chunks_exact_mut(PANEL).enumerate() {
        let logit = match j {
            0..10 => (j as f64 + 1.0).sin(),
            10..20 => (j as f64 - 9.0).cos(),
            _ => 0.5 * (2.0 * (j as f64 - 19.0)).sin(),
        };
        feature.fill(F::of(logit));
    }
    let (mut value, mut log_det) = ([F::zero(); PANEL], [F::zero(); PANEL]);
    for (value, input) in value.iter_mut().zip(inputs) {
        *value = F::of(input);
    }
    let mut unused = logits.clone();
    (kernels.spline)(SplineJob {
        shape,
        rows: 16,
        logits: &mut logits,
        value: &mut value,
        log_det: &mut log_det,
    });
    for i in 0..6 {
        close(value[i].f64(), outputs[i], tolerance);
        close(log_det[i].f64(), log_dets[i], tolerance);
    }
    log_det.fill(F::zero());
    (kernels.spline_inverse)(SplineJob {
        shape,
        rows: 16,
        logits: &mut unused,
        value: &mut value,
        log_det: &mut log_det,
    });
    for i in 0..6 {
        close(value[i].f64(), inputs[i], tolerance);
        close(log_det[i].f64(), log_dets[i], tolerance);
    }
}

#[test]
fn the_spline_alone() {
    spline_alone(Kernels::<f64>::scalar(), 1e-6);
    for kernels in Kernels::<f32>::available() {
        spline_alone(kernels, 1e-4);
    }
}

fn whole_flow<F: Real>(kernels: &'static Kernels<F>, tolerance: f64) {
    for case in vectors::cases() {
        let (flow, vectors::Case { theta, x, log_q }) = (case.flow(), case);
        let params: Vec<F> = (0..flow.params_len()).map(|n| F::of(vectors::param(n))).collect();
        let mut tape = Tape::with_kernels(&flow, 1, kernels);
        tape.context(x.iter().map(|&v| F::of(v)));
        tape.pair(theta.iter().map(|&v| F::of(v)));
        flow.forward(&params, &mut tape);
        close(tape.log_q()[0].f64(), log_q, tolerance);
        let z = match (theta.len(), theta[0] > 0.0) {
            (2, true) => [0.16758182, -0.19257346],
            (2, false) => [-0.01474679, -0.19394002],
            _ => continue,
        };
        close(tape.output(0, 0).f64(), z[0], tolerance);
        close(tape.output(0, 1).f64(), z[1], tolerance);
    }
}

#[test]
fn the_whole_flow() {
    whole_flow(Kernels::<f64>::scalar(), 1e-6);
    for kernels in Kernels::<f32>::available() {
        whole_flow(kernels, 1e-4);
    }
}

#[test]
fn parameter_counts() {
    for (theta_dim, x_dim, count) in
        [(2, 2, 97_480), (4, 9, 118_224), (3, 5, 107_244), (8, 7, 140_704)]
    {
        let flow = SplineFlow::new(FlowConfig::new(theta_dim, x_dim)).unwrap();
        assert_eq!(flow.params_len(), count);
        assert_eq!(flow.tensors().last().unwrap().range.end, count);
    }
}
