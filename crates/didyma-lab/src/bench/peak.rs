//! What this machine's cores can do at best: matrix products on data in the first-level cache.

use didyma::kernel::{AffineJob, Aligned, Kernels, Mode, PANEL, Weights};
use didyma::parallel;
use std::time::Instant;

/// Side of the matrix: with both panels it is 20 KB, which every first-level cache holds.
const UNITS: usize = 32;
/// Products between two looks at the clock: some milliseconds, beside which the start of threads is nothing.
const PRODUCTS: usize = 4000;

/// The largest rate, in GFLOP/s, of f32 matrix products on `threads` threads, each by itself, over as many of them as fit
/// into `seconds` (at least three stretches). The kernels are the fastest here, whichever were picked for training.
pub(super) fn product_peak(threads: usize, seconds: f64) -> f64 {
    let threads = threads.max(1);
    let flops = 2.0 * (UNITS * UNITS * PANEL * PRODUCTS * threads) as f64;
    let start = Instant::now();
    let (mut best, mut stretches) = (0.0f64, 0);
    while stretches < 3 || start.elapsed().as_secs_f64() < seconds {
        let begun = Instant::now();
        parallel::map(threads, threads, |_| products());
        best = best.max(flops / begun.elapsed().as_secs_f64());
        stretches += 1;
    }
    best / 1e9
}

/// One thread's stretch of products.
fn products() {
    let kernels = Kernels::available().next().expect("the scalar kernels run everywhere");
    let (matrix, input) = (numbers(UNITS * UNITS), numbers(UNITS * PANEL));
    let (bias, mut output) = (numbers(UNITS), Aligned::zeros(UNITS * PANEL));
    let weights = Weights { data: &matrix[..], outputs: UNITS, inputs: UNITS, stride: UNITS };
    for _ in 0..PRODUCTS {
        let (mode, output) = (Mode::Plain(&bias[..]), &mut output[..]);
        (kernels.affine)(AffineJob { weights, mode, rows: PANEL, input: &input[..], output });
    }
    std::hint::black_box(&output[..]);
}

/// Numbers of moderate size: none of them makes arithmetic slow.
fn numbers(count: usize) -> Aligned<f32> {
    let mut numbers = Aligned::zeros(count);
    numbers.iter_mut().enumerate().for_each(|(i, v)| *v = (i % 7) as f32 - 3.0);
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    /// No machine that trains flows is slower than the first bound, and no thread is faster than the second.
    #[test]
    fn the_peak_is_that_of_a_computer() {
        let peak = product_peak(1, 0.0);
        assert!((0.5..1e5).contains(&peak), "{peak} GFLOP/s");
    }
}
