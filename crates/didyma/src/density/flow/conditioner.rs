//! The residual network that turns (θ_identity, x) into spline logits.
//!
//! ```text
//! h = W₀ [θ_id; x] + b₀
//! h = h + σ(C x + c) ⊙ (A₂ relu(A₁ relu(h) + a₁) + a₂)      for each block
//! logits = W_f h + b_f
//! ```
//!
//! W₀'s part for x and the gates σ(C x + c) depend on x alone: they are computed once per context.

use super::layout::{Dense, Layer};
use super::tape::{BlockTape, LayerTape, Scratch, Tile};
use crate::network::kernel::*;

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
    /// One row per pair of the tile.
    pub(super) fn pairs<F: Real>(tile: &'a Tile<F>) -> Self {
        Self { context: &tile.context[..tile.rows()], contexts: tile.contexts }
    }

    /// One row per context.
    pub(super) fn contexts(contexts: usize) -> Self {
        Self { context: &EACH_ITS_OWN[..whole_lanes(contexts)], contexts }
    }

    pub(super) fn context_lanes(&self) -> usize {
        whole_lanes(self.contexts)
    }

    pub(super) fn len(&self) -> usize {
        self.context.len()
    }

    pub(super) fn panels(self) -> impl Iterator<Item = (usize, &'a [u32])> {
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

/// A conditioner at work: its shape, parameters and kernels.
#[derive(Clone, Copy)]
pub(super) struct Conditioner<'a, F: Real> {
    pub layer: &'a Layer,
    pub params: &'a [F],
    pub kernels: &'static Kernels<F>,
}

impl<F: Real> Conditioner<'_, F> {
    pub(super) fn units(&self) -> usize {
        self.layer.initial.outputs
    }

    pub(super) fn known(&self) -> usize {
        self.layer.identity.len()
    }

    /// Everything that depends on x alone; then the rows, panel by panel.
    pub(super) fn forward(
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
                mode: Mode::Plain(dense.bias(params)),
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

    /// One panel of rows through the network; h, the residual stream, lives in `scratch.hidden`.
    fn panel_forward(
        &self,
        p: usize,
        context: &[u32],
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let Self { layer, params, kernels: k } = *self;
        let by_context = ContextRows { context, features: self.units() };
        let hidden = &mut scratch.hidden;
        (k.expand)(&by_context, &scratch.from_context, hidden);
        let first_output = match tape.blocks.first_mut() {
            Some(block) => &mut block.rectified,
            None => &mut tape.hidden,
        };
        (k.affine)(AffineJob {
            weights: layer.initial.columns(params, 0..self.known()),
            mode: Mode::Add(panel_mut(first_output, p, self.units())),
            rows: context.len(),
            input: panel(&tape.identity, p, self.known()),
            output: hidden,
        });
        if layer.blocks.is_empty() {
            panel_mut(&mut tape.hidden, p, self.units()).copy_from_slice(hidden);
        }
        for b in 0..layer.blocks.len() {
            self.block_forward(p, b, by_context, tape, hidden);
        }
        let input = panel(&tape.hidden, p, self.units());
        let output = panel_mut(&mut tape.logits, p, layer.last.outputs);
        self.dense(&layer.last, Mode::Plain, context.len(), input, output);
    }

    /// h += gate ⊙ second(relu(first(relu h))).
    fn block_forward(
        &self,
        p: usize,
        b: usize,
        rows: ContextRows,
        tape: &mut LayerTape<F>,
        hidden: &mut [F],
    ) {
        let (units, block) = (self.units(), &self.layer.blocks[b]);
        let (now, after) = tape.blocks[b..].split_at_mut(1);
        let BlockTape { rectified, inner, value } = &mut now[0];
        let [rectified, inner, value] =
            [rectified, inner, value].map(|buffer| panel_mut(buffer, p, units));
        self.dense(&block.first, Mode::Relu, rows.context.len(), rectified, inner);
        self.dense(&block.second, Mode::Plain, rows.context.len(), inner, value);
        let (output, relu) = match after.first_mut() {
            Some(next) => (&mut next.rectified, true),
            None => (&mut tape.hidden, false),
        };
        let (gate, output) = (&tape.gates[b], panel_mut(output, p, units));
        (self.kernels.gate)(GateJob { rows, gate, value, hidden, output, relu });
    }

    /// One affine map of the network on one panel.
    fn dense<'a>(
        &'a self,
        dense: &Dense,
        mode: impl Fn(&'a [F]) -> Mode<'a, F>,
        rows: usize,
        input: &'a [F],
        output: &'a mut [F],
    ) {
        let (weights, mode) = (dense.weights(self.params), mode(dense.bias(self.params)));
        (self.kernels.affine)(AffineJob { weights, mode, rows, input, output });
    }
}
