//! The gradient of a weight matrix: a product that sums over rows, i.e. over SIMD lanes.
//!
//! The inputs are transposed first, so that lanes become columns of W and a row of the batch is one
//! broadcast of d_output against a few vectors of inputs. The last few columns (50 = 3 · 16 + 2) and
//! the bias would fill a vector badly: they are summed over lanes instead.

use super::Simd;
use crate::network::kernel::jobs::{check_matrix, check_size};
use crate::network::kernel::{PANEL, WeightGradientJob, whole_lanes};

/// Up to this many leftover columns are summed over lanes rather than padded to a vector.
const LEFTOVER: usize = 4;

/// The job with raw pointers, its sizes checked.
#[derive(Clone, Copy)]
struct Sums {
    outputs: usize,
    inputs: usize,
    rows: usize,
    accumulate: bool,
    d_output: *const f32,
    input: *const f32,
    d_weights: *mut f32,
    stride: usize,
    d_bias: Option<*mut f32>,
    /// `rows` × `width` numbers: the transposed inputs.
    transposed: *mut f32,
    width: usize,
}

impl Sums {
    /// Where row `row` of feature `f` of panels of `features` features lies.
    #[inline(always)]
    fn at(row: usize, f: usize, features: usize) -> usize {
        (row / PANEL * features + f) * PANEL + row % PANEL
    }

    /// Writes one number of the result.
    #[inline(always)]
    unsafe fn put(&self, to: *mut f32, sum: f32) {
        // SAFETY: the caller's pointer lies in the result.
        unsafe { *to = if self.accumulate { *to + sum } else { sum } }
    }
}

#[inline(always)]
pub(super) fn weight_gradient<S: Simd>(s: S, job: WeightGradientJob<'_, f32>) {
    let WeightGradientJob { outputs, inputs, rows, stride, .. } = job;
    assert!(rows <= u32::MAX as usize, "the number of rows can be rounded up");
    let (panels, whole) = (rows.div_ceil(PANEL), whole_lanes(rows));
    let leftover = inputs % S::LANES;
    let width = if leftover <= LEFTOVER { inputs - leftover } else { inputs - leftover + S::LANES };
    check_size(job.d_output, outputs, panels * PANEL);
    check_size(job.input, inputs, panels * PANEL);
    check_size(job.scratch, width, whole);
    check_matrix(job.d_weights, outputs, inputs, stride);
    let sums = Sums {
        outputs,
        inputs,
        rows,
        accumulate: job.accumulate,
        d_output: job.d_output.as_ptr(),
        input: job.input.as_ptr(),
        d_weights: job.d_weights.as_mut_ptr(),
        stride,
        d_bias: job.d_bias.map(|b| {
            assert!(b.len() >= outputs);
            b.as_mut_ptr()
        }),
        transposed: job.scratch.as_mut_ptr(),
        width,
    };
    // SAFETY: every pointer covers its shape, checked above.
    unsafe {
        transpose_inputs(s, sums);
        columns(s, sums);
        leftovers(s, sums);
    }
}

#[inline(always)]
unsafe fn transpose_inputs<S: Simd>(s: S, sums: Sums) {
    let Sums { inputs, rows, input, transposed, width, .. } = sums;
    for panel in (0..rows).step_by(PANEL) {
        for f in (0..width).step_by(S::LANES) {
            // SAFETY: the source lies in the panels, or is a copy of what is left of them.
            unsafe {
                let from = input.add(Sums::at(panel, f, inputs));
                let to = transposed.add(panel * width + f);
                let used = PANEL.min(rows - panel);
                if f + S::LANES <= inputs {
                    transpose_panel(s, from, used, to, width);
                } else {
                    let mut padded = [0.0f32; 16 * PANEL];
                    from.copy_to_nonoverlapping(padded.as_mut_ptr(), (inputs - f) * PANEL);
                    transpose_panel(s, padded.as_ptr(), used, to, width);
                }
            }
        }
    }
}

