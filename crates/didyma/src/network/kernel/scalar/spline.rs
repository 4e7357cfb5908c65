//! The monotone rational-quadratic spline (Durkan et al. 2019, eqs. 4–8) of one number.
//!
//! K bins of width w and height h cover \[−B, B\]; δ is the derivative at the knots, 1 at both ends.
//! In bin k, with ξ = (x − x_k) / w, s = h / w and the shorthand η = ξ (1 − ξ):
//!
//! ```text
//! y      = y_k + h (s ξ² + δ_k η) / D          D = s (1 − 2η) + (δ_k + δ_{k+1}) η
//! dy/dx  = s² E / D²                           E = δ_{k+1} ξ² + 2 s η + δ_k (1 − ξ)²
//! ```
//!
//! Both D and E are sums of positive terms: nothing cancels, however small a bin. Outside
//! \[−B, B\] the map is the identity.

use crate::network::kernel::{
    MIN_BIN, MIN_DERIVATIVE, PANEL, Real, SplineGradientJob, SplineJob, SplineShape,
};

pub(super) fn forward<F: Real>(job: SplineJob<'_, F>) {
    each_row(job, Side::Width, |bin, x| {
        let point = bin.at((x - bin.x) / bin.w);
        (bin.y + bin.h * point.n / point.d, point.log_derivative(bin))
    });
}

pub(super) fn inverse<F: Real>(job: SplineJob<'_, F>) {
    each_row(job, Side::Height, |bin, y| {
        let xi = bin.solve(y - bin.y);
        (bin.x + bin.w * xi, bin.at(xi).log_derivative(bin))
    });
}

/// The axis on which a number is looked up.
#[derive(Clone, Copy, PartialEq)]
enum Side {
    Width,
    Height,
}

fn each_row<F: Real>(job: SplineJob<'_, F>, side: Side, map: impl Fn(&Bin<F>, F) -> (F, F)) {
    let SplineJob { shape, rows, logits, value, log_det } = job;
    shape.check(logits, rows);
    let bound = F::of(shape.bound);
    for r in 0..rows {
        softmax(&mut logits[r..], shape);
        softmax(&mut logits[shape.bins * PANEL + r..], shape);
        if value[r] > -bound && value[r] < bound {
            let bin = Bin::find(&logits[r..], shape, value[r], side);
            let (mapped, log_derivative) = map(&bin, value[r]);
            value[r] = mapped;
            log_det[r] += log_derivative;
        }
    }
}

/// Replaces K logits, a panel row apart, by the softmax of their scaled values.
fn softmax<F: Real>(logits: &mut [F], shape: SplineShape) {
    let (k, scale) = (shape.bins, F::of(shape.logit_scale));
    let top = (0..k).map(|j| logits[j * PANEL]).fold(F::neg_infinity(), F::max);
    let mut sum = F::zero();
    for j in 0..k {
        let e = ((logits[j * PANEL] - top) * scale).exp();
        logits[j * PANEL] = e;
        sum += e;
    }
    for j in 0..k {
        logits[j * PANEL] /= sum;
    }
}

/// The bin that a number falls into: left knot, extent, derivatives at both ends.
struct Bin<F> {
    index: usize,
    x: F,
    w: F,
    y: F,
    h: F,
    d0: F,
    d1: F,
}

/// A bin's numerator n = s ξ² + δ₀ η, and D and E of the module doc, at ξ.
struct Point<F> {
    n: F,
    d: F,
    e: F,
}

impl<F: Real> Bin<F> {
    /// `saved` holds the softmax of widths and heights, then the derivative logits, of one row.
    fn find(saved: &[F], shape: SplineShape, value: F, side: Side) -> Self {
        let k = shape.bins;
        let extent = |p: F| {
            F::of(2.0 * shape.bound) * (F::of(MIN_BIN) + F::of(1.0 - MIN_BIN * k as f64) * p)
        };
        let start = -F::of(shape.bound);
        let (mut index, mut x, mut y) = (0, start, start);
        let (mut w, mut h) = (extent(saved[0]), extent(saved[k * PANEL]));
        let (mut next_x, mut next_y) = (x, y);
        for j in 1..k {
            next_x += extent(saved[(j - 1) * PANEL]);
            next_y += extent(saved[(k + j - 1) * PANEL]);
            let knot = if side == Side::Height { next_y } else { next_x };
            if value >= knot {
                (index, x, y) = (j, next_x, next_y);
                (w, h) = (extent(saved[j * PANEL]), extent(saved[(k + j) * PANEL]));
            }
        }
        let derivative = |knot: usize| match knot {
            0 => F::one(),
            _ if knot == k => F::one(),
            _ => F::of(MIN_DERIVATIVE) + saved[(2 * k + knot - 1) * PANEL].softplus(),
        };
        Self { index, x, w, y, h, d0: derivative(index), d1: derivative(index + 1) }
    }

    fn at(&self, xi: F) -> Point<F> {
        let (one, two, s) = (F::one(), F::of(2.0), self.h / self.w);
        let xi = xi.max(F::zero()).min(one);
        let eta = xi * (one - xi);
        Point {
            n: s * xi * xi + self.d0 * eta,
            d: s * (one - two * eta) + (self.d0 + self.d1) * eta,
            e: self.d1 * xi * xi + two * s * eta + self.d0 * (one - xi) * (one - xi),
        }
    }

