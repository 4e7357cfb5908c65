//! Tiles through the whole flow: forward (log-density), backward (gradient), inverse (sampling).

use super::SplineFlow;
use super::conditioner::{Conditioner, RowSet, panel, panel_mut};
use super::layout::{Gradient, Layer};
use super::tape::{LayerTape, Scratch, Tape, Tile};
use crate::kernel::*;

impl SplineFlow {
    /// log q(θ | x) of every pair of the tape, into [`Tape::log_q`].
    pub fn forward<F: Real>(&self, params: &[F], tape: &mut Tape<F>) {
        assert_eq!(params.len(), self.params_len());
        let Tape { kernels, tile, layers, scratch } = tape;
        tile.pad();
        tile.log_q.fill(F::zero());
        let mut constant = -self.theta.log_volume();
        for (layer, tape) in self.layout.layers.iter().zip(layers) {
            let conditioner = Conditioner { layer, params, kernels };
            layer.linear.factor(params, &mut tape.factored);
            constant += tape.factored.log_det.f64();
            tape.input.copy_from_slice(&tile.z);
            self.logits(conditioner, tile, tape, scratch);
            for p in 0..tile.panels() {
                let rows = tile.panel_rows(p);
                self.splines(layer, p, rows, kernels.spline, tile, tape);
                tape.coupled_panel(p, self.config.theta_dim).copy_from_slice(panel(
                    &tile.z,
                    p,
                    self.config.theta_dim,
                ));
                self.linear(conditioner, p, rows, tape, &mut tile.z);
            }
        }
        self.add_base(F::of(constant), tile);
    }

    /// Σ_i w_i ∂ log q_i / ∂ params, for the weights w of the pairs of the last
    /// [`SplineFlow::forward`]. The tape must be filled anew afterwards.
    pub fn backward<F: Real>(
        &self,
        params: &[F],
        tape: &mut Tape<F>,
        weights: &[F],
        mut gradient: Gradient<F>,
    ) {
        assert_eq!(gradient.sum.len(), self.params_len());
        let gradient = &mut gradient;
        let Tape { kernels, tile, layers, scratch } = tape;
        assert_eq!(weights.len(), tile.pairs);
        let d_log_q = &mut tile.log_q;
        d_log_q[..tile.pairs].copy_from_slice(weights);
        d_log_q[tile.pairs..].fill(F::zero());
        self.base_gradient(tile, scratch);
        let total = F::of(weights.iter().map(|w| w.f64()).sum());
        for (layer, tape) in self.layout.layers.iter().zip(layers).rev() {
            let conditioner = Conditioner { layer, params, kernels };
            self.linear_gradient(conditioner, tile, tape, scratch);
            layer.linear.backward(params, &tape.factored, total, gradient);
            self.spline_gradients(layer, kernels, tile, tape, scratch);
            self.conditioner_gradient(conditioner, tile, tape, scratch, gradient);
        }
    }

    /// The reverse of [`SplineFlow::forward`]: the pairs of the tape hold (z, x), and
    /// [`Tape::output`] then is θ; [`Tape::log_q`] is the log-density there.
    pub fn inverse<F: Real>(&self, params: &[F], tape: &mut Tape<F>) {
        assert_eq!(params.len(), self.params_len());
        let Tape { kernels, tile, layers, scratch } = tape;
        tile.pad();
        tile.log_q.fill(F::zero());
        let mut constant = -self.theta.log_volume();
        for (layer, tape) in self.layout.layers.iter().zip(layers.iter_mut()) {
            layer.linear.factor(params, &mut tape.factored);
            constant += tape.factored.log_det.f64();
        }
        self.add_base(F::of(constant), tile);
        for (layer, tape) in self.layout.layers.iter().zip(layers).rev() {
            let conditioner = Conditioner { layer, params, kernels };
            for p in 0..tile.panels() {
                let z = panel_mut(&mut tile.z, p, self.config.theta_dim);
                layer.linear.solve(params, &tape.factored, z);
            }
            self.logits(conditioner, tile, tape, scratch);
            for p in 0..tile.panels() {
                let rows = tile.panel_rows(p);
                self.splines(layer, p, rows, kernels.spline_inverse, tile, tape);
            }
        }
    }