/// LANES features of one panel.
#[inline(always)]
unsafe fn transpose_panel<S: Simd>(
    s: S,
    from: *const f32,
    rows: usize,
    to: *mut f32,
    width: usize,
) {
    for row in (0..rows).step_by(S::LANES) {
        // SAFETY: the panel has LANES features, and the result whole lanes of rows.
        unsafe { s.transpose(from.add(row), PANEL, to.add(row * width), width) };
    }
}

/// The columns that fill vectors, in blocks of outputs × vectors that stay in registers.
#[inline(always)]
unsafe fn columns<S: Simd>(s: S, sums: Sums) {
    let vectors = sums.width / S::LANES;
    let mut v = 0;
    while v < vectors {
        let size = (vectors - v).min(S::GRADIENT_VECTORS);
        // SAFETY: the vectors exist. The condition is known at compile time.
        unsafe {
            match size {
                3 if S::GRADIENT_VECTORS >= 3 => column_strip::<S, 3>(s, sums, v * S::LANES),
                2 => column_strip::<S, 2>(s, sums, v * S::LANES),
                _ => column_strip::<S, 1>(s, sums, v * S::LANES),
            }
        }
        v += size;
    }
}

#[inline(always)]
unsafe fn column_strip<S: Simd, const V: usize>(s: S, sums: Sums, column: usize) {
    let mut blocks = sums.outputs.div_ceil(S::GRADIENT_OUTPUTS);
    let mut o = 0;
    while blocks > 0 {
        let size = (sums.outputs - o).div_ceil(blocks);
        // SAFETY: the outputs exist.
        unsafe {
            match size {
                8 if S::GRADIENT_OUTPUTS >= 8 => column_block::<S, 8, V>(s, sums, o, column),
                7 if S::GRADIENT_OUTPUTS >= 7 => column_block::<S, 7, V>(s, sums, o, column),
                6 => column_block::<S, 6, V>(s, sums, o, column),
                5 => column_block::<S, 5, V>(s, sums, o, column),
                4 => column_block::<S, 4, V>(s, sums, o, column),
                3 => column_block::<S, 3, V>(s, sums, o, column),
                2 => column_block::<S, 2, V>(s, sums, o, column),
                _ => column_block::<S, 1, V>(s, sums, o, column),
            }
        }
        o += size;
        blocks -= 1;
    }
}

#[inline(always)]
unsafe fn column_block<S: Simd, const O: usize, const V: usize>(
    s: S,
    sums: Sums,
    first: usize,
    column: usize,
) {
    let Sums { outputs, inputs, rows, d_output, d_weights, stride, transposed, width, .. } = sums;
    let mut acc = [[s.splat(0.0); V]; O];
    // SAFETY: rows, outputs first..first + O and columns column..column + V · LANES exist.
    unsafe {
        let mut x = transposed.add(column).cast_const();
        for panel in (0..rows).step_by(PANEL) {
            let mut d = d_output.add(Sums::at(panel, first, outputs));
            for _ in panel..rows.min(panel + PANEL) {
                let mut xs = [s.splat(0.0); V];
                for (v, xs) in xs.iter_mut().enumerate() {
                    *xs = s.load(x.add(v * S::LANES));
                }
                for (o, acc) in acc.iter_mut().enumerate() {
                    let d = s.splat(*d.add(o * PANEL));
                    for (sum, &x) in acc.iter_mut().zip(&xs) {
                        *sum = s.fma(d, x, *sum);
                    }
                }
                d = d.wrapping_add(1);
                x = x.wrapping_add(width);
            }
        }
        let to = d_weights.add(first * stride + column);
        let full = column + V * S::LANES <= inputs;
        if full && !sums.accumulate {
            for (o, acc) in acc.iter().enumerate() {
                for (v, &sum) in acc.iter().enumerate() {
                    s.store(to.add(o * stride + v * S::LANES), sum);
                }
            }
        } else if full {
            for (o, acc) in acc.iter().enumerate() {
                for (v, &sum) in acc.iter().enumerate() {
                    let to = to.add(o * stride + v * S::LANES);
                    s.store(to, s.add(s.load(to), sum));
                }
            }
        } else {
            let mut row = [[[0.0f32; 16]; V]; O];
            for (row, acc) in row.iter_mut().zip(&acc) {
                for (row, &sum) in row.iter_mut().zip(acc) {
                    s.store(row.as_mut_ptr(), sum);
                }
            }
            put_rows::<V>(&row, S::LANES, inputs - column, to, sums);
        }
    }
}

