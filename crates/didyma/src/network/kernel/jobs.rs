//! What each kernel is given: borrowed panels, weights and options, with their shapes checked once.

use super::{LANE, PANEL, whole_lanes};

/// A weight matrix inside the flat parameter vector, `outputs` × `inputs`, row-major.
///
/// `stride` numbers lie between the starts of two rows, so that a part of the columns is a matrix too.
#[derive(Clone, Copy, Debug)]
pub struct Weights<'a, F> {
    /// The numbers, from the first of the first row on.
    pub data: &'a [F],
    /// Number of rows.
    pub outputs: usize,
    /// Number of columns.
    pub inputs: usize,
    /// Distance between rows.
    pub stride: usize,
}

/// What surrounds the product W · input.
#[derive(Debug)]
pub enum Mode<'a, F> {
    /// output = bias + W · input
    Plain(&'a [F]),
    /// output = max(bias + W · input, 0)
    Relu(&'a [F]),
    /// output = output + W · input, and this panel receives max(output, 0).
    Add(&'a mut [F]),
}

/// The product of a matrix and a panel, in one of three modes.
#[derive(Debug)]
pub struct AffineJob<'a, F> {
    /// W.
    pub weights: Weights<'a, F>,
    /// What surrounds the product.
    pub mode: Mode<'a, F>,
    /// Rows in use.
    pub rows: usize,
    /// `inputs` features.
    pub input: &'a [F],
    /// `outputs` features.
    pub output: &'a mut [F],
}

/// d_input = \[d_input +\] mask ⊙ (Wᵀ · d_output).
#[derive(Debug)]
pub struct InputGradientJob<'a, F> {
    /// W.
    pub weights: Weights<'a, F>,
    /// Rectified activations: the gradient passes only where they are positive.
    pub mask: Option<&'a [F]>,
    /// Add to `d_input` instead of replacing it.
    pub accumulate: bool,
    /// Rows in use.
    pub rows: usize,
    /// `outputs` features.
    pub d_output: &'a [F],
    /// `inputs` features.
    pub d_input: &'a mut [F],
}

/// d_weights = \[d_weights +\] Σ over all rows of several panels of d_output ⊗ input, and
/// d_bias = \[d_bias +\] Σ d_output.
#[derive(Debug)]
pub struct WeightGradientJob<'a, F> {
    /// Features of `d_output`, rows of `d_weights`.
    pub outputs: usize,
    /// Features of `input`, columns of `d_weights`.
    pub inputs: usize,
    /// Rows in use, over all panels; up to the next whole lane, `d_output` is zero.
    pub rows: usize,
    /// Add to `d_weights` and `d_bias` instead of replacing them.
    pub accumulate: bool,
    /// Panels of `outputs` features.
    pub d_output: &'a [F],
    /// Panels of `inputs` features.
    pub input: &'a [F],
    /// Rows of `inputs` numbers, `stride` apart.
    pub d_weights: &'a mut [F],
    /// Distance between rows of `d_weights`.
    pub stride: usize,
    /// One number per output.
    pub d_bias: Option<&'a mut [F]>,
    /// At least [`transpose_size`] numbers.
    pub scratch: &'a mut [F],
}

/// Numbers of scratch that the weight gradient needs for this many rows and inputs.
pub const fn transpose_size(rows: usize, inputs: usize) -> usize {
    whole_lanes(rows) * inputs.next_multiple_of(LANE)
}

/// Which context each row of a panel belongs to; contexts rise by 0 or 1 from row to row.
#[derive(Clone, Copy, Debug)]
pub struct ContextRows<'a> {
    /// Context of each row, below [`PANEL`]; its length is the number of rows in use.
    pub context: &'a [u32],
    /// Features per row.
    pub features: usize,
}

/// hidden += value ⊙ gate\[context of the row\]; `output` receives it, rectified if `relu`.
#[derive(Debug)]
pub struct GateJob<'a, F> {
    /// Contexts of the rows.
    pub rows: ContextRows<'a>,
    /// Gate of each context, a panel of contexts.
    pub gate: &'a [F],
    /// What is gated.
    pub value: &'a [F],
    /// The residual stream, updated in place.
    pub hidden: &'a mut [F],
    /// What the next layer reads.
    pub output: &'a mut [F],
    /// Rectify `output`.
    pub relu: bool,
}

/// d_value = d_hidden ⊙ gate; d_gate\[context\] += Σ over its rows of d_hidden ⊙ value.
#[derive(Debug)]
pub struct GateGradientJob<'a, F> {
    /// Contexts of the rows.
    pub rows: ContextRows<'a>,
    /// Gate of each context.
    pub gate: &'a [F],
    /// What was gated.
    pub value: &'a [F],
    /// Gradient of the residual stream.
    pub d_hidden: &'a [F],
    /// Receives the gradient of `value`.
    pub d_value: &'a mut [F],
    /// Adds up the gradient of the gates, a panel of contexts.
    pub d_gate: &'a mut [F],
}

/// The activation φ(a) = a σ(a) of a panel, and its derivatives where they are asked for.
#[derive(Debug)]
pub struct SiluJob<'a, F> {
    /// Rows in use.
    pub rows: usize,
    /// a; its length says how many features there are.
    pub input: &'a [F],
    /// Receives φ.
    pub value: &'a mut [F],
    /// Receives φ′ = σ (1 + a (1 − σ)).
    pub slope: Option<&'a mut [F]>,
    /// Receives φ″ = σ (1 − σ) (2 + a (1 − 2σ)).
    pub curvature: Option<&'a mut [F]>,
}

