//! Sixteen lanes: AVX-512 F and DQ.

use super::{Simd, cpu};
use std::arch::x86_64::*;

/// Exists only behind the functions of [`TABLE`], so only on a CPU with AVX-512 F and DQ.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

super::table!(Avx512(()), "avx512", "avx512f,avx512dq");

impl Simd for Avx512 {
    const LANES: usize = 16;
    const ROW_VECTORS: usize = 4;
    const GRADIENT_OUTPUTS: usize = 8;
    const GRADIENT_VECTORS: usize = 3;
    type V = __m512;
    type M = __mmask16;
    type I = __m512i;

    #[inline(always)]
    fn splat(self, value: f32) -> __m512 {
        cpu!(_mm512_set1_ps(value))
    }
    #[inline(always)]
    unsafe fn load(self, from: *const f32) -> __m512 {
        cpu!(_mm512_loadu_ps(from))
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32, v: __m512) {
        cpu!(_mm512_storeu_ps(to, v))
    }
    #[inline(always)]
    fn add(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_add_ps(a, b))
    }
    #[inline(always)]
    fn sub(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_sub_ps(a, b))
    }
    #[inline(always)]
    fn mul(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_mul_ps(a, b))
    }
    #[inline(always)]
    fn div(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_div_ps(a, b))
    }
    #[inline(always)]
    fn fma(self, a: __m512, b: __m512, c: __m512) -> __m512 {
        cpu!(_mm512_fmadd_ps(a, b, c))
    }
    #[inline(always)]
    fn min(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_min_ps(a, b))
    }
    #[inline(always)]
    fn max(self, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_max_ps(a, b))
    }
    #[inline(always)]
    fn abs(self, a: __m512) -> __m512 {
        cpu!(_mm512_abs_ps(a))
    }
    #[inline(always)]
    fn sqrt(self, a: __m512) -> __m512 {
        cpu!(_mm512_sqrt_ps(a))
    }
    #[inline(always)]
    fn gt(self, a: __m512, b: __m512) -> __mmask16 {
        cpu!(_mm512_cmp_ps_mask::<_CMP_GT_OQ>(a, b))
    }
    #[inline(always)]
    fn and(self, a: __mmask16, b: __mmask16) -> __mmask16 {
        a & b
    }
    #[inline(always)]
    fn select(self, mask: __mmask16, a: __m512, b: __m512) -> __m512 {
        cpu!(_mm512_mask_blend_ps(mask, b, a))
    }
    #[inline(always)]
    fn round(self, a: __m512) -> __m512 {
        cpu!(_mm512_roundscale_ps::<{ _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC }>(a))
    }
    #[inline(always)]
    fn scale(self, a: __m512, n: __m512) -> __m512 {
        cpu!(_mm512_scalef_ps(a, n))
    }
    #[inline(always)]
    fn split(self, a: __m512) -> (__m512, __m512) {
        let mantissa = cpu!(_mm512_getmant_ps::<_MM_MANT_NORM_1_2, _MM_MANT_SIGN_SRC>(a));
        (mantissa, cpu!(_mm512_getexp_ps(a)))
    }
    #[inline(always)]
    fn sum4(self, [a, b, c, d]: [__m512; 4]) -> [f32; 4] {
        let ab = cpu!(_mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b)));
        let cd = cpu!(_mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d)));
        let (low, high) =
            (cpu!(_mm512_shuffle_ps::<0x44>(ab, cd)), cpu!(_mm512_shuffle_ps::<0xEE>(ab, cd)));
        let quarters = self.add(low, high);
        let upper = cpu!(_mm512_extractf32x8_ps::<1>(quarters));
        let halves = cpu!(_mm256_add_ps(_mm512_castps512_ps256(quarters), upper));
        let sums =
            cpu!(_mm_add_ps(_mm256_castps256_ps128(halves), _mm256_extractf128_ps::<1>(halves)));
        let mut out = [0.0; 4];
        cpu!(_mm_storeu_ps(out.as_mut_ptr(), sums));
        out
    }
    #[inline(always)]
    unsafe fn indices(self, context: *const u32, base: u32) -> __m512i {
        cpu!(_mm512_sub_epi32(_mm512_loadu_si512(context.cast()), _mm512_set1_epi32(base as i32)))
    }
    #[inline(always)]
    fn lookup(self, window: __m512, index: __m512i) -> __m512 {
        cpu!(_mm512_permutexvar_ps(index, window))
    }
    #[inline(always)]
    unsafe fn transpose(
        self,
        from: *const f32,
        from_stride: usize,
        to: *mut f32,
        to_stride: usize,
    ) {
        // Four quarters of four rows each, gathered so that only shuffles inside 128-bit lanes remain.
        let mut quarter = 0;
        while quarter < 4 {
            let mut row = [self.splat(0.0); 4];
            let mut i = 0;
            while i < 4 {
                // SAFETY: the caller promises LANES rows of LANES numbers; this reads columns
                // 4·quarter.. of rows i, i + 4, i + 8 and i + 12.
                row[i] = unsafe {
                    let at = from.add(i * from_stride + 4 * quarter);
                    let ab = _mm512_castps128_ps512(_mm_loadu_ps(at));
                    let ab = _mm512_insertf32x4::<1>(ab, _mm_loadu_ps(at.add(4 * from_stride)));
                    let ab = _mm512_insertf32x4::<2>(ab, _mm_loadu_ps(at.add(8 * from_stride)));
                    _mm512_insertf32x4::<3>(ab, _mm_loadu_ps(at.add(12 * from_stride)))
                };
                i += 1;
            }
            // SAFETY: as above, for the rows 4·quarter.. of the result.
            unsafe {
                let (a, b) =
                    (_mm512_unpacklo_ps(row[0], row[1]), _mm512_unpackhi_ps(row[0], row[1]));
                let (c, d) =
                    (_mm512_unpacklo_ps(row[2], row[3]), _mm512_unpackhi_ps(row[2], row[3]));
                let to = to.add(4 * quarter * to_stride);
                self.store(to, _mm512_shuffle_ps::<0x44>(a, c));
                self.store(to.add(to_stride), _mm512_shuffle_ps::<0xEE>(a, c));
                self.store(to.add(2 * to_stride), _mm512_shuffle_ps::<0x44>(b, d));
                self.store(to.add(3 * to_stride), _mm512_shuffle_ps::<0xEE>(b, d));
            }
            quarter += 1;
        }
    }
}