/// Writes rows of vectors of which the last is not full.
#[inline(never)]
unsafe fn put_rows<const V: usize>(
    rows: &[[[f32; 16]; V]],
    lanes: usize,
    columns: usize,
    to: *mut f32,
    sums: Sums,
) {
    for (o, row) in rows.iter().enumerate() {
        for k in 0..columns.min(V * lanes) {
            // SAFETY: the caller's matrix has these rows and columns.
            unsafe { sums.put(to.add(o * sums.stride + k), row[k / lanes][k % lanes]) };
        }
    }
}

/// The leftover columns and the bias, summed over lanes.
#[inline(always)]
unsafe fn leftovers<S: Simd>(s: S, sums: Sums) {
    // SAFETY: the columns from `width` on exist.
    unsafe {
        match sums.inputs.saturating_sub(sums.width) {
            0 if sums.d_bias.is_some() => leftover::<S, 0>(s, sums),
            0 => {}
            1 => leftover::<S, 1>(s, sums),
            2 => leftover::<S, 2>(s, sums),
            3 => leftover::<S, 3>(s, sums),
            _ => leftover::<S, LEFTOVER>(s, sums),
        }
    }
}

/// Four outputs at a time, whose lanes are then summed together.
#[inline(always)]
unsafe fn leftover<S: Simd, const EXTRA: usize>(s: S, sums: Sums) {
    let Sums { outputs, inputs, rows, d_output, input, d_weights, stride, d_bias, width, .. } =
        sums;
    for first in (0..outputs).step_by(4) {
        let count = (outputs - first).min(4);
        let mut bias = [s.splat(0.0); 4];
        let mut acc = [[s.splat(0.0); 4]; EXTRA];
        // SAFETY: the outputs (the last one repeated), the leftover columns and all rows exist.
        unsafe {
            for panel in (0..rows).step_by(PANEL) {
                let d = d_output.add(Sums::at(panel, first, outputs));
                // Without leftover columns there may be nothing at `width`, and nothing is read.
                let x = input.wrapping_add(Sums::at(panel, width, inputs));
                for row in (0..(rows - panel).min(PANEL)).step_by(S::LANES) {
                    let mut ds = bias;
                    for (o, ds) in ds.iter_mut().enumerate() {
                        *ds = s.load(d.add(o.min(count - 1) * PANEL + row));
                    }
                    for (sum, &d) in bias.iter_mut().zip(&ds) {
                        *sum = s.add(*sum, d);
                    }
                    for (k, acc) in acc.iter_mut().enumerate() {
                        let x = s.load(x.add(k * PANEL + row));
                        for (sum, &d) in acc.iter_mut().zip(&ds) {
                            *sum = s.fma(d, x, *sum);
                        }
                    }
                }
            }
            for (k, &acc) in acc.iter().enumerate() {
                for (o, sum) in s.sum4(acc).into_iter().enumerate().take(count) {
                    sums.put(d_weights.add((first + o) * stride + width + k), sum);
                }
            }
            if let Some(d_bias) = d_bias {
                for (o, sum) in s.sum4(bias).into_iter().enumerate().take(count) {
                    sums.put(d_bias.add(first + o), sum);
                }
            }
        }
    }
}
