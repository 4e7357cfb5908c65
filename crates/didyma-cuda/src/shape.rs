//! What the kernels are compiled for: a flow's shape, the tile, and where every weight lies on the device.
//!
//! The weights of a layer are copied, whenever they change, into *images*: the order and padding in which a block reads
//! them, stage by stage. On the way forward a matrix is input-major, on the way back output-major, so that both products
//! read neighbouring numbers.

use didyma::{FlowConfig, SplineFlow};
use std::fmt::Write;

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

    /// For each parameter its places in the images: forward (or, below −1, context), and backward; −1 for none.
    pub fn places(&self) -> Vec<[i32; 2]> {
        let mut places = vec![[-1; 2]; self.params];
        for (l, layer) in self.layers.iter().enumerate() {
            self.layer_places(l, layer, &mut places);
        }
        places
    }

    fn layer_places(&self, l: usize, layer: &LayerPlaces, places: &mut [[i32; 2]]) {
        let FlowConfig { units, blocks, x_dim, .. } = self.config;
        let (forward, backward) = (l * self.forward.end, l * self.backward.end);
        let context = |c: usize, column: usize| {
            -2 - (l * self.context_floats() + c * self.context_width() + column) as i32
        };
        let initial_back = backward + self.backward_matrices[2 * blocks + 1];
        let inputs = layer.known + x_dim;
        for u in 0..units {
            for i in 0..inputs {
                places[layer.initial.weight + u * inputs + i] = match i.checked_sub(layer.known) {
                    Some(c) => [context(c, u), -1],
                    None => [
                        (forward + i * self.units_padded + u) as i32,
                        (initial_back + u * self.known_padded + i) as i32,
                    ],
                };
            }
            places[layer.initial.bias + u][0] = context(x_dim, u);
            for (b, map) in layer.context.iter().enumerate() {
                let column = (1 + b) * self.units_padded + u;
                for c in 0..x_dim {
                    places[map.weight + u * x_dim + c][0] = context(c, column);
                }
                places[map.bias + u][0] = context(x_dim, column);
            }
        }
        let mut dense = |map: &Map, outputs: usize, padded: usize, ahead: usize, back: usize| {
            let (ahead, back) = (forward + ahead, backward + back);
            for o in 0..outputs {
                for i in 0..units {
                    places[map.weight + o * units + i] = [
                        (ahead + i * padded + o) as i32,
                        (back + o * self.units_padded + i) as i32,
                    ];
                }
                places[map.bias + o][0] = (ahead + units * padded + o) as i32;
            }
        };
        for b in 0..blocks {
            let (ahead, back) = (&self.forward_matrices, &self.backward_matrices);
            // Back, the last block comes first, and its second map before its first.
            let m = 2 * (blocks - 1 - b);
            dense(&layer.first[b], units, self.units_padded, ahead[2 * b], back[m + 2]);
            dense(&layer.second[b], units, self.units_padded, ahead[2 * b + 1], back[m + 1]);
        }
        let logits = (self.config.theta_dim - layer.known) * self.spline_logits;
        let ahead = self.forward_matrices[2 * blocks];
        dense(&layer.last, logits, self.logits_padded, ahead, self.backward_matrices[0]);
    }

    /// The constants that precede the kernels.
    pub fn header(&self, tiling: Tiling) -> String {
        let spline = self.config.spline();
        let interval = 2.0 * spline.bound;
        let smallest = didyma::kernel::MIN_BIN;
        let mut text = String::new();
        for (name, value) in [
            ("DIM", self.config.theta_dim),
            ("CONTEXT", self.config.x_dim),
            ("LAYERS", self.config.layers),
            ("BLOCKS", self.config.blocks),
            ("UNITS", self.config.units),
            ("BINS", self.config.bins),
            ("PARAMS", self.params),
            ("KNOWN", self.known),
            ("SPLINES", self.splines),
            ("SPLINE_LOGITS", self.spline_logits),
            ("LOGITS", self.logits),
            ("UNITS_PADDED", self.units_padded),
            ("LOGITS_PADDED", self.logits_padded),
            ("KNOWN_PADDED", self.known_padded),
            ("SLAB_UNITS", slab_rows(self.units_padded)),
            ("SLAB_LOGITS", slab_rows(self.logits_padded)),
            ("RING_SLOT", self.ring()),
            ("FORWARD_STAGES", self.forward.offsets.len()),
            ("FORWARD_FLOATS", self.forward.end),
            ("FORWARD_FACTORS", self.forward_factors),
            ("FORWARD_LINEAR", self.forward_linear),
            ("BACKWARD_STAGES", self.backward.offsets.len()),
            ("BACKWARD_FLOATS", self.backward.end),
            ("CONTEXT_FLOATS", self.context_floats()),
            ("GRADIENTS", GRADIENTS),
            ("GRADIENT_STRIDE", self.gradient_stride()),
            ("NORMS", self.norms()),
            ("AHEAD", AHEAD),
            ("FORWARD_HELPERS", FORWARD_HELPERS),
            ("BACKWARD_HELPERS", BACKWARD_HELPERS),
            ("ROWS", tiling.rows),
            ("ROWS_PER_THREAD", tiling.rows / ROW_GROUPS),
            ("THREADS", THREADS),
            ("PEAK_LENGTH", PEAK_LENGTH),
        ] {
            let _ = writeln!(text, "#define {name} {value}");
        }
        for (name, value) in [
            ("BOUND", spline.bound),
            ("LOGIT_SCALE", spline.logit_scale),
            ("FLOOR", interval * smallest),
            ("SLOPE", interval * (1.0 - smallest * self.config.bins as f64)),
            ("MIN_DERIVATIVE", didyma::kernel::MIN_DERIVATIVE),
            ("LEAST_FIRST", didyma::kernel::LEAST_M),
            ("LEAST_SECOND", didyma::kernel::LEAST_V),
        ] {
            let _ = writeln!(text, "#define {name} {:e}f", value as f32);
        }
        self.write_tables(&mut text);
        text
    }

    fn write_tables(&self, text: &mut String) {
        let mut table = |name: &str, values: &[String]| {
            let (count, values) = (values.len(), values.join(", "));
            let _ = writeln!(text, "__constant__ int {name}[{count}] = {{{values}}};");
        };
        for (name, stages) in [("FORWARD", &self.forward), ("BACKWARD", &self.backward)] {
            let ends = stages.offsets.iter().chain([&stages.end]).map(ToString::to_string);
            table(&format!("{name}_OFFSET"), &ends.collect::<Vec<_>>());
        }
        let matrices = self.backward.matrix.iter().map(ToString::to_string);
        table("BACKWARD_MATRIX", &matrices.collect::<Vec<_>>());
        let blocks = self.config.blocks.max(1);
        let _ = writeln!(
            text,
            "struct Places {{ int initial, initial_bias, last, last_bias, linear_bias, lower, upper, \
             diagonal, context[{blocks}], context_bias[{blocks}], first[{blocks}], first_bias[{blocks}], \
             second[{blocks}], second_bias[{blocks}]; }};"
        );
        let layers: Vec<String> = self.layers.iter().map(LayerPlaces::initialiser).collect();
        let (count, layers) = (layers.len(), layers.join(",\n"));
        let _ = writeln!(text, "__constant__ Places PLACES[{count}] = {{{layers}}};");
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

    fn initialiser(&self) -> String {
        let mut numbers: Vec<usize> =
            [self.initial, self.last].iter().flat_map(|map| [map.weight, map.bias]).collect();
        numbers.extend(self.linear);
        let mut text: Vec<String> = numbers.iter().map(ToString::to_string).collect();
        for maps in [&self.context, &self.first, &self.second] {
            for part in [|map: &Map| map.weight, |map: &Map| map.bias] {
                let values: Vec<String> = maps.iter().map(|map| part(map).to_string()).collect();
                text.push(format!("{{{}}}", values.join(", ")));
            }
        }
        format!("{{{}}}", text.join(", "))
    }
}
