//! All the memory that one tile of pairs needs: what comes in, what the backward pass reads, scratch.
//!
//! A tape is made once and used again and again; nothing allocates while it is in use.

use super::SplineFlow;
use super::layout::Layer;
use super::linear::Factored;
use crate::network::kernel::{Aligned, Kernels, LANE, PANEL, Real, transpose_size, whole_lanes};

/// A tile: pairs (θ, x) in groups that share x, on their way through a flow and back.
///
/// Fill it with [`Tape::clear`], then for each group [`Tape::context`] and, for each of its θ,
/// [`Tape::pair`]. At most [`Tape::CONTEXTS`] contexts fit.
#[derive(Debug)]
pub struct Tape<F: Real> {
    pub(super) kernels: &'static Kernels<F>,
    pub(super) tile: Tile<F>,
    pub(super) layers: Vec<LayerTape<F>>,
    pub(super) scratch: Scratch<F>,
}

/// What comes in and what goes out.
#[derive(Debug)]
pub(super) struct Tile<F> {
    capacity: usize,
    pub pairs: usize,
    pub contexts: usize,
    /// Context of each pair; the padding rows repeat the last.
    pub context: Vec<u32>,
    /// One panel of contexts.
    pub x: Aligned<F>,
    /// Panels that go from θ to z (or back, for sampling).
    pub z: Aligned<F>,
    /// Log-density of each pair, then its gradient while going back.
    pub log_q: Aligned<F>,
    dims: (usize, usize),
}

/// What one layer keeps for its gradient.
#[derive(Debug)]
pub(super) struct LayerTape<F> {
    pub input: Aligned<F>,
    pub identity: Aligned<F>,
    /// Per block, a panel of contexts.
    pub gates: Vec<Aligned<F>>,
    pub blocks: Vec<BlockTape<F>>,
    pub hidden: Aligned<F>,
    /// Logits as the conditioner gives them: by pair, or by context where it sees x alone.
    pub logits: Aligned<F>,
    /// Logits by pair, where `logits` are by context; else empty.
    pub pair_logits: Aligned<F>,
    pub coupled: Aligned<F>,
    pub factored: Factored<F>,
}

/// relu(h), relu(first(·)) and second(·) of a residual block.
#[derive(Debug)]
pub(super) struct BlockTape<F> {
    pub rectified: Aligned<F>,
    pub inner: Aligned<F>,
    pub value: Aligned<F>,
}

#[derive(Debug)]
pub(super) struct Scratch<F> {
    /// Units × contexts: what the first layer owes to x, and its gradient.
    pub from_context: Aligned<F>,
    pub d_gate: Aligned<F>,
    /// One panel of units.
    pub hidden: Aligned<F>,
    /// Panels of units, for the whole tile.
    pub d_hidden: Aligned<F>,
    pub d_value: Aligned<F>,
    pub d_inner: Aligned<F>,
    /// Panels of θ.
    pub d_z: Aligned<F>,
    pub d_identity: Aligned<F>,
    pub transposed: Aligned<F>,
}

impl<F: Real> Tape<F> {
    /// Contexts that fit one tape.
    pub const CONTEXTS: usize = PANEL;

    /// A tape for up to `pairs` pairs, on the fastest kernels of this CPU.
    pub fn new(flow: &SplineFlow, pairs: usize) -> Self {
        Self::with_kernels(flow, pairs, F::kernels())
    }

    /// A tape on given kernels.
    pub fn with_kernels(flow: &SplineFlow, pairs: usize, kernels: &'static Kernels<F>) -> Self {
        let config = &flow.config;
        let panels = pairs.div_ceil(PANEL).max(1);
        let by_pair = |features: usize| Aligned::zeros(panels * features * PANEL);
        let by_context = |features: usize| Aligned::zeros(features * PANEL);
        let (dim, units) = (config.theta_dim, config.units);
        let widest = units.max(config.x_dim).max(dim);
        Self {
            kernels,
            tile: Tile {
                capacity: panels * PANEL,
                pairs: 0,
                contexts: 0,
                context: vec![0; panels * PANEL],
                x: by_context(config.x_dim),
                z: by_pair(dim),
                log_q: by_pair(1),
                dims: (dim, config.x_dim),
            },
            layers: flow
                .layout
                .layers
                .iter()
                .map(|l| LayerTape::new(l, panels, dim, units))
                .collect(),
            scratch: Scratch {
                from_context: by_context(units),
                d_gate: by_context(units),
                hidden: by_context(units),
                d_hidden: by_pair(units),
                d_value: by_pair(units),
                d_inner: by_pair(units),
                d_z: by_pair(dim),
                d_identity: by_context(dim),
                transposed: Aligned::zeros(transpose_size(panels * PANEL, widest)),
            },
        }
    }

