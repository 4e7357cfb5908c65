//! The rational-quadratic spline on vectors of rows; [`crate::kernel::scalar`] derives the formulas.
//!
//! Bins are found by compare and blend, without gathers; the derivative logits of the bin are
//! picked *before* the softplus, which is then taken of two numbers instead of K − 1.

use super::Simd;
use super::math::{exp, ln, sigmoid, softplus};
use crate::kernel::{
    MIN_BIN, MIN_DERIVATIVE, PANEL, SplineGradientJob, SplineJob, SplineShape, check_panel,
};

/// The constants of a shape, in every lane.
#[derive(Clone, Copy)]
struct Shape<S: Simd> {
    bins: usize,
    bound: S::V,
    /// extent of a bin = floor + slope · its softmax
    floor: S::V,
    slope: S::V,
    logit_scale: S::V,
}

impl<S: Simd> Shape<S> {
    #[inline(always)]
    fn new(s: S, shape: SplineShape) -> Self {
        let interval = 2.0 * shape.bound;
        Self {
            bins: shape.bins,
            bound: s.splat(shape.bound as f32),
            floor: s.splat((interval * MIN_BIN) as f32),
            slope: s.splat((interval * (1.0 - MIN_BIN * shape.bins as f64)) as f32),
            logit_scale: s.splat(shape.logit_scale as f32),
        }
    }

    #[inline(always)]
    fn extent(&self, s: S, softmax: S::V) -> S::V {
        s.fma(softmax, self.slope, self.floor)
    }

    #[inline(always)]
    fn inside(&self, s: S, x: S::V) -> S::M {
        s.gt(self.bound, s.abs(x))
    }
}

#[inline(always)]
pub(super) fn forward<S: Simd>(s: S, job: SplineJob<'_, f32>) {
    each_vector::<S, false>(s, job);
}

#[inline(always)]
pub(super) fn inverse<S: Simd>(s: S, job: SplineJob<'_, f32>) {
    each_vector::<S, true>(s, job);
}

#[inline(always)]
fn each_vector<S: Simd, const INVERSE: bool>(s: S, job: SplineJob<'_, f32>) {
    let SplineJob { shape, rows, logits, value, log_det } = job;
    shape.check(logits, rows);
    check_panel(value, 1, rows);
    check_panel(log_det, 1, rows);
    let bins = shape.bins;
    let shape = Shape::new(s, shape);
    for row in (0..rows).step_by(S::LANES) {
        // SAFETY: the panels were checked; `row` starts whole lanes.
        unsafe {
            let logits = logits.as_mut_ptr().add(row);
            let (value, log_det) = (value.as_mut_ptr().add(row), log_det.as_mut_ptr().add(row));
            softmax(s, shape, logits);
            softmax(s, shape, logits.add(bins * PANEL));
            let x = s.load(value);
            let bin = Bin::find::<INVERSE>(s, shape, logits, x);
            let (mapped, slope) = if INVERSE { bin.inverse(s, x) } else { bin.forward(s, x) };
            let inside = shape.inside(s, x);
            let l = s.select(inside, ln(s, slope), s.splat(0.0));
            s.store(value, s.select(inside, mapped, x));
            s.store(log_det, s.add(s.load(log_det), l));
        }
    }
}

/// Replaces K logits by the softmax of their scaled values.
#[inline(always)]
unsafe fn softmax<S: Simd>(s: S, shape: Shape<S>, logits: *mut f32) {
    // SAFETY: the caller checked K features.
    unsafe {
        let mut top = s.load(logits);
        for j in 1..shape.bins {
            top = s.max(top, s.load(logits.add(j * PANEL)));
        }
        let mut sum = s.splat(0.0);
        for j in 0..shape.bins {
            let at = logits.add(j * PANEL);
            let e = exp(s, s.mul(s.sub(s.load(at), top), shape.logit_scale));
            s.store(at, e);
            sum = s.add(sum, e);
        }
        let share = s.div(s.splat(1.0), sum);
        for j in 0..shape.bins {
            let at = logits.add(j * PANEL);
            s.store(at, s.mul(s.load(at), share));
        }
    }
}

/// The bin of each lane: its number, left knot, extent and the logits of its derivatives.
struct Bin<S: Simd> {
    index: S::V,
    x: S::V,
    w: S::V,
    y: S::V,
    h: S::V,
    logit0: S::V,
    logit1: S::V,
    d0: S::V,
    d1: S::V,
}

/// n, D and E at ξ.
struct Point<S: Simd> {
    n: S::V,
    d: S::V,
    e: S::V,
}

