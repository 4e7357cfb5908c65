//! exp, log and what is built from them, and the optimiser's sweep.

use super::Simd;
use crate::network::kernel::jobs::{LEAST_M, LEAST_V};
use crate::network::kernel::{AdamJob, PANEL, SiluJob, check_panel};

/// ln 2 in two parts, the first short enough that n times it is exact.
const LN_2_HIGH: f32 = 0.693_359_4;
const LN_2_LOW: f32 = -2.121_944_4e-4;

/// eˣ to 2 ulp (Cephes `expf`): x = n ln 2 + r, |r| ≤ ½ ln 2. Kept above e⁻⁸⁷ and below e⁸⁸, so that
/// every result is a normal number.
#[inline(always)]
pub(super) fn exp<S: Simd>(s: S, x: S::V) -> S::V {
    let c = |value| s.splat(value);
    let x = s.min(s.max(x, c(-87.0)), c(88.0));
    let n = s.round(s.mul(x, c(std::f32::consts::LOG2_E)));
    let r = s.fma(n, c(-LN_2_HIGH), x);
    let r = s.fma(n, c(-LN_2_LOW), r);
    let mut p = c(1.987_569_1e-4);
    p = s.fma(p, r, c(1.398_199_9e-3));
    p = s.fma(p, r, c(8.333_452e-3));
    p = s.fma(p, r, c(4.166_579_6e-2));
    p = s.fma(p, r, c(1.666_666_5e-1));
    p = s.fma(p, r, c(0.5));
    s.scale(s.add(s.fma(s.mul(p, r), r, r), c(1.0)), n)
}

/// ln x to 2 ulp for normal positive x (Cephes `logf`).
#[inline(always)]
pub(super) fn ln<S: Simd>(s: S, x: S::V) -> S::V {
    let c = |value| s.splat(value);
    let (m, e) = s.split(x);
    let large = s.gt(m, c(std::f32::consts::SQRT_2));
    let m = s.select(large, s.mul(m, c(0.5)), m);
    let e = s.select(large, s.add(e, c(1.0)), e);
    let t = s.sub(m, c(1.0));
    let mut p = c(7.037_683_6e-2);
    p = s.fma(p, t, c(-1.151_461e-1));
    p = s.fma(p, t, c(1.167_699_9e-1));
    p = s.fma(p, t, c(-1.242_014_1e-1));
    p = s.fma(p, t, c(1.424_932_3e-1));
    p = s.fma(p, t, c(-1.666_805_8e-1));
    p = s.fma(p, t, c(2.000_071_5e-1));
    p = s.fma(p, t, c(-2.499_999_4e-1));
    p = s.fma(p, t, c(3.333_333e-1));
    let square = s.mul(t, t);
    let mut y = s.mul(s.mul(p, t), square);
    y = s.fma(e, c(LN_2_LOW), y);
    y = s.fma(square, c(-0.5), y);
    s.fma(e, c(LN_2_HIGH), s.add(t, y))
}

#[inline(always)]
pub(super) fn sigmoid<S: Simd>(s: S, x: S::V) -> S::V {
    let one = s.splat(1.0);
    s.div(one, s.add(one, exp(s, s.sub(s.splat(0.0), x))))
}

/// ln(1 + eˣ) without overflow.
#[inline(always)]
pub(super) fn softplus<S: Simd>(s: S, x: S::V) -> S::V {
    let (zero, one) = (s.splat(0.0), s.splat(1.0));
    let e = exp(s, s.sub(zero, s.abs(x)));
    s.add(s.max(x, zero), ln(s, s.add(one, e)))
}

#[inline(always)]
pub(super) fn sigmoid_in_place<S: Simd>(s: S, panel: &mut [f32], rows: usize) {
    check_panel(panel, 0, rows);
    for feature in panel.chunks_exact_mut(PANEL) {
        for chunk in feature[..rows].chunks_exact_mut(S::LANES) {
            // SAFETY: a chunk has LANES numbers.
            unsafe { s.store(chunk.as_mut_ptr(), sigmoid(s, s.load(chunk.as_ptr()))) }
        }
    }
}

#[inline(always)]
pub(super) fn silu<S: Simd>(s: S, job: SiluJob<'_, f32>) {
    job.check();
    let SiluJob { rows, input, value, slope, curvature } = job;
    let (one, two) = (s.splat(1.0), s.splat(2.0));
    let start = |panel: Option<&mut [f32]>| panel.map(|panel| panel.as_mut_ptr());
    let (value, slope, curvature) = (value.as_mut_ptr(), start(slope), start(curvature));
    for feature in (0..input.len() / PANEL * PANEL).step_by(PANEL) {
        for at in (feature..feature + rows).step_by(S::LANES) {
            // SAFETY: every panel has the input's features, checked above.
            unsafe {
                let a = s.load(input.as_ptr().add(at));
                let sigma = sigmoid(s, a);
                let rest = s.sub(one, sigma);
                s.store(value.add(at), s.mul(a, sigma));
                if let Some(slope) = slope {
                    s.store(slope.add(at), s.mul(sigma, s.fma(a, rest, one)));
                }
                if let Some(curvature) = curvature {
                    let bend = s.fma(a, s.sub(rest, sigma), two);
                    s.store(curvature.add(at), s.mul(s.mul(sigma, rest), bend));
                }
            }
        }
    }
}

/// Plain loops: the compiler vectorises them for the instruction set of the caller.
#[inline(always)]
pub(super) fn adam<S: Simd>(_: S, job: AdamJob<'_, f32>) {
    let AdamJob { weights, gradient, m, v, step } = job;
    let n = weights.len();
    let (gradient, m, v) = (&gradient[..n], &mut m[..n], &mut v[..n]);
    let single = |value: f64| value as f32;
    let ([beta1, rest1], [beta2, rest2]) = (step.beta1.map(single), step.beta2.map(single));
    let [scale, decay, shrink] = [step.gradient_scale, step.coupled_decay, step.shrink].map(single);
    let [rate, v_scale, epsilon] = [step.rate, step.v_scale, step.epsilon].map(single);
    let settled = |value: f32, least: f64| if value.abs() < single(least) { 0.0 } else { value };
    for i in 0..n {
        let g = settled(gradient[i] * scale + decay * weights[i], LEAST_M);
        m[i] = settled(beta1 * m[i] + rest1 * g, LEAST_M);
        v[i] = settled(beta2 * v[i] + rest2 * g * g, LEAST_V);
        weights[i] = shrink * weights[i] - rate * m[i] / ((v[i] * v_scale).sqrt() + epsilon);
    }
}

/// Plain loops, as above.
#[inline(always)]
pub(super) fn add_to<S: Simd>(_: S, sums: &mut [f64], from: &[f32]) {
    sums.iter_mut().zip(from).for_each(|(sum, &v)| *sum += f64::from(v));
}
