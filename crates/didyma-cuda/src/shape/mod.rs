//! What the kernels are compiled for: a flow's shape, the tile, and where every weight lies on the device.
//!
//! The weights of a layer are copied, whenever they change, into *images*: the order and padding in which a block reads
//! them, stage by stage. On the way forward a matrix is input-major, on the way back output-major, so that both products
//! read neighbouring numbers.

mod header;
mod places;

use didyma::{FlowConfig, SplineFlow};

/// Blocks of a step that each keep a gradient of their own: one for each multiprocessor of an H200, and the same number
/// everywhere, so that sums have one order.
pub(crate) const GRADIENTS: usize = 132;
/// Stages of weights that are on their way while one is at work.
const AHEAD: usize = 1;
/// Threads that bring weights and keep the tape, and that compute gradients of weights.
const FORWARD_HELPERS: usize = 128;
const BACKWARD_HELPERS: usize = 256;
/// Threads of a block in either direction.
pub(crate) const FORWARD_THREADS: usize = THREADS + FORWARD_HELPERS;
pub(crate) const BACKWARD_THREADS: usize = THREADS + BACKWARD_HELPERS;
/// Floats of a slab of weights, at most: larger matrices come in several.
const SLAB: usize = 4096;

/// Threads of a block that compute, and numbers of rows that they share: each takes neighbouring rows of four columns.
const THREADS: usize = 128;
const ROW_GROUPS: usize = 8;

/// Rows of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Tiling {
    pub rows: usize,
}

impl Tiling {
    /// From small to large. A small step needs many small tiles to keep the multiprocessors busy.
    pub const ALL: [Self; 3] = [Self { rows: 8 }, Self { rows: 16 }, Self { rows: 32 }];

    /// The smallest with which every block has one tile, or the largest; of those that `fit`.
    pub fn of(rows: usize, fit: impl Fn(Self) -> bool) -> Option<Self> {
        let mut fitting = Self::ALL.into_iter().filter(|&tiling| fit(tiling)).peekable();
        while let Some(tiling) = fitting.next() {
            if rows <= GRADIENTS * tiling.rows || fitting.peek().is_none() {
                return Some(tiling);
            }
        }
        None
    }
}

/// Where one affine map lies in the flat vector of parameters.
#[derive(Clone, Copy, Debug)]
struct Map {
    weight: usize,
    bias: usize,
}

/// Where the parameters of a layer lie.
#[derive(Clone, Debug)]
struct LayerPlaces {
    known: usize,
    initial: Map,
    context: Vec<Map>,
    first: Vec<Map>,
    second: Vec<Map>,
    last: Map,
    linear: [usize; 4],
}

/// Stages of a layer's image: where each begins, and where the last ends.
#[derive(Clone, Debug, Default)]
struct Stages {
    offsets: Vec<usize>,
    /// For each stage, the matrix that begins with it.
    matrix: Vec<i32>,
    end: usize,
}

impl Stages {
    fn stage(&mut self, floats: usize, matrix: i32) -> usize {
        let at = self.end;
        self.offsets.push(at);
        self.matrix.push(matrix);
        self.end += padded(floats);
        at
    }

    /// A matrix of `inner` rows in slabs, the last with `more` numbers after it; returns its place.
    fn matrix(&mut self, inner: usize, columns: usize, more: usize, matrix: i32) -> usize {
        let (slab, at) = (slab_rows(columns), self.end);
        for start in (0..inner).step_by(slab) {
            let rows = slab.min(inner - start);
            let last = start + rows == inner;
            let more = if last { more } else { 0 };
            self.stage(rows * columns + more, if start == 0 { matrix } else { -1 });
        }
        at
    }

    fn longest(&self) -> usize {
        let ends = self.offsets[1..].iter().chain([&self.end]);
        ends.zip(&self.offsets).map(|(end, start)| end - start).max().unwrap_or(0)
    }
}

fn padded(n: usize) -> usize {
    n.next_multiple_of(4)
}

fn slab_rows(columns: usize) -> usize {
    (SLAB / columns).max(1)
}

/// A flow as the kernels see it.
#[derive(Clone, Debug)]
pub(crate) struct Shape {
    pub config: FlowConfig,
    pub params: usize,
    layers: Vec<LayerPlaces>,
    known: usize,
    splines: usize,
    spline_logits: usize,
    logits: usize,
    units_padded: usize,
    logits_padded: usize,
    known_padded: usize,
    forward: Stages,
    backward: Stages,
    forward_factors: usize,
    forward_linear: usize,
    /// Places of matrices in the images of a layer: (first, second) of each block, last; and back: last, blocks, initial.
    forward_matrices: Vec<usize>,
    backward_matrices: Vec<usize>,
}