    /// Spline logits of every pair, from the features that stay and x.
    fn logits<F: Real>(
        &self,
        conditioner: Conditioner<F>,
        tile: &Tile<F>,
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let layer = conditioner.layer;
        let (dim, known) = (self.config.theta_dim, layer.identity.len());
        let contexts = tile.contexts;
        if known == 0 {
            conditioner.forward(RowSet::contexts(contexts), &tile.x, tape, scratch);
            let features = layer.last.outputs;
            for (p, context) in tile.context[..tile.rows()].chunks(PANEL).enumerate() {
                let to = panel_mut(&mut tape.pair_logits, p, features);
                (conditioner.kernels.expand)(&ContextRows { context, features }, &tape.logits, to);
            }
            return;
        }
        for p in 0..tile.panels() {
            let to = panel_mut(&mut tape.identity, p, known).chunks_exact_mut(PANEL);
            for (to, &f) in to.zip(&layer.identity) {
                to.copy_from_slice(feature(&tile.z, p, dim, f));
            }
        }
        let rows = RowSet { context: &tile.context[..tile.rows()], contexts };
        conditioner.forward(rows, &tile.x, tape, scratch);
    }

    /// The splines of one panel, on `tile.z` in place.
    fn splines<F: Real>(
        &self,
        layer: &Layer,
        p: usize,
        rows: usize,
        spline: fn(SplineJob<'_, F>),
        tile: &mut Tile<F>,
        tape: &mut LayerTape<F>,
    ) {
        let shape = self.config.spline();
        let logits = panel_mut(tape.row_logits(), p, layer.last.outputs);
        let log_det = panel_mut(&mut tile.log_q, p, 1);
        let logits = logits.chunks_exact_mut(shape.logits() * PANEL);
        for (logits, &f) in logits.zip(&layer.transformed) {
            let value = feature_mut(&mut tile.z, p, self.config.theta_dim, f);
            spline(SplineJob { shape, rows, logits, value, log_det });
        }
    }

    fn linear<F: Real>(
        &self,
        conditioner: Conditioner<F>,
        p: usize,
        rows: usize,
        tape: &LayerTape<F>,
        z: &mut [F],
    ) {
        let (dim, bias) = (self.config.theta_dim, conditioner.layer.linear.bias);
        (conditioner.kernels.affine)(AffineJob {
            weights: square(&tape.factored.product, dim),
            start: Start::Bias(&conditioner.params[bias..][..dim]),
            finish: Finish::Plain,
            rows,
            input: panel(&tape.coupled, p, dim),
            output: panel_mut(z, p, dim),
        });
    }

    fn linear_gradient<F: Real>(
        &self,
        conditioner: Conditioner<F>,
        tile: &mut Tile<F>,
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let (dim, kernels) = (self.config.theta_dim, conditioner.kernels);
        (kernels.affine_weight_gradient)(WeightGradientJob {
            outputs: dim,
            inputs: dim,
            rows: tile.rows(),
            accumulate: false,
            d_output: &scratch.d_z,
            input: &tape.coupled,
            d_weights: &mut tape.factored.d_product,
            stride: dim,
            d_bias: Some(&mut tape.factored.d_bias),
            scratch: &mut scratch.transposed,
        });
        for p in 0..tile.panels() {
            (kernels.affine_input_gradient)(InputGradientJob {
                weights: square(&tape.factored.product, dim),
                mask: None,
                accumulate: false,
                rows: tile.panel_rows(p),
                d_output: panel(&scratch.d_z, p, dim),
                d_input: panel_mut(&mut tile.z, p, dim),
            });
        }
        std::mem::swap(&mut scratch.d_z, &mut tile.z);
    }

    fn spline_gradients<F: Real>(
        &self,
        layer: &Layer,
        kernels: &Kernels<F>,
        tile: &Tile<F>,
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
    ) {
        let (dim, shape) = (self.config.theta_dim, self.config.spline());
        for p in 0..tile.panels() {
            let d_log_det = panel(&tile.log_q, p, 1);
            let LayerTape { input, logits, pair_logits, .. } = &mut *tape;
            let logits = if pair_logits.is_empty() { logits } else { pair_logits };
            let logits = panel_mut(logits, p, layer.last.outputs);
            for (logits, &f) in
                logits.chunks_exact_mut(shape.logits() * PANEL).zip(&layer.transformed)
            {
                (kernels.spline_gradient)(SplineGradientJob {
                    shape,
                    rows: tile.panel_rows(p),
                    logits,
                    input: feature(input, p, dim, f),
                    d_value: feature_mut(&mut scratch.d_z, p, dim, f),
                    d_log_det,
                });
            }
        }
    }

    fn conditioner_gradient<F: Real>(
        &self,
        conditioner: Conditioner<F>,
        tile: &Tile<F>,
        tape: &mut LayerTape<F>,
        scratch: &mut Scratch<F>,
        gradient: &mut Gradient<F>,
    ) {
        let Conditioner { layer, params, kernels } = conditioner;
        let (dim, known) = (self.config.theta_dim, layer.identity.len());
        let contexts = tile.contexts;
        if known == 0 {
            let features = layer.last.outputs;
            tape.logits.fill(F::zero());
            for (p, context) in tile.context[..tile.rows()].chunks(PANEL).enumerate() {
                let from = panel(&tape.pair_logits, p, features);
                (kernels.collect)(&ContextRows { context, features }, from, &mut tape.logits);
            }
            conditioner.backward(RowSet::contexts(contexts), &tile.x, tape, scratch, gradient);
            return;
        }
        let rows = RowSet { context: &tile.context[..tile.rows()], contexts };
        conditioner.backward(rows, &tile.x, tape, scratch, gradient);
        for p in 0..tile.panels() {
            let rows = tile.panel_rows(p);
            (kernels.affine_input_gradient)(InputGradientJob {
                weights: layer.initial.columns(params, 0..known),
                mask: None,
                accumulate: false,
                rows,
                d_output: panel(&scratch.d_hidden, p, self.config.units),
                d_input: &mut scratch.d_identity,
            });
            for (from, &f) in scratch.d_identity.chunks_exact(PANEL).zip(&layer.identity) {
                let to = &mut feature_mut(&mut scratch.d_z, p, dim, f)[..rows];
                to.iter_mut().zip(from).for_each(|(to, &from)| *to += from);
            }
        }
    }

    /// log N(z; 0, I) and the constant.
    fn add_base<F: Real>(&self, constant: F, tile: &mut Tile<F>) {
        let dim = self.config.theta_dim;
        let constant = constant - F::of(0.5 * dim as f64 * std::f64::consts::TAU.ln());
        for p in 0..tile.panels() {
            let log_q = panel_mut(&mut tile.log_q, p, 1);
            log_q.iter_mut().for_each(|l| *l += constant);
            for z in panel(&tile.z, p, dim).chunks_exact(PANEL) {
                log_q.iter_mut().zip(z).for_each(|(l, &z)| *l -= F::of(0.5) * z * z);
            }
        }
    }

    fn base_gradient<F: Real>(&self, tile: &Tile<F>, scratch: &mut Scratch<F>) {
        let dim = self.config.theta_dim;
        for p in 0..tile.panels() {
            let d_log_q = panel(&tile.log_q, p, 1);
            let z = panel(&tile.z, p, dim).chunks_exact(PANEL);
            for (d_z, z) in panel_mut(&mut scratch.d_z, p, dim).chunks_exact_mut(PANEL).zip(z) {
                for ((d_z, &z), &d) in d_z.iter_mut().zip(z).zip(d_log_q) {
                    *d_z = -z * d;
                }
            }
        }
    }
}

impl<F: Real> LayerTape<F> {
    /// The logits that the splines read, by pair.
    fn row_logits(&mut self) -> &mut [F] {
        match self.pair_logits.is_empty() {
            true => &mut self.logits,
            false => &mut self.pair_logits,
        }
    }

    fn coupled_panel(&mut self, p: usize, dim: usize) -> &mut [F] {
        panel_mut(&mut self.coupled, p, dim)
    }
}

/// Feature `f` of panel `p`.
fn feature<F>(buffer: &[F], p: usize, features: usize, f: usize) -> &[F] {
    &panel(buffer, p, features)[f * PANEL..][..PANEL]
}

fn feature_mut<F>(buffer: &mut [F], p: usize, features: usize, f: usize) -> &mut [F] {
    &mut panel_mut(buffer, p, features)[f * PANEL..][..PANEL]
}

fn square<F>(data: &[F], dim: usize) -> Weights<'_, F> {
    Weights { data, outputs: dim, inputs: dim, stride: dim }
}
