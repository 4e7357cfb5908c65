//! The rational-quadratic spline on vectors of rows; [`crate::network::kernel::scalar`] derives the formulas.
//!
//! Bins are found by compare and blend, without gathers; the derivative logits of the bin are
//! picked *before* the softplus, which is then taken of two numbers instead of K − 1.

use super::Simd;
use super::math::{exp, ln, softplus};
use crate::network::kernel::{MIN_BIN, MIN_DERIVATIVE, PANEL, SplineJob, SplineShape, check_panel};

/// The constants of a shape, in every lane.
#[derive(Clone, Copy)]
pub(super) struct Shape<S: Simd> {
    pub bins: usize,
    pub bound: S::V,
    /// extent of a bin = floor + slope · its softmax
    pub floor: S::V,
    pub slope: S::V,
    pub logit_scale: S::V,
}

impl<S: Simd> Shape<S> {
    #[inline(always)]
    pub(super) fn new(s: S, shape: SplineShape) -> Self {
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
    pub(super) fn inside(&self, s: S, x: S::V) -> S::M {
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
pub(super) struct Bin<S: Simd> {
    pub index: S::V,
    pub x: S::V,
    pub w: S::V,
    pub y: S::V,
    pub h: S::V,
    pub logit0: S::V,
    pub logit1: S::V,
    pub d0: S::V,
    pub d1: S::V,
}

/// n, D and E at ξ.
pub(super) struct Point<S: Simd> {
    pub n: S::V,
    pub d: S::V,
    pub e: S::V,
}

impl<S: Simd> Bin<S> {
    #[inline(always)]
    pub(super) unsafe fn find<const BY_HEIGHT: bool>(
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
    pub(super) fn clamp(s: S, xi: S::V) -> S::V {
        s.min(s.max(xi, s.splat(0.0)), s.splat(1.0))
    }

    #[inline(always)]
    pub(super) fn at(&self, s: S, slope: S::V, xi: S::V) -> Point<S> {
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