    /// Forgets all pairs.
    pub fn clear(&mut self) {
        self.tile.pairs = 0;
        self.tile.contexts = 0;
    }

    /// Starts a group: the pairs that follow share this x, already scaled.
    pub fn context(&mut self, x: impl IntoIterator<Item = F>) {
        let tile = &mut self.tile;
        assert!(tile.contexts < PANEL, "a tape holds at most {PANEL} contexts");
        let used = tile.pairs > 0 && tile.context[tile.pairs - 1] as usize + 1 == tile.contexts;
        assert!(tile.contexts == 0 || used, "every context has a pair");
        write_row(&mut tile.x, tile.contexts, tile.dims.1, x);
        tile.contexts += 1;
    }

    /// Adds a pair of this θ, already scaled, and the last context.
    pub fn pair(&mut self, theta: impl IntoIterator<Item = F>) {
        let tile = &mut self.tile;
        assert!(tile.contexts > 0, "a pair needs a context first");
        assert!(tile.pairs < tile.capacity, "this tape holds at most {} pairs", tile.capacity);
        let (panel, row) = (tile.pairs / PANEL, tile.pairs % PANEL);
        write_row(&mut tile.z[panel * tile.dims.0 * PANEL..], row, tile.dims.0, theta);
        tile.context[tile.pairs] = tile.contexts as u32 - 1;
        tile.pairs += 1;
    }

    /// Log-density of each pair, in the order they were added.
    pub fn log_q(&self) -> &[F] {
        &self.tile.log_q[..self.tile.pairs]
    }

    /// Feature `f` of pair `i`: of z after [`SplineFlow::forward`], of θ after [`SplineFlow::inverse`].
    pub fn output(&self, i: usize, f: usize) -> F {
        self.tile.z[(i / PANEL * self.tile.dims.0 + f) * PANEL + i % PANEL]
    }
}

/// Writes one row of a panel; panics unless there are as many values as features.
fn write_row<F>(panel: &mut [F], row: usize, features: usize, values: impl IntoIterator<Item = F>) {
    let mut values = values.into_iter();
    for feature in panel.chunks_exact_mut(PANEL).take(features) {
        feature[row] = values.next().expect("a value for each feature");
    }
    assert!(values.next().is_none(), "no more values than features");
}

impl<F: Real> Tile<F> {
    /// Makes the padding harmless: finite numbers, an existing context.
    pub(super) fn pad(&mut self) {
        let (pairs, rows, contexts, dim) = (self.pairs, self.rows(), self.contexts, self.dims.0);
        let last = contexts.saturating_sub(1) as u32;
        self.context[pairs..rows].fill(last);
        for row in pairs..rows {
            for f in 0..dim {
                self.z[(row / PANEL * dim + f) * PANEL + row % PANEL] = F::zero();
            }
        }
        for feature in self.x.chunks_exact_mut(PANEL) {
            feature[contexts..whole_lanes(contexts)].fill(F::zero());
        }
    }

    /// Rows in use, in whole lanes.
    pub(super) fn rows(&self) -> usize {
        whole_lanes(self.pairs)
    }

    pub(super) fn panels(&self) -> usize {
        self.pairs.div_ceil(PANEL)
    }

    /// Rows in use of panel `p`.
    pub(super) fn panel_rows(&self, p: usize) -> usize {
        (self.rows() - p * PANEL).min(PANEL)
    }
}

impl<F: Real> LayerTape<F> {
    fn new(layer: &Layer, panels: usize, dim: usize, units: usize) -> Self {
        let by_pair = |features: usize| Aligned::zeros(panels * features * PANEL);
        let shared = layer.identity.is_empty();
        let conditioner_panels = if shared { 1 } else { panels };
        let by_row = |features: usize| Aligned::zeros(conditioner_panels * features * PANEL);
        let block =
            || BlockTape { rectified: by_row(units), inner: by_row(units), value: by_row(units) };
        Self {
            input: by_pair(dim),
            identity: by_pair(layer.identity.len()),
            gates: layer.blocks.iter().map(|_| Aligned::zeros(units * PANEL)).collect(),
            blocks: layer.blocks.iter().map(|_| block()).collect(),
            hidden: by_row(units),
            logits: by_row(layer.last.outputs),
            pair_logits: by_pair(if shared { layer.last.outputs } else { 0 }),
            coupled: by_pair(dim),
            factored: Factored::zeros(dim),
        }
    }
}

const _: () = assert!(PANEL.is_multiple_of(LANE));