/// The shape of a spline, the same for every layer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SplineShape {
    /// K, the number of bins.
    pub bins: usize,
    /// B: the spline acts on \[−B, B\] and is the identity outside.
    pub bound: f64,
    /// Width and height logits are multiplied by this before the softmax.
    pub logit_scale: f64,
}

impl SplineShape {
    /// Numbers that describe one spline: K widths, K heights, K − 1 interior derivatives.
    pub const fn logits(&self) -> usize {
        3 * self.bins - 1
    }
}

/// One transformed feature of one panel through its spline.
#[derive(Debug)]
pub struct SplineJob<'a, F> {
    /// Bins and bound.
    pub shape: SplineShape,
    /// Rows in use.
    pub rows: usize,
    /// Logits; the widths and heights are replaced by their softmax, which the gradient reads.
    pub logits: &'a mut [F],
    /// Where the spline is evaluated; replaced by its value.
    pub value: &'a mut [F],
    /// log dy/dx is added here, whichever way the spline is gone.
    pub log_det: &'a mut [F],
}

/// The gradient of one spline.
#[derive(Debug)]
pub struct SplineGradientJob<'a, F> {
    /// Bins and bound.
    pub shape: SplineShape,
    /// Rows in use.
    pub rows: usize,
    /// What [`SplineJob::logits`] was left as; replaced by the gradient of the logits.
    pub logits: &'a mut [F],
    /// Where the spline was evaluated.
    pub input: &'a [F],
    /// Gradient of its value; replaced by the gradient of its input.
    pub d_value: &'a mut [F],
    /// Gradient of its log-derivative.
    pub d_log_det: &'a [F],
}

/// First moments below this are set to 0. It is far below what moves a weight beside ε = 1e-8, and those of a unit that
/// is never active would decay into subnormal numbers, of which each costs some CPUs a hundred cycles.
pub const LEAST_M: f64 = 1e-17;
/// The same of second moments.
pub const LEAST_V: f64 = 1e-30;

/// One Adam update of a block: m, v are the moments, `rate` and `v_scale` carry the bias corrections.
#[derive(Debug)]
pub struct AdamJob<'a, F> {
    /// The weights.
    pub weights: &'a mut [F],
    /// Their gradient.
    pub gradient: &'a [F],
    /// First moments.
    pub m: &'a mut [F],
    /// Second moments.
    pub v: &'a mut [F],
    /// The numbers of this step.
    pub step: AdamStep,
}

/// The numbers of one Adam step, the same for every parameter.
#[derive(Clone, Copy, Debug)]
pub struct AdamStep {
    /// The gradient is multiplied by this first (clipping).
    pub gradient_scale: f64,
    /// λ · w is added to the gradient (coupled L2).
    pub coupled_decay: f64,
    /// The weights are multiplied by this first (decoupled decay).
    pub shrink: f64,
    /// β₁, the decay of the first moment, and 1 − β₁, which f32 would round.
    pub beta1: [f64; 2],
    /// β₂ and 1 − β₂ of the second moment.
    pub beta2: [f64; 2],
    /// Learning rate over (1 − β₁ᵗ).
    pub rate: f64,
    /// 1 over (1 − β₂ᵗ).
    pub v_scale: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
}

impl<F> Weights<'_, F> {
    /// Panics unless the matrix lies inside its data.
    pub fn check(&self) {
        check_matrix(self.data, self.outputs, self.inputs, self.stride);
    }
}

/// Panics unless `data` holds `outputs` rows of `inputs` numbers, `stride` apart.
pub(super) fn check_matrix<F>(data: &[F], outputs: usize, inputs: usize, stride: usize) {
    let last_row = outputs.saturating_sub(1).checked_mul(stride);
    let end = last_row.and_then(|start| start.checked_add(inputs));
    let fits = end.is_some_and(|end| end <= data.len());
    assert!(outputs == 0 || inputs <= stride && fits, "the matrix lies inside its data");
}

/// Panics unless `panel` holds `features` features of `rows` whole-lane rows.
pub fn check_panel<F>(panel: &[F], features: usize, rows: usize) {
    assert!(rows <= PANEL && rows.is_multiple_of(LANE), "whole lanes of rows, at most a panel");
    check_size(panel, features, PANEL);
}

/// Panics unless `data` holds `count` times `size` numbers; the product cannot overflow unnoticed.
pub(super) fn check_size<F>(data: &[F], count: usize, size: usize) {
    let fits = count.checked_mul(size).is_some_and(|needed| needed <= data.len());
    assert!(fits, "the buffer is large enough");
}

impl<F> SiluJob<'_, F> {
    /// Panics unless every panel has room for the features of the input.
    pub(super) fn check(&self) {
        let features = self.input.len() / PANEL;
        check_panel(self.input, features, self.rows);
        check_panel(self.value, features, self.rows);
        for panel in [&self.slope, &self.curvature].into_iter().flatten() {
            check_panel(panel, features, self.rows);
        }
    }
}

impl SplineShape {
    /// Panics unless `logits` holds a panel of splines of this shape.
    pub(super) fn check<F>(&self, logits: &[F], rows: usize) {
        assert!((2..=1 << 16).contains(&self.bins), "a spline has at least two bins");
        check_panel(logits, self.logits(), rows);
    }
}

impl ContextRows<'_> {
    /// Panics unless contexts rise by at most one from row to row, below [`PANEL`]: then those of a
    /// vector of rows lie in a window as wide as the vector.
    pub(super) fn check(&self) {
        let mut steps = self.context.windows(2).map(|pair| pair[1].wrapping_sub(pair[0]));
        assert!(steps.all(|step| step <= 1), "contexts rise by 0 or 1 from row to row");
        assert!(self.context.iter().all(|&c| (c as usize) < PANEL), "contexts fit a panel");
    }
}
