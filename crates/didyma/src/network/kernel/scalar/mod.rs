//! The definition of every kernel, in plain loops over one row at a time.

mod spline;

use super::jobs::{LEAST_M, LEAST_V};
use super::*;

pub(super) const fn table<F: Real>() -> Kernels<F> {
    Kernels {
        name: "scalar",
        affine,
        affine_input_gradient,
        affine_weight_gradient,
        expand,
        collect,
        gate,
        gate_gradient,
        sigmoid,
        silu,
        spline: spline::forward,
        spline_inverse: spline::inverse,
        spline_gradient: spline::gradient,
        adam,
        add_to,
    }
}

fn affine<F: Real>(job: AffineJob<'_, F>) {
    let AffineJob { weights: w, mut mode, rows, input, output } = job;
    w.check();
    for (o, out) in output.chunks_exact_mut(PANEL).take(w.outputs).enumerate() {
        let out = &mut out[..rows];
        if let Mode::Plain(bias) | Mode::Relu(bias) = mode {
            out.fill(bias[o]);
        }
        for (k, column) in input.chunks_exact(PANEL).take(w.inputs).enumerate() {
            let weight = w.data[o * w.stride + k];
            out.iter_mut().zip(column).for_each(|(y, &x)| *y += weight * x);
        }
        match &mut mode {
            Mode::Plain(_) => {}
            Mode::Relu(_) => out.iter_mut().for_each(|y| *y = y.max(F::zero())),
            Mode::Add(rectified) => {
                let rectified = &mut rectified[o * PANEL..];
                rectified.iter_mut().zip(&*out).for_each(|(r, y)| *r = y.max(F::zero()));
            }
        }
    }
}

fn affine_input_gradient<F: Real>(job: InputGradientJob<'_, F>) {
    let InputGradientJob { weights: w, mask, accumulate, rows, d_output, d_input } = job;
    w.check();
    let mut sum = [F::zero(); PANEL];
    for (k, d_in) in d_input.chunks_exact_mut(PANEL).take(w.inputs).enumerate() {
        sum.fill(F::zero());
        for (o, d_out) in d_output.chunks_exact(PANEL).take(w.outputs).enumerate() {
            let weight = w.data[o * w.stride + k];
            sum.iter_mut().zip(&d_out[..rows]).for_each(|(s, &d)| *s += weight * d);
        }
        for r in 0..rows {
            let passes = mask.is_none_or(|mask| mask[k * PANEL + r] > F::zero());
            let before = if accumulate { d_in[r] } else { F::zero() };
            d_in[r] = if passes { before + sum[r] } else { before };
        }
    }
}

fn affine_weight_gradient<F: Real>(job: WeightGradientJob<'_, F>) {
    let WeightGradientJob { outputs, inputs, rows, d_output, input, d_weights, .. } = job;
    let put = |to: &mut F, sum: F| *to = if job.accumulate { *to + sum } else { sum };
    let over_rows = |sum: &dyn Fn(usize, usize) -> F| -> F {
        (0..rows).map(|row| sum(row / PANEL, row % PANEL)).sum()
    };
    let d = |panel: usize, o: usize, row: usize| d_output[(panel * outputs + o) * PANEL + row];
    let x = |panel: usize, k: usize, row: usize| input[(panel * inputs + k) * PANEL + row];
    for o in 0..outputs {
        for k in 0..inputs {
            let sum = over_rows(&|panel, row| d(panel, o, row) * x(panel, k, row));
            put(&mut d_weights[o * job.stride + k], sum);
        }
    }
    for (o, d_bias) in job.d_bias.into_iter().flatten().take(outputs).enumerate() {
        put(d_bias, over_rows(&|panel, row| d(panel, o, row)));
    }
}

fn expand<F: Real>(rows: &ContextRows, by_context: &[F], by_row: &mut [F]) {
    for f in 0..rows.features {
        for (r, &c) in rows.context.iter().enumerate() {
            by_row[f * PANEL + r] = by_context[f * PANEL + c as usize];
        }
    }
}

fn collect<F: Real>(rows: &ContextRows, by_row: &[F], by_context: &mut [F]) {
    for f in 0..rows.features {
        for (r, &c) in rows.context.iter().enumerate() {
            by_context[f * PANEL + c as usize] += by_row[f * PANEL + r];
        }
    }
}

fn gate<F: Real>(job: GateJob<'_, F>) {
    for f in 0..job.rows.features {
        for (r, &c) in job.rows.context.iter().enumerate() {
            let i = f * PANEL + r;
            let hidden = job.hidden[i] + job.value[i] * job.gate[f * PANEL + c as usize];
            job.hidden[i] = hidden;
            job.output[i] = if job.relu { hidden.max(F::zero()) } else { hidden };
        }
    }
}

fn gate_gradient<F: Real>(job: GateGradientJob<'_, F>) {
    for f in 0..job.rows.features {
        for (r, &c) in job.rows.context.iter().enumerate() {
            let (i, g) = (f * PANEL + r, f * PANEL + c as usize);
            job.d_value[i] = job.d_hidden[i] * job.gate[g];
            job.d_gate[g] += job.d_hidden[i] * job.value[i];
        }
    }
}

fn sigmoid<F: Real>(panel: &mut [F], rows: usize) {
    for feature in panel.chunks_exact_mut(PANEL) {
        feature[..rows].iter_mut().for_each(|v| *v = v.sigmoid());
    }
}

fn silu<F: Real>(mut job: SiluJob<'_, F>) {
    job.check();
    let (one, two) = (F::one(), F::of(2.0));
    for f in 0..job.input.len() / PANEL {
        for i in f * PANEL..f * PANEL + job.rows {
            let a = job.input[i];
            let s = a.sigmoid();
            job.value[i] = a * s;
            if let Some(slope) = &mut job.slope {
                slope[i] = s * (one + a * (one - s));
            }
            if let Some(curvature) = &mut job.curvature {
                curvature[i] = s * (one - s) * (two + a * (one - two * s));
            }
        }
    }
}

fn settled<F: Real>(value: F, least: f64) -> F {
    if value.abs() < F::of(least) { F::zero() } else { value }
}

fn adam<F: Real>(job: AdamJob<'_, F>) {
    let AdamJob { weights, gradient, m, v, step } = job;
    let ([beta1, rest1], [beta2, rest2]) = (step.beta1.map(F::of), step.beta2.map(F::of));
    let [scale, decay, shrink] = [step.gradient_scale, step.coupled_decay, step.shrink].map(F::of);
    let [rate, v_scale, epsilon] = [step.rate, step.v_scale, step.epsilon].map(F::of);
    for (((w, &g), m), v) in weights.iter_mut().zip(gradient).zip(m).zip(v) {
        let g = settled(g * scale + decay * *w, LEAST_M);
        *m = settled(beta1 * *m + rest1 * g, LEAST_M);
        *v = settled(beta2 * *v + rest2 * g * g, LEAST_V);
        *w = shrink * *w - rate * *m / ((*v * v_scale).sqrt() + epsilon);
    }
}

fn add_to<F: Real>(sums: &mut [f64], from: &[F]) {
    sums.iter_mut().zip(from).for_each(|(sum, &v)| *sum += v.f64());
}
