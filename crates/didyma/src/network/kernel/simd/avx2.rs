//! Eight lanes: AVX2 and FMA.

use super::{Simd, cpu};
use std::arch::x86_64::*;

/// Exists only behind the functions of [`TABLE`], so only on a CPU with AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

super::table!(Avx2(()), "avx2", "avx2,fma");

impl Simd for Avx2 {
    const LANES: usize = 8;
    const ROW_VECTORS: usize = 2;
    const GRADIENT_OUTPUTS: usize = 6;
    const GRADIENT_VECTORS: usize = 2;
    type V = __m256;
    type M = __m256;
    type I = __m256i;

    #[inline(always)]
    fn splat(self, value: f32) -> __m256 {
        cpu!(_mm256_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m256 {
        cpu!(_mm256_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m256) {
        cpu!(_mm256_storeu_ps(to, v))
    }
    #[inline(always)]
    fn add(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m256, b: __m256, c: __m256) -> __m256 {
        cpu!(_mm256_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn min(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_max_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m256) -> __m256 {
        cpu!(_mm256_andnot_ps(_mm256_set1_ps(-0.0), a))
    }
    #[inline(always)]
    fn sqrt(self, a: __m256) -> __m256 {
        cpu!(_mm256_sqrt_ps(a))
    }
    #[inline(always)]
    fn gt(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_cmp_ps::<_CMP_GT_OQ>(a, b))
    }
    #[inline(always)]
    fn and(self, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_and_ps(a, b))
    }
    #[inline(always)]
    fn select(self, mask: __m256, a: __m256, b: __m256) -> __m256 {
        cpu!(_mm256_blendv_ps(b, a, mask))
    }
    #[inline(always)]
    fn round(self, a: __m256) -> __m256 {
        cpu!(_mm256_round_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn scale(self, a: __m256, n: __m256) -> __m256 {
        let biased = cpu!(_mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127)));
        let power = cpu!(_mm256_castsi256_ps(_mm256_slli_epi32::<23>(biased)));
        self.mul(a, power)
    }
    #[inline(always)]
    fn split(self, a: __m256) -> (__m256, __m256) {
        let bits = cpu!(_mm256_castps_si256(a));
        let exponent =
            cpu!(_mm256_sub_epi32(_mm256_srli_epi32::<23>(bits), _mm256_set1_epi32(127)));
        let mantissa = cpu!(_mm256_or_si256(
            _mm256_and_si256(bits, _mm256_set1_epi32(0x007f_ffff)),
            _mm256_set1_epi32(0x3f80_0000),
        ));
        (cpu!(_mm256_castsi256_ps(mantissa)), cpu!(_mm256_cvtepi32_ps(exponent)))
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m256; 4]) -> [f32; 4] {
        let ab = cpu!(_mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)));
        let cd = cpu!(_mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d)));
        let (low, high) =
            (cpu!(_mm256_shuffle_ps::<0x44>(ab, cd)), cpu!(_mm256_shuffle_ps::<0xEE>(ab, cd)));
        let halves = self.add(low, high);
        let sums =
            cpu!(_mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves)));
        let mut out = [0.0; 4];
        cpu!(_mm_storeu_ps(out.as_mut_ptr(), sums));
        out
    }
    #[inline(always)]
    unsafe fn indices(self, context: *const u32, base: u32) -> __m256i {
        cpu!(_mm256_sub_epi32(_mm256_loadu_si256(context.cast()), _mm256_set1_epi32(base as i32)))
    }
    #[inline(always)]
    fn lookup(self, window: __m256, index: __m256i) -> __m256 {
        cpu!(_mm256_permutevar8x32_ps(window, index))
    }
    #[inline(always)]
    unsafe fn transpose(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        // Two halves of four columns each, gathered so that only shuffles inside 128-bit lanes remain.
        let mut half = 0;
        while half < 2 {
            let mut row = [self.splat(0.0); 4];
            let mut i = 0;
            while i < 4 {
                // SAFETY: the caller promises LANES rows of LANES numbers; this reads columns
                // 4·half.. of rows i and i + 4.
                row[i] = unsafe {
                    let at = from.add(i * from_stride + 4 * half);
                    let a = _mm256_castps128_ps256(_mm_loadu_ps(at));
                    _mm256_insertf128_ps::<1>(a, _mm_loadu_ps(at.add(4 * from_stride)))
                };
                i += 1;
            }
            // SAFETY: as above, for the rows 4·half.. of the result.
            unsafe {
                let (a, b) =
                    (_mm256_unpacklo_ps(row[0], row[1]), _mm256_unpackhi_ps(row[0], row[1]));
                let (c, d) =
                    (_mm256_unpacklo_ps(row[2], row[3]), _mm256_unpackhi_ps(row[2], row[3]));
                let to = to.add(4 * half * to_stride);
                self.store(to, _mm256_shuffle_ps::<0x44>(a, c));
                self.store(to.add(to_stride), _mm256_shuffle_ps::<0xEE>(a, c));
                self.store(to.add(2 * to_stride), _mm256_shuffle_ps::<0x44>(b, d));
                self.store(to.add(3 * to_stride), _mm256_shuffle_ps::<0xEE>(b, d));
            }
            half += 1;
        }
    }
}
