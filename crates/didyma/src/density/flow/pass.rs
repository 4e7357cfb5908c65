//! Tiles through the whole flow: forward (log-density) and inverse (sampling).

use super::SplineFlow;
use super::conditioner::{Conditioner, RowSet, panel, panel_mut};
use super::layout::Layer;
use super::tape::{LayerTape, Scratch, Tape, Tile};
use crate::network::kernel::*;

impl SplineFlow {
    /// log q(θ | x) of every pair of the tape, into [`Tape::log_q`].
    pub fn forward<F: Real>(&self, params: &[F], tape: &mut Tape<F>) {
        assert_eq!(params.len(), self.params_len());
        let Tape { kernels, tile, layers, scratch } = tape;
        tile.pad();
        tile.log_q.fill(F::zero());
        let mut constant = 0.0;
        for (layer, tape) in self.layout.layers.iter().zip(layers) {
            let conditioner = Conditioner { layer, params, kernels };
            layer.linear.factor(params, &mut tape.factored);
            constant += tape.factored.log_det.f64();
            let used = tile.panels() * self.config.theta_dim * PANEL;
            tape.input[..used].copy_from_slice(&tile.z[..used]);
            self.logits(conditioner, tile, tape, scratch);
            for p in 0..tile.panels() {
                let rows = tile.panel_rows(p);
                self.splines(layer, p, rows, kernels.spline, tile, tape);
                let coupled = panel_mut(&mut tape.coupled, p, self.config.theta_dim);
                coupled.copy_from_slice(panel(&tile.z, p, self.config.theta_dim));
                self.linear(conditioner, p, rows, tape, &mut tile.z);
            }
        }
        self.add_base(F::of(constant), tile);
    }

    /// The reverse of [`SplineFlow::forward`]: the pairs of the tape hold (z, x), and
    /// [`Tape::output`] then is θ; [`Tape::log_q`] is the log-density there.
    pub fn inverse<F: Real>(&self, params: &[F], tape: &mut Tape<F>) {
        assert_eq!(params.len(), self.params_len());
        let Tape { kernels, tile, layers, scratch } = tape;
        tile.pad();
        tile.log_q.fill(F::zero());
        let mut constant = 0.0;
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
        if known == 0 {
            conditioner.forward(RowSet::contexts(tile.contexts), &tile.x, tape, scratch);
            let features = layer.last.outputs;
            for (p, context) in RowSet::pairs(tile).panels() {
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
        conditioner.forward(RowSet::pairs(tile), &tile.x, tape, scratch);
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
        let logits = panel_mut(tape.splines().1, p, layer.last.outputs);
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
            mode: Mode::Plain(&conditioner.params[bias..][..dim]),
            rows,
            input: panel(&tape.coupled, p, dim),
            output: panel_mut(z, p, dim),
        });
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
}

impl<F: Real> LayerTape<F> {
    /// Where the splines were evaluated, and the logits that they read, both by pair.
    pub(super) fn splines(&mut self) -> (&[F], &mut [F]) {
        let Self { input, logits, pair_logits, .. } = self;
        (input, if pair_logits.is_empty() { logits } else { pair_logits })
    }
}

/// Feature `f` of panel `p`.
pub(super) fn feature<F>(buffer: &[F], p: usize, features: usize, f: usize) -> &[F] {
    &panel(buffer, p, features)[f * PANEL..][..PANEL]
}

pub(super) fn feature_mut<F>(buffer: &mut [F], p: usize, features: usize, f: usize) -> &mut [F] {
    &mut panel_mut(buffer, p, features)[f * PANEL..][..PANEL]
}

pub(super) fn square<F>(data: &[F], dim: usize) -> Weights<'_, F> {
    Weights { data, outputs: dim, inputs: dim, stride: dim }
}