impl<S: Simd> Bin<S> {
    #[inline(always)]
    unsafe fn find<const BY_HEIGHT: bool>(
        s: S,
        shape: Shape<S>,
        saved: *const f32,
        value: S::V,
    ) -> Self {
        let k = shape.bins;
        // SAFETY: the caller checked 3 K − 1 features.
        unsafe {
            let share = |j: usize| s.load(saved.add(j * PANEL));
            let start = s.sub(s.splat(0.0), shape.bound);
            let mut bin = Self {
                index: s.splat(0.0),
                x: start,
                w: shape.extent(s, share(0)),
                y: start,
                h: shape.extent(s, share(k)),
                logit0: s.splat(0.0),
                logit1: share(2 * k),
                d0: s.splat(1.0),
                d1: s.splat(1.0),
            };
            let (mut x, mut y, mut w, mut h) = (bin.x, bin.y, bin.w, bin.h);
            for j in 1..k {
                x = s.add(x, w);
                y = s.add(y, h);
                w = shape.extent(s, share(j));
                h = shape.extent(s, share(k + j));
                // knot > value: the bin is an earlier one.
                let before = s.gt(if BY_HEIGHT { y } else { x }, value);
                let take = |old: S::V, new: S::V| s.select(before, old, new);
                bin.index = take(bin.index, s.splat(j as f32));
                bin.x = take(bin.x, x);
                bin.w = take(bin.w, w);
                bin.y = take(bin.y, y);
                bin.h = take(bin.h, h);
                bin.logit0 = take(bin.logit0, share(2 * k + j - 1));
                if j + 1 < k {
                    bin.logit1 = take(bin.logit1, share(2 * k + j));
                }
            }
            bin.derivatives(s, k);
            bin
        }
    }

    /// δ at both ends: 1 at the outermost knots.
    #[inline(always)]
    fn derivatives(&mut self, s: S, bins: usize) {
        let (one, floor) = (s.splat(1.0), s.splat(MIN_DERIVATIVE as f32));
        let not_first = s.gt(self.index, s.splat(0.5));
        let not_last = s.gt(s.splat(bins as f32 - 1.5), self.index);
        self.d0 = s.select(not_first, s.add(floor, softplus(s, self.logit0)), one);
        self.d1 = s.select(not_last, s.add(floor, softplus(s, self.logit1)), one);
    }

    #[inline(always)]
    fn clamp(s: S, xi: S::V) -> S::V {
        s.min(s.max(xi, s.splat(0.0)), s.splat(1.0))
    }

    #[inline(always)]
    fn at(&self, s: S, slope: S::V, xi: S::V) -> Point<S> {
        let (one, two) = (s.splat(1.0), s.splat(2.0));
        let rest = s.sub(one, xi);
        let eta = s.mul(xi, rest);
        let straight = s.sub(one, s.mul(two, eta));
        let square = s.mul(xi, xi);
        Point {
            n: s.fma(slope, square, s.mul(self.d0, eta)),
            d: s.fma(slope, straight, s.mul(s.add(self.d0, self.d1), eta)),
            e: s.fma(
                self.d1,
                square,
                s.fma(s.mul(two, slope), eta, s.mul(self.d0, s.mul(rest, rest))),
            ),
        }
    }

    /// The derivative s² E / D².
    #[inline(always)]
    fn derivative(s: S, slope: S::V, point: &Point<S>) -> S::V {
        let ratio = s.div(slope, point.d);
        s.mul(s.mul(ratio, ratio), point.e)
    }

    #[inline(always)]
    fn forward(&self, s: S, x: S::V) -> (S::V, S::V) {
        let slope = s.div(self.h, self.w);
        let xi = Self::clamp(s, s.div(s.sub(x, self.x), self.w));
        let point = self.at(s, slope, xi);
        let y = s.fma(self.h, s.div(point.n, point.d), self.y);
        (y, Self::derivative(s, slope, &point))
    }

    #[inline(always)]
    fn inverse(&self, s: S, y: S::V) -> (S::V, S::V) {
        let (zero, one, two) = (s.splat(0.0), s.splat(1.0), s.splat(2.0));
        let slope = s.div(self.h, self.w);
        let twice = s.mul(two, slope);
        let t = Self::clamp(s, s.div(s.sub(y, self.y), self.h));
        let bend = s.sub(s.add(self.d0, self.d1), twice);
        let b = s.sub(self.d0, s.mul(t, bend));
        let off = s.sub(b, s.mul(twice, t));
        let spread = s.mul(s.mul(twice, twice), s.mul(t, s.sub(one, t)));
        let root = s.sqrt(s.fma(off, off, spread));
        let rising = s.div(s.sub(root, b), s.mul(two, s.sub(slope, b)));
        let falling = s.div(s.mul(twice, t), s.max(s.add(b, root), s.splat(f32::MIN_POSITIVE)));
        let xi = Self::clamp(s, s.select(s.gt(zero, b), rising, falling));
        (s.fma(self.w, xi, self.x), Self::derivative(s, slope, &self.at(s, slope, xi)))
    }
}

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