impl Shape {
    pub fn new(flow: &SplineFlow) -> Self {
        let config = flow.config().clone();
        let (dim, units) = (config.theta_dim, config.units);
        let known = if dim == 1 { 0 } else { dim.div_ceil(2) };
        let splines = dim.div_ceil(2);
        let spline_logits = 3 * config.bins - 1;
        let logits = splines * spline_logits;
        let (units_padded, logits_padded, known_padded) =
            (padded(units), padded(logits), padded(known.max(1)));
        let mut forward = Stages::default();
        forward.stage(known * units_padded + 2 * dim * dim + dim, -1);
        let mut forward_matrices = Vec::new();
        for _ in 0..2 * config.blocks {
            forward_matrices.push(forward.matrix(units, units_padded, units_padded, -1));
        }
        let after_last = logits_padded + dim * dim + dim + 1;
        forward_matrices.push(forward.matrix(units, logits_padded, after_last, -1));
        // Slabs before the last have no padding: their rows are whole quads.
        let forward_linear =
            forward_matrices[2 * config.blocks] + units * logits_padded + logits_padded;
        let mut backward = Stages::default();
        backward.stage(3 * dim * dim + dim, -1);
        let mut backward_matrices = vec![backward.matrix(logits, units_padded, 0, 0)];
        for m in 1..=2 * config.blocks {
            backward_matrices.push(backward.matrix(units, units_padded, 0, m as i32));
        }
        backward_matrices.push(backward.stage(units * known_padded, -1));
        Self {
            params: flow.params_len(),
            layers: (0..config.layers).map(|l| LayerPlaces::new(flow, l)).collect(),
            known,
            splines,
            spline_logits,
            logits,
            units_padded,
            logits_padded,
            known_padded,
            forward,
            backward,
            forward_factors: known * units_padded,
            forward_linear,
            forward_matrices,
            backward_matrices,
            config,
        }
    }

    /// Floats of the images of all layers: forward, backward, context.
    pub fn image_sizes(&self) -> [usize; 3] {
        [self.forward.end, self.backward.end, self.context_floats()].map(|n| n * self.config.layers)
    }

    fn context_width(&self) -> usize {
        (1 + self.config.blocks) * self.units_padded
    }

    fn context_floats(&self) -> usize {
        (self.config.x_dim + 1) * self.context_width()
    }

    /// Floats that a group's x is turned into.
    pub fn group_floats(&self) -> usize {
        self.config.layers * self.context_width()
    }

    /// Floats of a tile's tape.
    pub fn tape_floats(&self, tiling: Tiling) -> usize {
        let FlowConfig { theta_dim, layers, blocks, units, .. } = self.config;
        let features = 2 * theta_dim + (3 * blocks + 1) * units + self.logits;
        (layers * features + theta_dim) * tiling.rows
    }

    /// Floats between the gradients of two blocks.
    pub fn gradient_stride(&self) -> usize {
        padded(self.params)
    }

    /// Blocks that sum gradients, each with the norm of its parameters.
    pub fn norms(&self) -> usize {
        self.params.div_ceil(SUM_THREADS / 2)
    }

    fn ring(&self) -> usize {
        self.forward.longest().max(self.backward.longest())
    }

    /// Bytes of shared memory on the way forward.
    pub fn forward_shared(&self, tiling: Tiling) -> usize {
        let (dim, units) = (self.config.theta_dim, self.config.units);
        let features = 2 * dim + 2 * units + self.logits_padded + self.splines + 1;
        4 * ((AHEAD + 1) * self.ring() + features * (tiling.rows + 4))
    }

    /// Bytes of shared memory on the way back.
    pub fn backward_shared(&self, tiling: Tiling) -> usize {
        let FlowConfig { theta_dim: dim, units, blocks, x_dim, .. } = self.config;
        let features =
            2 * (AHEAD + 2) * units + 2 * self.logits + 6 * dim + 4 * units + (1 + blocks) * units;
        let features = features + x_dim + 2;
        4 * ((AHEAD + 1) * self.ring() + features * (tiling.rows + 4) + dim * dim + dim + 1)
    }
}

/// Rounds of 16 multiply-adds of a thread that measures the device's rate.
pub(crate) const PEAK_LENGTH: usize = 1 << 14;

/// Threads of the kernels that work on parameters.
pub(crate) const SUM_THREADS: usize = 256;

impl LayerPlaces {
    fn new(flow: &SplineFlow, l: usize) -> Self {
        let place = |name: String| {
            let name = format!("layers.{l}.{name}");
            let tensor = flow.tensors().iter().find(|tensor| tensor.name == name);
            tensor.expect("a flow has the tensors of its shape").range.start
        };
        let map = |name: String| Map {
            weight: place(format!("{name}.weight")),
            bias: place(format!("{name}.bias")),
        };
        let FlowConfig { theta_dim: dim, blocks, .. } = *flow.config();
        let maps =
            |name: &str| (0..blocks).map(|b| map(format!("blocks.{b}.{name}"))).collect::<Vec<_>>();
        let linear = ["bias", "lower", "upper", "diagonal"];
        Self {
            known: if dim == 1 { 0 } else { (dim + l % 2) / 2 },
            initial: map("initial".into()),
            context: maps("context"),
            first: maps("first"),
            second: maps("second"),
            last: map("last".into()),
            linear: linear.map(|name| place(format!("linear.{name}"))),
        }
    }
}
