//! Matrix products of a small weight matrix and a panel: the layers forward, and back to their input.
//!
//! A block of O outputs × V vectors of rows stays in registers while k runs over the inputs; weights
//! are broadcast from where they lie (a layer's matrix fits the first-level cache), so nothing is
//! packed. Forward and backward differ only in the strides of W and in what happens at the end.

use super::Simd;
use crate::network::kernel::{AffineJob, InputGradientJob, Mode, PANEL, check_panel};

/// Outputs of one block. 6 × 4 vectors leave 8 of AVX-512's 32 registers, 6 × 2 leave 4 of AVX2's 16.
const OUTPUTS: usize = 6;

/// y = Σ_k w[o · by_output + k · by_input] x[k], for whatever W is read by rows or by columns.
#[derive(Clone, Copy)]
struct Product {
    w: *const f32,
    by_output: usize,
    by_input: usize,
    outputs: usize,
    inputs: usize,
    x: *const f32,
    rows: usize,
}

/// What surrounds the product: the value each block starts from, and where its result goes.
///
/// One type per combination that the flow uses, so that a block has no branch and its sums never
/// leave the registers.
trait Ends<S: Simd>: Copy {
    /// Start value of output `o`, whose vector lies `at` in its panel.
    unsafe fn start(self, s: S, o: usize, at: usize) -> S::V;
    /// Takes the finished vector.
    unsafe fn finish(self, s: S, at: usize, y: S::V);
}

/// y = bias + W x, rectified or not.
#[derive(Clone, Copy)]
struct Biased<const RELU: bool> {
    bias: *const f32,
    output: *mut f32,
}

impl<S: Simd, const RELU: bool> Ends<S> for Biased<RELU> {
    #[inline(always)]
    unsafe fn start(self, s: S, o: usize, _: usize) -> S::V {
        // SAFETY: one bias per output, checked in `forward`.
        s.splat(unsafe { *self.bias.add(o) })
    }
    #[inline(always)]
    unsafe fn finish(self, s: S, at: usize, y: S::V) {
        let y = if RELU { s.max(y, s.splat(0.0)) } else { y };
        // SAFETY: `at` lies in the panel, checked in `forward`.
        unsafe { s.store(self.output.add(at), y) }
    }
}

/// y = y + W x, and max(y, 0) beside it.
#[derive(Clone, Copy)]
struct Added {
    output: *mut f32,
    rectified: *mut f32,
}

impl<S: Simd> Ends<S> for Added {
    #[inline(always)]
    unsafe fn start(self, s: S, _: usize, at: usize) -> S::V {
        // SAFETY: `at` lies in the panel, checked in `forward`.
        unsafe { s.load(self.output.add(at)) }
    }
    #[inline(always)]
    unsafe fn finish(self, s: S, at: usize, y: S::V) {
        // SAFETY: `at` lies in both panels, checked in `forward`.
        unsafe {
            s.store(self.output.add(at), y);
            s.store(self.rectified.add(at), s.max(y, s.splat(0.0)));
        }
    }
}

/// d = Wᵀ d_output; where masked, zero unless the activation is positive; or added to d.
#[derive(Clone, Copy)]
struct Backward<const MASKED: bool, const ACCUMULATE: bool> {
    mask: *const f32,
    d_input: *mut f32,
}

impl<S: Simd, const MASKED: bool, const ACCUMULATE: bool> Ends<S> for Backward<MASKED, ACCUMULATE> {
    #[inline(always)]
    unsafe fn start(self, s: S, _: usize, _: usize) -> S::V {
        s.splat(0.0)
    }
    #[inline(always)]
    unsafe fn finish(self, s: S, at: usize, mut y: S::V) {
        let zero = s.splat(0.0);
        // SAFETY: `at` lies in both panels, checked in `input_gradient`.
        unsafe {
            if MASKED {
                y = s.select(s.gt(s.load(self.mask.add(at)), zero), y, zero);
            }
            if ACCUMULATE {
                y = s.add(s.load(self.d_input.add(at)), y);
            }
            s.store(self.d_input.add(at), y);
        }
    }
}

#[inline(always)]
pub(super) fn forward<S: Simd>(s: S, job: AffineJob<'_, f32>) {
    let AffineJob { weights: w, mode, rows, input, output } = job;
    w.check();
    check_panel(input, w.inputs, rows);
    check_panel(output, w.outputs, rows);
    let product = Product {
        w: w.data.as_ptr(),
        by_output: w.stride,
        by_input: 1,
        outputs: w.outputs,
        inputs: w.inputs,
        x: input.as_ptr(),
        rows,
    };
    let output = output.as_mut_ptr();
    let checked = |bias: &[f32]| {
        assert!(bias.len() >= w.outputs);
        bias.as_ptr()
    };
    // SAFETY: weights, bias and panels are checked against the shape.
    unsafe {
        match mode {
            Mode::Plain(bias) => {
                multiply(s, product, Biased::<false> { bias: checked(bias), output });
            }
            Mode::Relu(bias) => {
                multiply(s, product, Biased::<true> { bias: checked(bias), output });
            }
            Mode::Add(rectified) => {
                check_panel(rectified, w.outputs, rows);
                multiply(s, product, Added { output, rectified: rectified.as_mut_ptr() });
            }
        }
    }
}

