//! All the memory of one panel of rows, made once.

use super::ScoreModel;
use super::diffusion::Moment;
use super::layout::TIME;
use super::mlp::{MlpTape, mlp_tape};
use crate::network::kernel::{Aligned, Kernels, PANEL, Real, transpose_size, whole_lanes};

/// Up to [`Tape::ROWS`] noised rows on their way through the network.
///
/// It is filled row by row, then passed to [`ScoreModel::loss`] and [`ScoreModel::backward`].
#[derive(Debug)]
pub struct Tape<F: Real> {
    pub(super) kernels: &'static Kernels<F>,
    pub(super) rows: usize,
    /// Noised θ, and x.
    pub(super) theta_in: Aligned<F>,
    pub(super) x_in: Aligned<F>,
    pub(super) theta: MlpTape<F>,
    pub(super) x: MlpTape<F>,
    pub(super) main: MlpTape<F>,
    /// What the main network reads: θ's embedding, x's, the time's; and its gradient.
    pub(super) joined: Aligned<F>,
    pub(super) d_joined: Aligned<F>,
    /// ∂energy / ∂θ's embedding, and the embedding's tangent.
    pub(super) adjoint: Aligned<F>,
    pub(super) tangent: Aligned<F>,
    /// The energy, its derivative 1, and the gradient 0 of a loss that depends on its gradient alone.
    pub(super) energy: Aligned<F>,
    pub(super) one: Aligned<F>,
    pub(super) no_gradient: Aligned<F>,
    /// The network's output or its energy's gradient, and the derivative of the loss with respect to it.
    pub(super) raw: Aligned<F>,
    pub(super) d_raw: Aligned<F>,
    /// Noise, its standard deviation and the weight of every row.
    pub(super) noise: Aligned<F>,
    pub(super) std: [f64; PANEL],
    pub(super) weight: [f64; PANEL],
    /// The bias of a product that has none.
    pub(super) zeros: Vec<F>,
    pub(super) transposed: Aligned<F>,
    frequencies: [F; TIME / 2],
}

impl<F: Real> Tape<F> {
    /// Rows of one tape.
    pub const ROWS: usize = PANEL;

    /// Memory for this network.
    pub fn new(model: &ScoreModel) -> Self {
        let (theta_dim, x_dim) = (model.config.theta_dim, model.config.x_dim);
        let (from_theta, from_x) = model.embedded();
        let (units, joined) = (model.config.units, from_theta + from_x + TIME);
        let panel = |features: usize| Aligned::zeros(features * PANEL);
        let mut one = panel(1);
        one.fill(F::one());
        let widest = units.max(joined).max(theta_dim).max(x_dim);
        Self {
            kernels: F::kernels(),
            rows: 0,
            theta_in: panel(theta_dim),
            x_in: panel(x_dim),
            theta: mlp_tape(units),
            x: mlp_tape(units),
            main: mlp_tape(units),
            joined: panel(joined),
            d_joined: panel(from_theta + from_x),
            adjoint: panel(from_theta),
            tangent: panel(from_theta),
            energy: panel(1),
            one,
            no_gradient: panel(1),
            raw: panel(theta_dim),
            d_raw: panel(theta_dim),
            noise: panel(theta_dim),
            std: [1.0; PANEL],
            weight: [0.0; PANEL],
            zeros: vec![F::zero(); widest],
            transposed: Aligned::zeros(transpose_size(PANEL, widest)),
            frequencies: std::array::from_fn(frequency),
        }
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.rows = 0;
    }

    /// Adds a row: θ at time `t` with these draws of noise, x, and its weight in the loss.
    ///
    /// # Panics
    /// If the tape is full, or a row is shorter than the network's.
    pub fn row(
        &mut self,
        theta: impl IntoIterator<Item = F>,
        x: impl IntoIterator<Item = F>,
        (t, mut noise): (f64, impl FnMut() -> f64),
        weight: f64,
    ) {
        assert!(self.rows < Self::ROWS, "a tape holds one panel of rows");
        let (row, Moment { mean, std }) = (self.rows, Moment::at(t));
        self.rows += 1;
        let mut theta = theta.into_iter();
        for at in (row..self.theta_in.len()).step_by(PANEL) {
            let (theta, noise) = (theta.next().expect("a number for each dimension"), noise());
            self.theta_in[at] = F::of(mean * theta.f64() + std * noise);
            self.noise[at] = F::of(noise);
        }
        self.x_row(row, x);
        let time = self.joined.len() - TIME * PANEL;
        embed(&self.frequencies, F::of(std), row, &mut self.joined[time..]);
        (self.std[row], self.weight[row]) = (std, weight);
    }

    pub(super) fn x_row(&mut self, row: usize, x: impl IntoIterator<Item = F>) {
        let mut x = x.into_iter();
        for at in (row..self.x_in.len()).step_by(PANEL) {
            self.x_in[at] = x.next().expect("a number for each dimension");
        }
    }

    /// Fills the last lane with rows of zeros that weigh nothing; returns the number of rows in whole lanes.
    pub(super) fn fill_lane(&mut self) -> usize {
        for row in self.rows..whole_lanes(self.rows) {
            for panel in [&mut self.theta_in, &mut self.x_in, &mut self.joined, &mut self.noise] {
                panel[row..].iter_mut().step_by(PANEL).for_each(|v| *v = F::zero());
            }
            (self.std[row], self.weight[row]) = (1.0, 0.0);
        }
        whole_lanes(self.rows)
    }

    /// A panel of embedded times in the place of the main network's input: one row for each std.
    pub(super) fn times(&mut self, stds: impl Iterator<Item = f64>) -> &[F] {
        let time = self.joined.len() - TIME * PANEL;
        for (row, std) in stds.enumerate() {
            embed(&self.frequencies, F::of(std), row, &mut self.joined[time..]);
        }
        &self.joined[time..]
    }
}

/// 10000^(−k/31) for k from 0 to 31: periods from 2π to far above the largest std, 1.
fn frequency<F: Real>(k: usize) -> F {
    F::of(10_000f64.powf(-(k as f64) / (TIME / 2 - 1) as f64))
}

/// Sines, then cosines of std times every frequency, into one row.
fn embed<F: Real>(frequencies: &[F], std: F, row: usize, panel: &mut [F]) {
    let half = frequencies.len();
    for (k, &frequency) in frequencies.iter().enumerate() {
        let (sin, cos) = (std * frequency).sin_cos();
        panel[k * PANEL + row] = sin;
        panel[(half + k) * PANEL + row] = cos;
    }
}
