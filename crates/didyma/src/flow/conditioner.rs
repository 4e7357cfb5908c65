//! The residual network that turns (θ_identity, x) into spline logits, forward and backward.
//!
//! ```text
//! h = W₀ [θ_id; x] + b₀
//! h = h + σ(C x + c) ⊙ (A₂ relu(A₁ relu(h) + a₁) + a₂)      for each block
//! logits = W_f h + b_f
//! ```
//!
//! W₀'s part for x and the gates σ(C x + c) depend on x alone: they are computed once per context.

use super::layout::{Dense, Gradient, Layer};
use super::tape::{LayerTape, Scratch};
use crate::kernel::*;

/// Context number of each row when every row is a context of its own.
static EACH_ITS_OWN: [u32; PANEL] = {
    let mut numbers = [0; PANEL];
    let mut i = 0;
    while i < PANEL {
        numbers[i] = i as u32;
        i += 1;
    }
    numbers
};

/// The rows that a conditioner runs over: pairs, or contexts where θ plays no part.
#[derive(Clone, Copy)]
pub(super) struct RowSet<'a> {
    /// Context of each row, whole lanes.
    pub context: &'a [u32],
    /// Contexts in use.
    pub contexts: usize,
}

impl<'a> RowSet<'a> {
    /// One row per context.
    pub fn contexts(contexts: usize) -> Self {
        Self { context: &EACH_ITS_OWN[..whole_lanes(contexts)], contexts }
    }

    fn context_lanes(&self) -> usize {
        whole_lanes(self.contexts)
    }

    fn len(&self) -> usize {
        self.context.len()
    }

    fn panels(self) -> impl Iterator<Item = (usize, &'a [u32])> {
        self.context.chunks(PANEL).enumerate()
    }
}

/// Features `p`-th panel of a buffer of panels.
pub(super) fn panel<F>(buffer: &[F], p: usize, features: usize) -> &[F] {
    &buffer[p * features * PANEL..][..features * PANEL]
}

/// As [`panel`], to write to.
pub(super) fn panel_mut<F>(buffer: &mut [F], p: usize, features: usize) -> &mut [F] {
    &mut buffer[p * features * PANEL..][..features * PANEL]
}

/// Zeroes the first rows of every feature.
fn clear_rows<F: Real>(panel: &mut [F], rows: usize) {
    panel.chunks_exact_mut(PANEL).for_each(|feature| feature[..rows].fill(F::zero()));
}

/// From the gradient of σ(a) to that of a: σ' = σ (1 − σ).
fn sigmoid_gradient<F: Real>(d: &mut [F], sigmoid: &[F], rows: usize) {
    for (d, sigmoid) in d.chunks_exact_mut(PANEL).zip(sigmoid.chunks_exact(PANEL)) {
        for (d, &g) in d[..rows].iter_mut().zip(sigmoid) {
            *d *= g * (F::one() - g);
        }
    }
}

/// A conditioner at work: its shape, parameters and kernels.
#[derive(Clone, Copy)]
pub(super) struct Conditioner<'a, F: Real> {
    pub layer: &'a Layer,
    pub params: &'a [F],
    pub kernels: &'static Kernels<F>,
}