#[inline(always)]
pub(super) fn input_gradient<S: Simd>(s: S, job: InputGradientJob<'_, f32>) {
    let InputGradientJob { weights: w, mask, accumulate, rows, d_output, d_input } = job;
    w.check();
    check_panel(d_output, w.outputs, rows);
    check_panel(d_input, w.inputs, rows);
    let product = Product {
        w: w.data.as_ptr(),
        by_output: 1,
        by_input: w.stride,
        outputs: w.inputs,
        inputs: w.outputs,
        x: d_output.as_ptr(),
        rows,
    };
    let d_input = d_input.as_mut_ptr();
    let mask = mask.map_or(std::ptr::null(), |mask| {
        check_panel(mask, w.inputs, rows);
        mask.as_ptr()
    });
    // SAFETY: weights and panels were checked against the shape above.
    unsafe {
        match (mask.is_null(), accumulate) {
            (true, false) => multiply(s, product, Backward::<false, false> { mask, d_input }),
            (true, true) => multiply(s, product, Backward::<false, true> { mask, d_input }),
            (false, false) => multiply(s, product, Backward::<true, false> { mask, d_input }),
            (false, true) => multiply(s, product, Backward::<true, true> { mask, d_input }),
        }
    }
}

/// Strips of rows as wide as the registers allow, then narrower ones for what is left.
#[inline(always)]
unsafe fn multiply<S: Simd, E: Ends<S>>(s: S, product: Product, ends: E) {
    let vectors = product.rows / S::LANES;
    let mut v = 0;
    while v < vectors {
        let row = v * S::LANES;
        // SAFETY: the strip lies inside `rows`.
        unsafe {
            // The conditions are known at compile time: AVX2 has no code for the wide strips.
            match (vectors - v).min(S::ROW_VECTORS) {
                4 if S::ROW_VECTORS >= 4 => strip::<S, E, 4>(s, product, ends, row),
                3 if S::ROW_VECTORS >= 3 => strip::<S, E, 3>(s, product, ends, row),
                2 => strip::<S, E, 2>(s, product, ends, row),
                _ => strip::<S, E, 1>(s, product, ends, row),
            }
        }
        v += (vectors - v).min(S::ROW_VECTORS);
    }
}

/// All outputs of one strip, in blocks of nearly equal size.
#[inline(always)]
unsafe fn strip<S: Simd, E: Ends<S>, const V: usize>(s: S, product: Product, ends: E, row: usize) {
    let mut blocks = product.outputs.div_ceil(OUTPUTS);
    let mut o = 0;
    while blocks > 0 {
        let size = (product.outputs - o).div_ceil(blocks);
        // SAFETY: the block lies inside `outputs`.
        unsafe {
            match size {
                6 => block::<S, E, 6, V>(s, product, ends, o, row),
                5 => block::<S, E, 5, V>(s, product, ends, o, row),
                4 => block::<S, E, 4, V>(s, product, ends, o, row),
                3 => block::<S, E, 3, V>(s, product, ends, o, row),
                2 => block::<S, E, 2, V>(s, product, ends, o, row),
                _ => block::<S, E, 1, V>(s, product, ends, o, row),
            }
        }
        o += size;
        blocks -= 1;
    }
}

#[inline(always)]
unsafe fn block<S: Simd, E: Ends<S>, const O: usize, const V: usize>(
    s: S,
    product: Product,
    ends: E,
    first: usize,
    row: usize,
) {
    let Product { w, by_output, by_input, inputs, x, .. } = product;
    let mut sums = [[s.splat(0.0); V]; O];
    // SAFETY: outputs first..first + O and rows row..row + V · LANES exist; the caller checked.
    unsafe {
        for (o, sums) in sums.iter_mut().enumerate() {
            for (v, sum) in sums.iter_mut().enumerate() {
                *sum = ends.start(s, first + o, (first + o) * PANEL + row + v * S::LANES);
            }
        }
        // Without inputs neither is read, and there may be nothing there.
        let (mut w, mut x) = (w.wrapping_add(first * by_output), x.wrapping_add(row));
        for _ in 0..inputs {
            let mut xs = [s.splat(0.0); V];
            for (v, xs) in xs.iter_mut().enumerate() {
                *xs = s.load(x.add(v * S::LANES));
            }
            for (o, sums) in sums.iter_mut().enumerate() {
                let weight = s.splat(*w.add(o * by_output));
                for (sum, &x) in sums.iter_mut().zip(&xs) {
                    *sum = s.fma(weight, x, *sum);
                }
            }
            w = w.wrapping_add(by_input);
            x = x.wrapping_add(PANEL);
        }
        for (o, sums) in sums.iter().enumerate() {
            for (v, &sum) in sums.iter().enumerate() {
                ends.finish(s, (first + o) * PANEL + row + v * S::LANES, sum);
            }
        }
    }
}
