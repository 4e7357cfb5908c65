//! The hot loops: each one a readable scalar definition and a SIMD version chosen at run time.
//!
//! # Panels
//! Numbers are laid out **feature-major in panels of [`PANEL`] rows**: feature `f` of row `r` of a
//! panel is `panel[f * PANEL + r]`. Rows of the batch are thus SIMD lanes, whatever the number of
//! features: a layer of 50 units wastes nothing, and relu, gate and spline need no shuffles.
//! A panel may be partly filled; kernels work on `rows` rows, a multiple of [`LANE`].
//!
//! # Dispatch
//! [`Kernels`] is a table of functions. [`Kernels::scalar`] defines what each of them computes, for
//! `f32` and `f64`; [`Real::kernels`] picks the fastest table that the CPU supports. Every table is
//! tested against the scalar one.
//!
//! This is the only module with `unsafe` code.

mod aligned;
mod jobs;
mod real;
pub mod scalar;
mod simd;

pub use aligned::Aligned;
pub use jobs::*;
pub use real::{KERNELS_VARIABLE, Real};

/// Rows in one panel.
pub const PANEL: usize = 64;
/// Rows come in multiples of this, so that no kernel needs a masked tail.
pub const LANE: usize = 16;
/// The smallest share of the interval that a spline bin may take (nflows' `min_bin_width`).
pub const MIN_BIN: f64 = 1e-3;
/// The smallest derivative at a spline knot.
pub const MIN_DERIVATIVE: f64 = 1e-3;

/// Rounds a number of rows up to whole lanes.
pub const fn whole_lanes(rows: usize) -> usize {
    rows.next_multiple_of(LANE)
}

/// One implementation of every hot loop; see the [module](self) for the layout of the panels.
#[derive(Debug)]
pub struct Kernels<F: 'static> {
    /// What it is called in reports: `scalar`, `portable`, `avx2` or `avx512`.
    pub name: &'static str,
    /// output = bias + W · input, or added to the output; rectified or not.
    pub affine: fn(AffineJob<'_, F>),
    /// d_input = \[d_input +\] mask ⊙ (Wᵀ · d_output).
    pub affine_input_gradient: fn(InputGradientJob<'_, F>),
    /// d_weights = \[d_weights +\] Σ over rows of d_output ⊗ input; the same for the bias.
    pub affine_weight_gradient: fn(WeightGradientJob<'_, F>),
    /// Copies a number per context to each of its rows.
    pub expand: fn(&ContextRows, &[F], &mut [F]),
    /// Sums a number per row into its context: the transpose of `expand`.
    pub collect: fn(&ContextRows, &[F], &mut [F]),
    /// hidden += value ⊙ gate of the row's context.
    pub gate: fn(GateJob<'_, F>),
    /// The derivative of `gate` with respect to value and gate.
    pub gate_gradient: fn(GateGradientJob<'_, F>),
    /// Logistic function in place, on the first rows of every feature.
    pub sigmoid: fn(&mut [F], usize),
    /// a σ(a) and its derivatives.
    pub silu: fn(SiluJob<'_, F>),
    /// Monotone rational-quadratic spline and its log-derivative.
    pub spline: fn(SplineJob<'_, F>),
    /// The inverse of `spline`.
    pub spline_inverse: fn(SplineJob<'_, F>),
    /// The derivative of `spline` with respect to input and logits.
    pub spline_gradient: fn(SplineGradientJob<'_, F>),
    /// One step of Adam on a block of parameters.
    pub adam: fn(AdamJob<'_, F>),
    /// Adds numbers to sums in `f64`.
    pub add_to: fn(&mut [f64], &[F]),
}

impl<F: Real> Kernels<F> {
    /// The definition of every kernel, in plain loops.
    pub fn scalar() -> &'static Self {
        const { &scalar::table::<F>() }
    }
}

impl Kernels<f32> {
    /// Every table that this CPU can run, the fastest first; the last is the scalar one.
    pub fn available() -> impl Iterator<Item = &'static Self> {
        simd::available().chain([Self::scalar()])
    }
}
