//! What this machine's cores can do at best: a large matrix product by a library made for it.
//!
//! Only benchmarks need it, so it is behind the feature `peak`.

use gemm_common::Parallelism;
use gemm_f32::gemm::f32::get_gemm_fn;
use std::time::Instant;

/// Side of the square matrices: large enough to hide all overhead, small enough for 12 MB.
const SIDE: usize = 1024;

/// The largest rate, in GFLOP/s, of f32 matrix products by the `gemm` crate on `threads` threads, over
/// as many products as fit into `seconds` (at least three).
///
/// ```
/// assert!(didyma::kernel::gemm_peak(1, 0.0) > 0.0);
/// ```
pub fn gemm_peak(threads: usize, seconds: f64) -> f64 {
    let a: Vec<f32> = (0..SIDE * SIDE).map(|i| (i % 7) as f32).collect();
    let b: Vec<f32> = (0..SIDE * SIDE).map(|i| (i % 5) as f32).collect();
    let mut c = vec![0.0f32; SIDE * SIDE];
    let flops = 2.0 * (SIDE as f64).powi(3);
    let start = Instant::now();
    let (mut best, mut products) = (0.0f64, 0);
    while products < 3 || start.elapsed().as_secs_f64() < seconds {
        let begun = Instant::now();
        multiply(&mut c, &a, &b, threads);
        best = best.max(flops / begun.elapsed().as_secs_f64());
        products += 1;
    }
    best / 1e9
}

/// C = A B, all SIDE × SIDE and row-major: Cᵀ = Bᵀ Aᵀ in columns, which the library prefers.
fn multiply(c: &mut [f32], a: &[f32], b: &[f32], threads: usize) {
    let parallelism = match threads {
        0 | 1 => Parallelism::None,
        n => Parallelism::Rayon(n),
    };
    assert!([c.len(), a.len(), b.len()].iter().all(|&len| len == SIDE * SIDE));
    let stride = SIDE as isize;
    // SAFETY: all three matrices have SIDE rows of SIDE numbers, a row apart, and do not overlap.
    unsafe {
        get_gemm_fn()(
            SIDE,
            SIDE,
            SIDE,
            c.as_mut_ptr(),
            stride,
            1,
            false,
            b.as_ptr(),
            stride,
            1,
            a.as_ptr(),
            stride,
            1,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}
