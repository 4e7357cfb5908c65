//! The gradient of the rational-quadratic spline on vectors of rows.

use super::Simd;
use super::math::sigmoid;
use super::spline::{Bin, Shape};
use crate::network::kernel::{PANEL, SplineGradientJob, check_panel};

#[inline(always)]
pub(super) fn gradient<S: Simd>(s: S, job: SplineGradientJob<'_, f32>) {
    let SplineGradientJob { shape, rows, logits, input, d_value, d_log_det } = job;
    shape.check(logits, rows);
    check_panel(input, 1, rows);
    check_panel(d_value, 1, rows);
    check_panel(d_log_det, 1, rows);
    let shape = Shape::new(s, shape);
    for row in (0..rows).step_by(S::LANES) {
        // SAFETY: the panels were checked; `row` starts whole lanes.
        unsafe {
            let saved = logits.as_mut_ptr().add(row);
            let x = s.load(input.as_ptr().add(row));
            let d_value = d_value.as_mut_ptr().add(row);
            let d_l = s.load(d_log_det.as_ptr().add(row));
            let d_x = vector_gradient(s, shape, saved, x, s.load(d_value), d_l);
            s.store(d_value, d_x);
        }
    }
}

#[inline(always)]
unsafe fn vector_gradient<S: Simd>(
    s: S,
    shape: Shape<S>,
    saved: *mut f32,
    x: S::V,
    d_y: S::V,
    d_l: S::V,
) -> S::V {
    let (zero, one, two) = (s.splat(0.0), s.splat(1.0), s.splat(2.0));
    // SAFETY: the caller checked 3 K − 1 features.
    let bin = unsafe { Bin::find::<false>(s, shape, saved, x) };
    let per_width = s.div(one, bin.w);
    let slope = s.mul(bin.h, per_width);
    let xi = Bin::clamp(s, s.mul(s.sub(x, bin.x), per_width));
    let point = bin.at(s, slope, xi);
    let rest = s.sub(one, xi);
    let (eta, tilt, square) = (s.mul(xi, rest), s.sub(rest, xi), s.mul(xi, xi));

    let per_d = s.div(one, point.d);
    let d_n = s.mul(d_y, s.mul(bin.h, per_d));
    let d_d = s.mul(s.sub(zero, s.fma(d_n, point.n, s.mul(two, d_l))), per_d);
    let d_e = s.div(d_l, point.e);
    let twice_d_e = s.mul(two, d_e);
    let straight = s.sub(one, s.mul(two, eta));
    let d_s = s.fma(d_n, square, s.div(s.mul(two, d_l), slope));
    let d_s = s.fma(d_d, straight, s.fma(twice_d_e, eta, d_s));
    let d_d0 = s.fma(s.add(d_n, d_d), eta, s.mul(d_e, s.mul(rest, rest)));
    let d_d1 = s.fma(d_d, eta, s.mul(d_e, square));
    let bend = s.sub(s.add(bin.d0, bin.d1), s.mul(two, slope));
    let through_n = s.fma(s.mul(two, slope), xi, s.mul(bin.d0, tilt));
    let through_e = s.fma(bin.d1, xi, s.sub(s.mul(slope, tilt), s.mul(bin.d0, rest)));
    let d_xi = s.fma(d_n, through_n, s.fma(d_d, s.mul(bend, tilt), s.mul(twice_d_e, through_e)));

    let d_x = s.mul(d_xi, per_width);
    let d_w = s.mul(s.sub(zero, s.fma(d_s, slope, s.mul(d_xi, xi))), per_width);
    let d_h = s.fma(d_y, s.mul(point.n, per_d), s.mul(d_s, per_width));

    // Outside the bound the spline is the identity: no gradient reaches its logits.
    let inside = shape.inside(s, x);
    let only_inside = |v: S::V| s.select(inside, v, zero);
    // SAFETY: as above.
    unsafe {
        let heights = saved.add(shape.bins * PANEL);
        let derivatives = saved.add(2 * shape.bins * PANEL);
        let minus_d_x = only_inside(s.sub(zero, d_x));
        extents_gradient(s, shape, saved, bin.index, minus_d_x, only_inside(d_w));
        extents_gradient(s, shape, heights, bin.index, only_inside(d_y), only_inside(d_h));
        let d_logit0 = only_inside(s.mul(d_d0, sigmoid(s, bin.logit0)));
        let d_logit1 = only_inside(s.mul(d_d1, sigmoid(s, bin.logit1)));
        derivative_logits_gradient(s, shape.bins, derivatives, bin.index, d_logit0, d_logit1);
    }
    s.select(inside, d_x, d_y)
}

/// Bins left of the lane's bin move its knot, the bin itself its extent.
#[inline(always)]
unsafe fn extents_gradient<S: Simd>(
    s: S,
    shape: Shape<S>,
    softmax: *mut f32,
    bin: S::V,
    d_knot: S::V,
    d_extent: S::V,
) {
    let d_share = |j: usize| {
        let left = s.gt(bin, s.splat(j as f32 + 0.5));
        let here = s.gt(bin, s.splat(j as f32 - 0.5));
        s.select(left, d_knot, s.select(here, d_extent, s.splat(0.0)))
    };
    let per_share = s.mul(shape.slope, shape.logit_scale);
    // SAFETY: the caller checked K features.
    unsafe {
        let mut mean = s.splat(0.0);
        for j in 0..shape.bins {
            mean = s.fma(s.load(softmax.add(j * PANEL)), d_share(j), mean);
        }
        for j in 0..shape.bins {
            let at = softmax.add(j * PANEL);
            let change = s.mul(per_share, s.sub(d_share(j), mean));
            s.store(at, s.mul(s.load(at), change));
        }
    }
}

/// Only the two knots of the bin receive a gradient; the outermost ones are constants.
#[inline(always)]
unsafe fn derivative_logits_gradient<S: Simd>(
    s: S,
    bins: usize,
    logits: *mut f32,
    bin: S::V,
    d_logit0: S::V,
    d_logit1: S::V,
) {
    for knot in 1..bins {
        let is = |k: usize| {
            let (low, high) = (s.splat(k as f32 - 0.5), s.splat(k as f32 + 0.5));
            s.and(s.gt(bin, low), s.gt(high, bin))
        };
        let at_right = s.select(is(knot - 1), d_logit1, s.splat(0.0));
        // SAFETY: the caller checked K − 1 features.
        unsafe { s.store(logits.add((knot - 1) * PANEL), s.select(is(knot), d_logit0, at_right)) };
    }
}
