//! Tiles back through the whole flow: from weights of the log-densities to the gradient of the parameters.

use super::SplineFlow;
use super::conditioner::{Conditioner, RowSet, panel, panel_mut};
use super::layout::{Gradient, Layer};
use super::pass::{feature, feature_mut, square};
use super::tape::{LayerTape, Scratch, Tape, Tile};
use crate::network::kernel::*;

impl SplineFlow {
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
            let (input, logits) = tape.splines();
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
        if known == 0 {
            let features = layer.last.outputs;
            tape.logits.fill(F::zero());
            for (p, context) in RowSet::pairs(tile).panels() {
                let from = panel(&tape.pair_logits, p, features);
                (kernels.collect)(&ContextRows { context, features }, from, &mut tape.logits);
            }
            let rows = RowSet::contexts(tile.contexts);
            conditioner.backward(rows, &tile.x, tape, scratch, gradient);
            return;
        }
        conditioner.backward(RowSet::pairs(tile), &tile.x, tape, scratch, gradient);
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