impl<F: Real> Conditioner<'_, F> {
    fn units(&self) -> usize {
        self.layer.initial.outputs
    }

    fn known(&self) -> usize {
        self.layer.identity.len()
    }

    /// Everything that depends on x alone; then the rows, panel by panel.
    pub fn forward(
        &self,
        rows: RowSet,
        x: &[F],
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        self.context_part(rows.context_lanes(), x, tape, scratch);
        for (p, context) in rows.panels() {
            self.panel_forward(p, context, tape, scratch);
        }
    }

    fn context_part(
        &self,
        contexts: usize,
        x: &[F],
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let Self { layer, params, kernels: k } = *self;
        let initial = &layer.initial;
        let context_map = |dense: &Dense, columns, output: &mut [F]| {
            (k.affine)(AffineJob {
                weights: dense.columns(params, columns),
                start: Start::Bias(dense.bias(params)),
                finish: Finish::Plain,
                rows: contexts,
                input: x,
                output,
            });
        };
        context_map(initial, self.known()..initial.inputs, &mut scratch.from_context);
        for (block, gate) in layer.blocks.iter().zip(&mut tape.gates) {
            context_map(&block.context, 0..block.context.inputs, gate);
            (k.sigmoid)(gate, contexts);
        }
    }

    fn panel_forward(
        &self,
        p: usize,
        context: &[u32],
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let Self { layer, params, kernels: k } = *self;
        let units = self.units();
        let by_context = ContextRows { context, features: units };
        let rows = context.len();
        let hidden = &mut scratch.hidden;
        let first_output = match tape.blocks.first_mut() {
            Some(block) => panel_mut(&mut block.rectified, p, units),
            None => panel_mut(&mut tape.hidden, p, units),
        };
        (k.expand)(&by_context, &scratch.from_context, hidden);
        (k.affine)(AffineJob {
            weights: layer.initial.columns(params, 0..self.known()),
            start: Start::Output(first_output),
            finish: Finish::Plain,
            rows,
            input: panel(&tape.identity, p, self.known()),
            output: hidden,
        });
        if layer.blocks.is_empty() {
            panel_mut(&mut tape.hidden, p, units).copy_from_slice(hidden);
        }
        for (b, block) in layer.blocks.iter().enumerate() {
            let (now, after) = tape.blocks[b..].split_at_mut(1);
            let now = &mut now[0];
            (k.affine)(AffineJob {
                weights: block.first.weights(params),
                start: Start::Bias(block.first.bias(params)),
                finish: Finish::Relu,
                rows,
                input: panel(&now.rectified, p, units),
                output: panel_mut(&mut now.inner, p, units),
            });
            (k.affine)(AffineJob {
                weights: block.second.weights(params),
                start: Start::Bias(block.second.bias(params)),
                finish: Finish::Plain,
                rows,
                input: panel(&now.inner, p, units),
                output: panel_mut(&mut now.value, p, units),
            });
            let (output, relu) = match after.first_mut() {
                Some(next) => (&mut next.rectified, true),
                None => (&mut tape.hidden, false),
            };
            (k.gate)(GateJob {
                rows: by_context,
                gate: &tape.gates[b],
                value: panel(&now.value, p, units),
                hidden,
                output: panel_mut(output, p, units),
                relu,
            });
        }
        (k.affine)(AffineJob {
            weights: layer.last.weights(params),
            start: Start::Bias(layer.last.bias(params)),
            finish: Finish::Plain,
            rows,
            input: panel(&tape.hidden, p, units),
            output: panel_mut(&mut tape.logits, p, layer.last.outputs),
        });
    }

    /// Given the gradient of the logits in `tape.logits`: writes the gradient of the
    /// parameters and leaves that of h, before it met θ_id, in `scratch.d_hidden`.
    pub fn backward(
        &self,
        rows: RowSet,
        x: &[F],
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
        gradient: &mut Gradient<F>,
    ) {
        let Self { layer, params, kernels: k } = *self;
        let units = self.units();
        let LayerTape { identity, gates, blocks, hidden, logits, .. } = tape;
        let Scratch { d_hidden, d_value, d_inner, d_gate, transposed, .. } = scratch;

        self.weight_gradient(&layer.last, rows.len(), logits, hidden, transposed, gradient);
        for (p, context) in rows.panels() {
            (k.affine_input_gradient)(InputGradientJob {
                weights: layer.last.weights(params),
                mask: None,
                accumulate: false,
                rows: context.len(),
                d_output: panel(logits, p, layer.last.outputs),
                d_input: panel_mut(d_hidden, p, units),
            });
        }
        for ((block, saved), gate) in layer.blocks.iter().zip(blocks).zip(gates).rev() {
            clear_rows(d_gate, rows.context_lanes());
            for (p, context) in rows.panels() {
                (k.gate_gradient)(GateGradientJob {
                    rows: ContextRows { context, features: units },
                    gate,
                    value: panel(&saved.value, p, units),
                    d_hidden: panel(d_hidden, p, units),
                    d_value: panel_mut(d_value, p, units),
                    d_gate,
                });
                (k.affine_input_gradient)(InputGradientJob {
                    weights: block.second.weights(params),
                    mask: Some(panel(&saved.inner, p, units)),
                    accumulate: false,
                    rows: context.len(),
                    d_output: panel(d_value, p, units),
                    d_input: panel_mut(d_inner, p, units),
                });
                (k.affine_input_gradient)(InputGradientJob {
                    weights: block.first.weights(params),
                    mask: Some(panel(&saved.rectified, p, units)),
                    accumulate: true,
                    rows: context.len(),
                    d_output: panel(d_inner, p, units),
                    d_input: panel_mut(d_hidden, p, units),
                });
            }
            let (second, first) = (&block.second, &block.first);
            self.weight_gradient(second, rows.len(), d_value, &saved.inner, transposed, gradient);
            self.weight_gradient(
                first,
                rows.len(),
                d_inner,
                &saved.rectified,
                transposed,
                gradient,
            );
            sigmoid_gradient(d_gate, gate, rows.contexts);
            self.weight_gradient(&block.context, rows.contexts, d_gate, x, transposed, gradient);
        }
        self.initial_gradient(rows, identity, x, scratch, gradient);
    }

    fn initial_gradient(
        &self,
        rows: RowSet,
        identity: &[F],
        x: &[F],
        scratch: &mut Scratch<F>,
        gradient: &mut Gradient<F>,
    ) {
        let (initial, k) = (&self.layer.initial, self.kernels);
        let Scratch { d_hidden, from_context: d_context, transposed, .. } = scratch;
        clear_rows(d_context, rows.context_lanes());
        for (p, context) in rows.panels() {
            let by_context = ContextRows { context, features: self.units() };
            (k.collect)(&by_context, panel(d_hidden, p, self.units()), d_context);
        }
        let accumulate = gradient.accumulate;
        let (d_weights, d_bias) = initial.split(gradient.sum);
        (k.affine_weight_gradient)(WeightGradientJob {
            outputs: initial.outputs,
            inputs: self.known(),
            rows: rows.len(),
            accumulate,
            d_output: d_hidden,
            input: identity,
            d_weights,
            stride: initial.inputs,
            d_bias: None,
            scratch: transposed,
        });
        (k.affine_weight_gradient)(WeightGradientJob {
            outputs: initial.outputs,
            inputs: initial.inputs - self.known(),
            rows: rows.contexts,
            accumulate,
            d_output: d_context,
            input: x,
            d_weights: &mut d_weights[self.known()..],
            stride: initial.inputs,
            d_bias: Some(d_bias),
            scratch: transposed,
        });
    }

    fn weight_gradient(
        &self,
        dense: &Dense,
        rows: usize,
        d_output: &[F],
        input: &[F],
        scratch: &mut [F],
        gradient: &mut Gradient<F>,
    ) {
        let (d_weights, d_bias) = dense.split(gradient.sum);
        (self.kernels.affine_weight_gradient)(WeightGradientJob {
            outputs: dense.outputs,
            inputs: dense.inputs,
            rows,
            accumulate: gradient.accumulate,
            d_output,
            input,
            d_weights,
            stride: dense.inputs,
            d_bias: Some(d_bias),
            scratch,
        });
    }
}
