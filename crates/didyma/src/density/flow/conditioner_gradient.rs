//! The residual network backward: from the gradient of its logits to that of its parameters and input.

use super::conditioner::{Conditioner, RowSet, panel, panel_mut};
use super::layout::{Block, Dense, Gradient};
use super::tape::{BlockTape, LayerTape, Scratch};
use crate::network::kernel::*;

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

impl<F: Real> Conditioner<'_, F> {
    /// Given the gradient of the logits in `tape.logits`: writes the gradient of the
    /// parameters and leaves that of h, before it met θ_id, in `scratch.d_hidden`.
    pub(super) fn backward(
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
        self.weight_gradient(
            &layer.last,
            rows.len(),
            logits,
            hidden,
            &mut scratch.transposed,
            gradient,
        );
        for (p, context) in rows.panels() {
            (k.affine_input_gradient)(InputGradientJob {
                weights: layer.last.weights(params),
                mask: None,
                accumulate: false,
                rows: context.len(),
                d_output: panel(logits, p, layer.last.outputs),
                d_input: panel_mut(&mut scratch.d_hidden, p, units),
            });
        }
        for ((block, saved), gate) in layer.blocks.iter().zip(blocks).zip(gates).rev() {
            clear_rows(&mut scratch.d_gate, rows.context_lanes());
            for (p, context) in rows.panels() {
                self.block_gradient(p, context, block, saved, gate, scratch);
            }
            let Scratch { d_value, d_inner, d_gate, transposed, .. } = &mut *scratch;
            sigmoid_gradient(d_gate, gate, rows.contexts);
            let BlockTape { rectified, inner, .. } = saved;
            self.weight_gradient(&block.second, rows.len(), d_value, inner, transposed, gradient);
            self.weight_gradient(
                &block.first,
                rows.len(),
                d_inner,
                rectified,
                transposed,
                gradient,
            );
            self.weight_gradient(&block.context, rows.contexts, d_gate, x, transposed, gradient);
        }
        self.initial_gradient(rows, identity, x, scratch, gradient);
    }

    /// One panel back through a residual block: the gradient of the stream in `scratch.d_hidden`
    /// becomes that before the block.
    fn block_gradient(
        &self,
        p: usize,
        context: &[u32],
        block: &Block,
        saved: &BlockTape<F>,
        gate: &[F],
        scratch: &mut Scratch<F>,
    ) {
        let Self { params, kernels: k, .. } = *self;
        let (units, rows) = (self.units(), context.len());
        let Scratch { d_hidden, d_value, d_inner, d_gate, .. } = scratch;
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
            rows,
            d_output: panel(d_value, p, units),
            d_input: panel_mut(d_inner, p, units),
        });
        (k.affine_input_gradient)(InputGradientJob {
            weights: block.first.weights(params),
            mask: Some(panel(&saved.rectified, p, units)),
            accumulate: true,
            rows,
            d_output: panel(d_inner, p, units),
            d_input: panel_mut(d_hidden, p, units),
        });
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