    /// The ξ at which the spline has risen by `rise`, the share t of h, above its left knot.
    ///
    /// It is the root in \[0, 1\] of (s − b) ξ² + b ξ − s t with b = δ₀ − t (δ₀ + δ₁ − 2s). The
    /// discriminant b² + 4 (s − b) s t equals (b − 2 s t)² + 4 s² t (1 − t), a sum of squares. Written
    /// as 2 s t / (b + √…) the root does not cancel where b ≥ 0; where b < 0, (√… − b) / 2 (s − b)
    /// does not. So it is right to rounding, however flat or steep the bin.
    fn solve(&self, rise: F) -> F {
        let (one, two, s) = (F::one(), F::of(2.0), self.h / self.w);
        let t = rise.max(F::zero()).min(self.h) / self.h;
        let b = self.d0 - t * (self.d0 + self.d1 - two * s);
        let (off, twice) = (b - two * s * t, two * s);
        let root = (off * off + twice * twice * t * (one - t)).sqrt();
        let xi = match b >= F::zero() {
            true => two * s * t / (b + root).max(F::min_positive_value()),
            false => (root - b) / (two * (s - b)),
        };
        xi.max(F::zero()).min(one)
    }
}

impl<F: Real> Point<F> {
    fn log_derivative(&self, bin: &Bin<F>) -> F {
        let slope = bin.h / (bin.w * self.d);
        (slope * slope * self.e).ln()
    }
}

pub(super) fn gradient<F: Real>(job: SplineGradientJob<'_, F>) {
    let SplineGradientJob { shape, rows, logits, input, d_value, d_log_det } = job;
    shape.check(logits, rows);
    let bound = F::of(shape.bound);
    for r in 0..rows {
        let saved = &mut logits[r..];
        if input[r] > -bound && input[r] < bound {
            d_value[r] = row_gradient(shape, saved, input[r], d_value[r], d_log_det[r]);
        } else {
            (0..shape.logits()).for_each(|j| saved[j * PANEL] = F::zero());
        }
    }
}

/// Reverse-mode derivative of [`forward`] for one row: replaces `saved` by the gradient of the
/// logits and returns the gradient of the input. `d_y`, `d_l`: gradients of value and log-derivative.
fn row_gradient<F: Real>(shape: SplineShape, saved: &mut [F], x: F, d_y: F, d_l: F) -> F {
    let bin = Bin::find(saved, shape, x, Side::Width);
    let (one, two) = (F::one(), F::of(2.0));
    let (s, xi) = (bin.h / bin.w, ((x - bin.x) / bin.w).max(F::zero()).min(F::one()));
    let (rest, eta, tilt) = (one - xi, xi * (one - xi), one - two * xi);
    let Point { n, d, e } = bin.at(xi);

    // y = y_k + h n / d and l = 2 ln s + ln e − 2 ln d, then through n, d and e.
    let d_n = d_y * bin.h / d;
    let d_d = -(d_n * n + two * d_l) / d;
    let d_e = d_l / e;
    let d_s = two * d_l / s + d_n * xi * xi + d_d * (one - two * eta) + two * d_e * eta;
    let d_d0 = (d_n + d_d) * eta + d_e * rest * rest;
    let d_d1 = d_d * eta + d_e * xi * xi;
    let d_xi = d_n * (two * s * xi + bin.d0 * tilt)
        + d_d * (bin.d0 + bin.d1 - two * s) * tilt
        + two * d_e * (bin.d1 * xi + s * tilt - bin.d0 * rest);

    // s = h / w and ξ = (x − x_k) / w.
    let d_x = d_xi / bin.w;
    let d_w = -(d_s * s + d_xi * xi) / bin.w;
    let d_h = d_y * n / d + d_s / bin.w;

    derivative_logits_gradient(shape, &mut saved[2 * shape.bins * PANEL..], bin.index, d_d0, d_d1);
    let (widths, heights) = saved.split_at_mut(shape.bins * PANEL);
    extents_gradient(shape, widths, bin.index, -d_x, d_w);
    extents_gradient(shape, heights, bin.index, d_y, d_h);
    d_x
}

/// Only the two knots of the bin receive a gradient; the outermost ones are constants.
fn derivative_logits_gradient<F: Real>(
    shape: SplineShape,
    logits: &mut [F],
    bin: usize,
    d_d0: F,
    d_d1: F,
) {
    for knot in 1..shape.bins {
        let logit = &mut logits[(knot - 1) * PANEL];
        let d_derivative = match knot {
            _ if knot == bin => d_d0,
            _ if knot == bin + 1 => d_d1,
            _ => F::zero(),
        };
        *logit = d_derivative * logit.sigmoid();
    }
}

/// Gradient of width (or height) logits: bins left of `bin` move its knot, `bin` itself its extent.
fn extents_gradient<F: Real>(
    shape: SplineShape,
    softmax: &mut [F],
    bin: usize,
    d_knot: F,
    d_extent: F,
) {
    let per_share =
        F::of(2.0 * shape.bound * (1.0 - MIN_BIN * shape.bins as f64) * shape.logit_scale);
    let before: F = (0..bin).map(|j| softmax[j * PANEL]).sum();
    let mean = before * d_knot + softmax[bin * PANEL] * d_extent;
    for j in 0..shape.bins {
        let d_share = match j {
            _ if j < bin => d_knot,
            _ if j == bin => d_extent,
            _ => F::zero(),
        };
        let p = &mut softmax[j * PANEL];
        *p *= per_share * (d_share - mean);
    }
}
