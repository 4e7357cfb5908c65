//! The same kernels on vectors of rows: AVX-512, AVX2 + FMA, or whatever the compiler makes of arrays.
//!
//! A body is written once, generic in [`Simd`] and always inlined, and compiled once per instruction
//! set behind a `#[target_feature]` function (the pattern of pulp, gemm and faer). A value of an
//! instruction set's type is the proof that the CPU has it.

mod affine;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod context;
mod gradient;
mod math;
mod portable;
mod spline;
mod spline_gradient;

use super::*;

/// A vector of `f32` lanes.
///
/// The pointer methods read or write [`Simd::LANES`] numbers and need no alignment.
pub(super) trait Simd: Copy {
    /// Numbers in a vector.
    const LANES: usize;
    /// Vectors of rows that one block of a matrix product keeps in registers.
    const ROW_VECTORS: usize;
    /// Outputs × vectors that one block of a weight gradient keeps in registers.
    const GRADIENT_OUTPUTS: usize;
    /// See [`Self::GRADIENT_OUTPUTS`].
    const GRADIENT_VECTORS: usize;
    type V: Copy;
    type M: Copy;
    /// Lane numbers, for [`Simd::lookup`].
    type I: Copy;

    fn splat(self, value: f32) -> Self::V;
    unsafe fn load(self, from: *const f32) -> Self::V;
    unsafe fn store(self, to: *mut f32, v: Self::V);
    fn add(self, a: Self::V, b: Self::V) -> Self::V;
    fn sub(self, a: Self::V, b: Self::V) -> Self::V;
    fn mul(self, a: Self::V, b: Self::V) -> Self::V;
    fn div(self, a: Self::V, b: Self::V) -> Self::V;
    /// a b + c
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V;
    fn min(self, a: Self::V, b: Self::V) -> Self::V;
    fn max(self, a: Self::V, b: Self::V) -> Self::V;
    fn abs(self, a: Self::V) -> Self::V;
    fn sqrt(self, a: Self::V) -> Self::V;
    /// a > b
    fn gt(self, a: Self::V, b: Self::V) -> Self::M;
    fn and(self, a: Self::M, b: Self::M) -> Self::M;
    /// a where the mask holds, else b.
    fn select(self, mask: Self::M, a: Self::V, b: Self::V) -> Self::V;
    /// The nearest integer.
    fn round(self, a: Self::V) -> Self::V;
    /// a · 2ⁿ for integer n with a normal result.
    fn scale(self, a: Self::V, n: Self::V) -> Self::V;
    /// (m, e) with a = m · 2ᵉ and 1 ≤ m < 2, for normal positive a.
    fn split(self, a: Self::V) -> (Self::V, Self::V);
    /// The sum of all lanes of each of four vectors.
    fn sum4(self, a: [Self::V; 4]) -> [f32; 4];
    /// Lane numbers `context[i] − base`.
    unsafe fn indices(self, context: *const u32, base: u32) -> Self::I;
    /// Lane `index[i]` of `window` in lane i.
    fn lookup(self, window: Self::V, index: Self::I) -> Self::V;
    /// Transposes a square block of LANES × LANES numbers, its rows `from_stride` (`to_stride`) apart.
    unsafe fn transpose(self, from: *const f32, from_stride: usize, to: *mut f32, to_stride: usize);
}

/// An intrinsic, called from a method of the instruction set's own type.
#[cfg(target_arch = "x86_64")]
macro_rules! cpu {
    ($call:expr) => {
        // SAFETY: `self` exists, so the CPU has the instruction; pointers are the caller's promise.
        unsafe { $call }
    };
}
#[cfg(target_arch = "x86_64")]
use cpu;

/// A kernel of a table: the body for this instruction set, behind `#[target_feature]` if it has any.
macro_rules! entry {
    ($simd:expr, [$($features:literal)?], $entry:ident, $body:path, $($arg:ident: $type:ty),+) => {
        fn $entry($($arg: $type),+) {
            $(#[target_feature(enable = $features)])?
            fn inner($($arg: $type),+) {
                $body($simd, $($arg),+);
            }
            simd::call!([$($features)?], inner($($arg),+))
        }
    };
}
use entry;

/// Calls a function that may need features of the CPU.
macro_rules! call {
    ([], $call:expr) => {
        $call
    };
    ([$features:literal], $call:expr) => {
        // SAFETY: `TABLE` is handed out only after the features were detected.
        unsafe { $call }
    };
}
use call;

/// Writes the table of one instruction set.
macro_rules! table {
    ($simd:expr, $name:literal $(, $features:literal)?) => {
        use crate::network::kernel::simd;
        use crate::network::kernel::*;
        simd::entry!($simd, [$($features)?], affine, simd::affine::forward, job: AffineJob<'_, f32>);
        simd::entry!($simd, [$($features)?], affine_input_gradient, simd::affine::input_gradient, job: InputGradientJob<'_, f32>);
        simd::entry!($simd, [$($features)?], affine_weight_gradient, simd::gradient::weight_gradient, job: WeightGradientJob<'_, f32>);
        simd::entry!($simd, [$($features)?], expand, simd::context::expand, rows: &ContextRows, from: &[f32], to: &mut [f32]);
        simd::entry!($simd, [$($features)?], collect, simd::context::collect, rows: &ContextRows, from: &[f32], to: &mut [f32]);
        simd::entry!($simd, [$($features)?], gate, simd::context::gate, job: GateJob<'_, f32>);
        simd::entry!($simd, [$($features)?], gate_gradient, simd::context::gate_gradient, job: GateGradientJob<'_, f32>);
        simd::entry!($simd, [$($features)?], sigmoid, simd::math::sigmoid_in_place, panel: &mut [f32], rows: usize);
        simd::entry!($simd, [$($features)?], silu, simd::math::silu, job: SiluJob<'_, f32>);
        simd::entry!($simd, [$($features)?], spline, simd::spline::forward, job: SplineJob<'_, f32>);
        simd::entry!($simd, [$($features)?], spline_inverse, simd::spline::inverse, job: SplineJob<'_, f32>);
        simd::entry!($simd, [$($features)?], spline_gradient, simd::spline_gradient::gradient, job: SplineGradientJob<'_, f32>);
        simd::entry!($simd, [$($features)?], adam, simd::math::adam, job: AdamJob<'_, f32>);
        simd::entry!($simd, [$($features)?], add_to, simd::math::add_to, sums: &mut [f64], from: &[f32]);

        pub(super) static TABLE: Kernels<f32> = Kernels {
            name: $name,
            affine,
            affine_input_gradient,
            affine_weight_gradient,
            expand,
            collect,
            gate,
            gate_gradient,
            sigmoid,
            silu,
            spline,
            spline_inverse,
            spline_gradient,
            adam,
            add_to,
        };
    };
}
use table;

/// The tables this CPU can run, the fastest first.
pub(super) fn available() -> impl Iterator<Item = &'static Kernels<f32>> {
    #[cfg(target_arch = "x86_64")]
    let native = {
        let avx512 = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512dq");
        let avx2 = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
        [avx512.then_some(&avx512::TABLE), avx2.then_some(&avx2::TABLE)]
    };
    #[cfg(not(target_arch = "x86_64"))]
    let native = [None];
    native.into_iter().flatten().chain([&portable::TABLE])
}
