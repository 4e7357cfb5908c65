//! Eight lanes in plain arrays, which the compiler turns into what the CPU has: NEON on ARM, SSE2 on
//! an old x86.

use super::Simd;

#[derive(Clone, Copy)]
pub(super) struct Portable;

super::table!(Portable, "portable");

const LANES: usize = 8;

/// Lane by lane.
#[inline(always)]
fn map2<A: Copy, B: Copy, R: Copy + Default>(
    a: [A; LANES],
    b: [B; LANES],
    f: impl Fn(A, B) -> R,
) -> [R; LANES] {
    let mut result = [R::default(); LANES];
    for i in 0..LANES {
        result[i] = f(a[i], b[i]);
    }
    result
}

impl Simd for Portable {
    const LANES: usize = LANES;
    const ROW_VECTORS: usize = 2;
    const GRADIENT_OUTPUTS: usize = 6;
    const GRADIENT_VECTORS: usize = 2;
    type V = [f32; LANES];
    type M = [bool; LANES];
    type I = [u32; LANES];

    #[inline(always)]
    fn splat(self, value: f32) -> Self::V {
        [value; LANES]
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> Self::V {
        // SAFETY: the caller promises LANES numbers.
        unsafe { from.cast::<Self::V>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: Self::V) {
        // SAFETY: the caller promises room for LANES numbers.
        unsafe { to.cast::<Self::V>().write_unaligned(v) }
    }
    #[inline(always)]
    fn add(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn fma(self, a: Self::V, b: Self::V, c: Self::V) -> Self::V {
        // `mul_add` is an instruction on ARM, and a slow function call where there is none.
        if cfg!(any(target_arch = "aarch64", target_feature = "fma")) {
            let mut sum = c;
            for i in 0..LANES {
                sum[i] = a[i].mul_add(b[i], c[i]);
            }
            sum
        } else {
            self.add(self.mul(a, b), c)
        }
    }
    #[inline(always)]
    fn min(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| if a < b { a } else { b })
    }
    #[inline(always)]
    fn max(self, a: Self::V, b: Self::V) -> Self::V {
        map2(a, b, |a, b| if a > b { a } else { b })
    }
    #[inline(always)]
    fn abs(self, a: Self::V) -> Self::V {
        a.map(f32::abs)
    }
    #[inline(always)]
    fn sqrt(self, a: Self::V) -> Self::V {
        a.map(f32::sqrt)
    }
    #[inline(always)]
    fn gt(self, a: Self::V, b: Self::V) -> Self::M {
        map2(a, b, |a, b| a > b)
    }
    #[inline(always)]
    fn and(self, a: Self::M, b: Self::M) -> Self::M {
        map2(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn select(self, mask: Self::M, a: Self::V, b: Self::V) -> Self::V {
        let mut result = b;
        for i in 0..LANES {
            result[i] = if mask[i] { a[i] } else { b[i] };
        }
        result
    }
    #[inline(always)]
    fn round(self, a: Self::V) -> Self::V {
        // Adding 1.5 · 2²³ leaves no bits for the fraction of a number below 2²².
        a.map(|a| (a + 12_582_912.0) - 12_582_912.0)
    }
    #[inline(always)]
    fn scale(self, a: Self::V, n: Self::V) -> Self::V {
        map2(a, n, |a, n| a * f32::from_bits(((n as i32 + 127) as u32) << 23))
    }
    #[inline(always)]
    fn split(self, a: Self::V) -> (Self::V, Self::V) {
        let mantissa = a.map(|a| f32::from_bits((a.to_bits() & 0x007f_ffff) | 0x3f80_0000));
        (mantissa, a.map(|a| (a.to_bits() >> 23) as f32 - 127.0))
    }
    #[inline(always)]
    fn sum4(self, a: [Self::V; 4]) -> [f32; 4] {
        a.map(|v| v.iter().sum())
    }
    #[inline(always)]
    unsafe fn indices(self, context: *const u32, base: u32) -> Self::I {
        // SAFETY: the caller promises LANES numbers.
        let context = unsafe { context.cast::<Self::I>().read_unaligned() };
        context.map(|c| c - base)
    }
    #[inline(always)]
    fn lookup(self, window: Self::V, index: Self::I) -> Self::V {
        index.map(|i| window[i as usize % LANES])
    }
    #[inline(always)]
    unsafe fn transpose(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        for row in 0..LANES {
            // SAFETY: the caller promises LANES rows of LANES numbers on both sides.
            let v = unsafe { self.load(from.add(row * from_stride)) };
            for (column, value) in v.into_iter().enumerate() {
                // SAFETY: as above.
                unsafe { *to.add(column * to_stride + row) = value };
            }
        }
    }
}
