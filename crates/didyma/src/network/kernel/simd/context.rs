//! Going between contexts and the rows that share them, and the gates in between.
//!
//! Contexts never decrease along the rows, so the contexts of one vector of rows lie in a window as
//! wide as the vector: a load and a lane permutation fetch them.

use super::Simd;
use crate::network::kernel::{ContextRows, GateGradientJob, GateJob, PANEL, check_panel};
use std::ops::Range;

/// First context of the window for the rows from `row` on, and each row's place in it.
#[inline(always)]
unsafe fn window<S: Simd>(s: S, rows: &ContextRows, row: usize) -> (usize, S::I) {
    let base = (rows.context[row] as usize).min(PANEL - S::LANES);
    // SAFETY: whole lanes of rows, checked by `check`.
    let index = unsafe { s.indices(rows.context.as_ptr().add(row), base as u32) };
    (base, index)
}

#[inline(always)]
fn check<S: Simd>(rows: &ContextRows, panels: &[&[f32]]) {
    assert!(rows.context.len().is_multiple_of(S::LANES));
    rows.check();
    for panel in panels {
        check_panel(panel, rows.features, rows.context.len());
    }
}

#[inline(always)]
pub(super) fn expand<S: Simd>(s: S, rows: &ContextRows, by_context: &[f32], by_row: &mut [f32]) {
    check::<S>(rows, &[by_context, by_row]);
    for row in (0..rows.context.len()).step_by(S::LANES) {
        // SAFETY: `window` and both panels were checked; base + LANES ≤ PANEL.
        unsafe {
            let (base, index) = window(s, rows, row);
            for f in 0..rows.features {
                let contexts = s.load(by_context.as_ptr().add(f * PANEL + base));
                s.store(by_row.as_mut_ptr().add(f * PANEL + row), s.lookup(contexts, index));
            }
        }
    }
}

#[inline(always)]
pub(super) fn gate<S: Simd>(s: S, job: GateJob<'_, f32>) {
    let GateJob { rows, gate, value, hidden, output, relu } = job;
    check::<S>(&rows, &[gate, value, hidden, output]);
    let floor = s.splat(if relu { 0.0 } else { f32::NEG_INFINITY });
    for row in (0..rows.context.len()).step_by(S::LANES) {
        // SAFETY: `window` and all panels were checked.
        unsafe {
            let (base, index) = window(s, &rows, row);
            for f in 0..rows.features {
                let at = f * PANEL + row;
                let g = s.lookup(s.load(gate.as_ptr().add(f * PANEL + base)), index);
                let h = s.load(hidden.as_ptr().add(at));
                let h = s.fma(s.load(value.as_ptr().add(at)), g, h);
                s.store(hidden.as_mut_ptr().add(at), h);
                s.store(output.as_mut_ptr().add(at), s.max(h, floor));
            }
        }
    }
}

#[inline(always)]
pub(super) fn gate_gradient<S: Simd>(s: S, job: GateGradientJob<'_, f32>) {
    let GateGradientJob { rows, gate, value, d_hidden, d_value, d_gate } = job;
    check::<S>(&rows, &[gate, value, d_hidden, d_value, d_gate]);
    for row in (0..rows.context.len()).step_by(S::LANES) {
        // SAFETY: `window` and all panels were checked.
        unsafe {
            let (base, index) = window(s, &rows, row);
            for f in 0..rows.features {
                let at = f * PANEL + row;
                let g = s.lookup(s.load(gate.as_ptr().add(f * PANEL + base)), index);
                s.store(d_value.as_mut_ptr().add(at), s.mul(s.load(d_hidden.as_ptr().add(at)), g));
            }
        }
    }
    let product = |at: usize| {
        // SAFETY: `at` lies in both panels.
        unsafe { s.mul(s.load(d_hidden.as_ptr().add(at)), s.load(value.as_ptr().add(at))) }
    };
    // SAFETY: `d_gate` was checked.
    unsafe { sum_by_context(s, &rows, product, d_gate) }
}

#[inline(always)]
pub(super) fn collect<S: Simd>(s: S, rows: &ContextRows, by_row: &[f32], by_context: &mut [f32]) {
    check::<S>(rows, &[by_row, by_context]);
    // SAFETY: both panels were checked.
    unsafe {
        sum_by_context(s, rows, |at| s.load(by_row.as_ptr().add(at)), by_context);
    }
}

/// Adds `vector(at)`, a vector of rows of a feature, to the contexts of its rows.
#[inline(always)]
unsafe fn sum_by_context<S: Simd>(
    s: S,
    rows: &ContextRows,
    vector: impl Fn(usize) -> S::V,
    sums: &mut [f32],
) {
    let context = rows.context;
    let mut row = 0;
    while row < context.len() {
        let (first, last) = (context[row], context[row + S::LANES - 1]);
        let mut end = row + S::LANES;
        if first == last {
            // One context: add up its whole vectors, then their lanes once.
            while end < context.len() && context[end + S::LANES - 1] == first {
                end += S::LANES;
            }
            one_context(s, row..end, rows.features, &vector, &mut sums[first as usize..]);
        } else if last - first == S::LANES as u32 - 1 {
            // As many contexts as rows.
            for f in 0..rows.features {
                // SAFETY: the window first..=last lies in the panel of contexts.
                unsafe {
                    let to = sums.as_mut_ptr().add(f * PANEL + first as usize);
                    s.store(to, s.add(s.load(to), vector(f * PANEL + row)));
                }
            }
        } else {
            mixed(s, &context[row..end], rows.features, |f| vector(f * PANEL + row), sums);
        }
        row = end;
    }
}

/// Whole vectors of rows of one context, four features at a time.
#[inline(always)]
fn one_context<S: Simd>(
    s: S,
    rows: Range<usize>,
    features: usize,
    vector: &impl Fn(usize) -> S::V,
    sums: &mut [f32],
) {
    for first in (0..features).step_by(4) {
        let mut four = [s.splat(0.0); 4];
        for (f, sum) in four.iter_mut().enumerate() {
            let feature = (first + f).min(features - 1) * PANEL;
            for row in rows.clone().step_by(S::LANES) {
                *sum = s.add(*sum, vector(feature + row));
            }
        }
        for (f, sum) in s.sum4(four).into_iter().enumerate().take(features - first) {
            sums[(first + f) * PANEL] += sum;
        }
    }
}

/// A vector of rows with several contexts, some of them repeated.
#[inline(always)]
fn mixed<S: Simd>(
    s: S,
    context: &[u32],
    features: usize,
    vector: impl Fn(usize) -> S::V,
    sums: &mut [f32],
) {
    let mut lanes = [0.0f32; 16];
    for f in 0..features {
        // SAFETY: the array has room for the widest vector.
        unsafe { s.store(lanes.as_mut_ptr(), vector(f)) };
        for (&c, lane) in context.iter().zip(&lanes) {
            sums[f * PANEL + c as usize] += lane;
        }
    }
}
