//! The network as the right-hand side of the differential equation.
//!
//! x and the points of the grid are known beforehand, so what the main network's first layer makes of them is computed
//! once: an evaluation costs θ's network, and the main one from θ's columns on.

use super::ScoreModel;
use super::layout::{Layout, TIME};
use super::mlp::{Order, Pass};
use super::ode::{Grid, Point, Score};
use super::tape::Tape;
use crate::network::kernel::{AffineJob, Aligned, Mode, PANEL, Real};

/// The score of a network at known x.
pub(super) struct NetworkScore<'a, F: Real> {
    model: &'a ScoreModel,
    params: &'a [F],
    tape: Tape<F>,
    /// The first layer's part for x and its bias, a panel.
    from_x: Aligned<F>,
    /// Its part for the time of every point of the grid, in panels of points.
    from_time: Vec<Aligned<F>>,
}

impl<'a, F: Real> NetworkScore<'a, F> {
    pub(super) fn new(model: &'a ScoreModel, params: &'a [F], grid: Grid) -> Self {
        let mut tape = Tape::new(model);
        let units = model.config.units;
        let main = &model.layout.main.first;
        let from_time = (0..grid.len()).step_by(PANEL).map(|start| {
            let points = start..grid.len().min(start + PANEL);
            let kernels = tape.kernels;
            let zeros = vec![F::zero(); units];
            let pass = Pass { kernels, params, rows: PANEL, zeros: &zeros };
            let mut part = Aligned::zeros(units * PANEL);
            let times = tape.times(points.map(|i| grid.point(i).moment.std));
            let columns = main.inputs - TIME..main.inputs;
            pass.product(main.columns(params, columns), times, &mut part);
            part
        });
        let from_time = from_time.collect();
        Self { model, params, tape, from_x: Aligned::zeros(units * PANEL), from_time }
    }

    /// The x of each row of the panels to come; the last one is that of all rows after it.
    pub(super) fn set_x(&mut self, mut x: impl Iterator<Item = &'a [f32]>) {
        let mut last: &[f32] = &[];
        for row in 0..PANEL {
            last = x.next().unwrap_or(last);
            self.tape.x_row(row, last.iter().map(|&v| F::of(f64::from(v))));
        }
        let Layout { x, main, .. } = &self.model.layout;
        let (from_theta, from_x) = self.model.embedded();
        let Self { tape, params, .. } = self;
        let pass = Pass { kernels: tape.kernels, params, rows: PANEL, zeros: &tape.zeros };
        let embedding = &mut tape.joined[from_theta * PANEL..][..from_x * PANEL];
        x.forward(&pass, &mut tape.x, Order::Value, &tape.x_in, embedding);
        let weights = main.first.columns(params, from_theta..from_theta + from_x);
        pass.affine(weights, main.first.bias(params), embedding, &mut self.from_x);
    }

    /// The network's output, or the gradient of its energy, into the tape's `raw`.
    fn forward(&mut self, at: Point, rows: usize, theta_in: &[F], order: Order) {
        let Layout { theta, main, .. } = &self.model.layout;
        let (from_theta, _) = self.model.embedded();
        let Self { tape, params, .. } = self;
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        let embedding = &mut tape.joined[..from_theta * PANEL];
        theta.forward(&pass, &mut tape.theta, order, theta_in, embedding);
        let from_time = self.from_time[at.index / PANEL][at.index % PANEL..].iter().step_by(PANEL);
        let units = tape.main[0].pre.chunks_exact_mut(PANEL).zip(self.from_x.chunks_exact(PANEL));
        for ((pre, from_x), &from_time) in units.zip(from_time) {
            pre.iter_mut().zip(from_x).for_each(|(pre, &x)| *pre = x + from_time);
        }
        let (weights, first) = (main.first.columns(params, 0..from_theta), &mut tape.main[0]);
        (tape.kernels.affine)(AffineJob {
            weights,
            // This mode also rectifies its result; nothing reads that.
            mode: Mode::Add(&mut first.bar),
            rows,
            input: embedding,
            output: &mut first.pre,
        });
        let output = if self.model.is_energy() { &mut tape.energy } else { &mut tape.raw };
        main.finish(&pass, &mut tape.main, order, output);
        if self.model.is_energy() {
            self.model.energy_adjoint(params, tape, rows, order);
        }
    }

    /// Adds ∂raw_j/∂θ_j of every row.
    fn add_derivative(&mut self, rows: usize, j: usize, to: &mut [f64]) {
        let Layout { theta, main, .. } = &self.model.layout;
        let from_theta = self.model.embedded().0;
        let Self { tape, params, .. } = self;
        tape.d_raw.fill(F::zero());
        tape.d_raw[j * PANEL..(j + 1) * PANEL].fill(F::one());
        tape.rows = rows;
        self.model.tangents(params, tape);
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        // The direction is no longer needed: its place takes the result.
        let result = &mut tape.d_raw[..PANEL];
        if self.model.is_energy() {
            main.reverse(&pass, &mut tape.main, Order::Curvature, &tape.no_gradient);
            main.input_gradient(&pass, &tape.main, 0..from_theta, &mut tape.d_joined);
            theta.reverse(&pass, &mut tape.theta, Order::Curvature, &tape.d_joined);
            theta.input_gradient(&pass, &tape.theta, j..j + 1, result);
        } else {
            main.output_tangent(&pass, &tape.main, j..j + 1, result);
        }
        to.iter_mut().zip(&*result).for_each(|(to, d)| *to += d.f64());
    }
}

impl<F: Real> Score<F> for NetworkScore<'_, F> {
    fn dim(&self) -> usize {
        self.model.config.theta_dim
    }

    fn score(
        &mut self,
        at: Point,
        rows: usize,
        theta: &[F],
        score: &mut [F],
        divergence: Option<&mut [f64]>,
    ) {
        let order = match (self.model.is_energy(), divergence.is_some()) {
            (false, false) => Order::Value,
            (true, true) => Order::Curvature,
            _ => Order::Slope,
        };
        self.forward(at, rows, theta, order);
        let scale = if self.model.config.scaled { 1.0 / at.moment.std } else { 1.0 };
        let factor = F::of(scale);
        score.iter_mut().zip(&*self.tape.raw).for_each(|(to, &raw)| *to = factor * raw);
        if let Some(divergence) = divergence {
            divergence.fill(0.0);
            (0..self.dim()).for_each(|j| self.add_derivative(rows, j, divergence));
            divergence.iter_mut().for_each(|d| *d *= scale);
        }
    }
}
