//! Denoising score matching: the loss of a panel and its gradient.
//!
//! A row's loss is std² · mean over dimensions of (s + ε/std)² = mean of (gain · out + ε)², where out is the network's
//! output (or its energy's gradient) and gain is 1 if the score is out / std, else std.

use super::layout::Layout;
use super::mlp::{Order, Pass, Sums};
use super::{Output, ScoreModel, Tape};
use crate::density::flow::Gradient;
use crate::network::kernel::{PANEL, Real, whole_lanes};

impl ScoreModel {
    /// Σ weight · loss of the tape's rows.
    pub fn loss<F: Real>(&self, params: &[F], tape: &mut Tape<F>) -> f64 {
        let order = if self.is_energy() { Order::Slope } else { Order::Value };
        self.forward(params, tape, order);
        self.residuals(tape)
    }

    /// Σ weight · loss of the tape's rows, and its gradient.
    pub fn backward<F: Real>(
        &self,
        params: &[F],
        tape: &mut Tape<F>,
        gradient: Gradient<'_, F>,
    ) -> f64 {
        let order = if self.is_energy() { Order::Curvature } else { Order::Slope };
        self.forward(params, tape, order);
        let loss = self.residuals(tape);
        if self.is_energy() {
            self.tangents(params, tape);
        }
        self.reverse(params, tape, order);
        self.weight_gradient(tape, gradient);
        loss
    }

    pub(super) fn is_energy(&self) -> bool {
        self.config.output == Output::Energy
    }

    fn forward<F: Real>(&self, params: &[F], tape: &mut Tape<F>, order: Order) {
        let Layout { theta, x, main, .. } = &self.layout;
        let rows = tape.fill_lane();
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        let (from_theta, from_x) = self.embedded();
        let (into_theta, rest) = tape.joined.split_at_mut(from_theta * PANEL);
        theta.forward(&pass, &mut tape.theta, order, &tape.theta_in, into_theta);
        let into_x = &mut rest[..from_x * PANEL];
        x.forward(&pass, &mut tape.x, order.min(Order::Slope), &tape.x_in, into_x);
        let output = if self.is_energy() { &mut tape.energy } else { &mut tape.raw };
        main.forward(&pass, &mut tape.main, order, &tape.joined, output);
        if self.is_energy() {
            self.energy_adjoint(params, tape, rows, order);
        }
    }

    /// ∂energy/∂θ of a tape whose activations are known.
    pub(super) fn energy_adjoint<F: Real>(
        &self,
        params: &[F],
        tape: &mut Tape<F>,
        rows: usize,
        order: Order,
    ) {
        let Layout { theta, main, .. } = &self.layout;
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        let embedding = (0..self.embedded().0, &mut *tape.adjoint);
        main.adjoint(&pass, &mut tape.main, order, &tape.one, embedding);
        let input = (0..self.config.theta_dim, &mut *tape.raw);
        theta.adjoint(&pass, &mut tape.theta, order, &tape.adjoint, input);
    }

    /// The weighted loss; leaves its derivative with respect to the output.
    fn residuals<F: Real>(&self, tape: &mut Tape<F>) -> f64 {
        let dim = self.config.theta_dim;
        let mut loss = 0.0;
        for row in 0..tape.fill_lane() {
            let gain = if self.config.scaled { 1.0 } else { tape.std[row] };
            let share = tape.weight[row] / dim as f64;
            let mut sum = 0.0;
            for at in (row..dim * PANEL).step_by(PANEL) {
                let residual = gain * tape.raw[at].f64() + tape.noise[at].f64();
                sum += residual * residual;
                tape.d_raw[at] = F::of(2.0 * share * gain * residual);
            }
            loss += share * sum;
        }
        loss
    }

    /// Along the derivative of the loss with respect to the energy's gradient.
    pub(super) fn tangents<F: Real>(&self, params: &[F], tape: &mut Tape<F>) {
        let Layout { theta, main, .. } = &self.layout;
        let rows = whole_lanes(tape.rows);
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        let embedded = 0..self.embedded().0;
        theta.tangent(&pass, &mut tape.theta, (0..self.config.theta_dim, &tape.d_raw));
        theta.output_tangent(&pass, &tape.theta, embedded.clone(), &mut tape.tangent);
        main.tangent(&pass, &mut tape.main, (embedded, &tape.tangent));
    }

    fn reverse<F: Real>(&self, params: &[F], tape: &mut Tape<F>, order: Order) {
        let Layout { theta, x, main, .. } = &self.layout;
        let rows = whole_lanes(tape.rows);
        let pass = Pass { kernels: tape.kernels, params, rows, zeros: &tape.zeros };
        let (from_theta, from_x) = self.embedded();
        // The loss depends on an energy through its gradient alone.
        let d_output = if self.is_energy() { &tape.no_gradient } else { &tape.d_raw };
        main.reverse(&pass, &mut tape.main, order, d_output);
        main.input_gradient(&pass, &tape.main, 0..from_theta + from_x, &mut tape.d_joined);
        let (d_theta, d_x) = tape.d_joined.split_at(from_theta * PANEL);
        theta.reverse(&pass, &mut tape.theta, order, d_theta);
        x.reverse(&pass, &mut tape.x, Order::Slope, d_x);
    }

    fn weight_gradient<F: Real>(&self, tape: &mut Tape<F>, gradient: Gradient<'_, F>) {
        let Layout { theta, x, main, .. } = &self.layout;
        let (rows, scratch) = (whole_lanes(tape.rows), &mut *tape.transposed);
        let mut sums = Sums { kernels: tape.kernels, rows, gradient, scratch };
        let (from_theta, _) = self.embedded();
        let (d_theta, d_x) = tape.d_joined.split_at(from_theta * PANEL);
        let d_output = if self.is_energy() { &tape.no_gradient } else { &tape.d_raw };
        main.weight_gradient(&mut sums, &tape.main, &tape.joined, d_output);
        theta.weight_gradient(&mut sums, &tape.theta, &tape.theta_in, d_theta);
        x.weight_gradient(&mut sums, &tape.x, &tape.x_in, d_x);
        if self.is_energy() {
            let embedding = (0..from_theta, &*tape.tangent);
            main.adjoint_weight_gradient(&mut sums, &tape.main, embedding, &tape.one);
            let input = (0..self.config.theta_dim, &*tape.d_raw);
            theta.adjoint_weight_gradient(&mut sums, &tape.theta, input, &tape.adjoint);
        }
    }
}
