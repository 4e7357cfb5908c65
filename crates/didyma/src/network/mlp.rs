//! A network of two rectified hidden layers and one logit, forward and backward on the flow's kernels.
//!
//! Rows lie in the panels of [`crate::network::kernel`], several of them to a batch. All memory is made once.

use crate::network::kernel::*;
use std::ops::Range;

/// An affine map inside the flat vector of parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Dense {
    pub inputs: usize,
    pub outputs: usize,
    first_weight: usize,
    first_bias: usize,
}

impl Dense {
    pub(crate) fn weights(&self) -> Range<usize> {
        self.first_weight..self.first_weight + self.inputs * self.outputs
    }

    pub(crate) fn bias(&self) -> Range<usize> {
        self.first_bias..self.first_bias + self.outputs
    }

    fn matrix<'a, F>(&self, params: &'a [F]) -> Weights<'a, F> {
        let (data, inputs, outputs) = (&params[self.weights()], self.inputs, self.outputs);
        Weights { data, outputs, inputs, stride: inputs }
    }
}

/// The network: parameters, their gradient, and the panels of one batch.
pub(crate) struct Mlp<F: Real> {
    pub kernels: &'static Kernels<F>,
    pub layers: [Dense; 3],
    /// The weights of all layers, then all biases: weight decay is for the former alone.
    pub params: Aligned<F>,
    /// Summed over the rows of the batch.
    pub gradient: Aligned<F>,
    /// Rows of the batch in use.
    rows: usize,
    /// Input and output of every layer: data, rectified units twice, logits.
    values: [Aligned<F>; 4],
    /// Gradient of each layer's output.
    d_outputs: [Aligned<F>; 3],
    transposed: Aligned<F>,
}

impl<F: Real> Mlp<F> {
    /// Zero parameters, and memory for up to `rows` rows at a time.
    pub(crate) fn new(inputs: usize, units: usize, rows: usize) -> Self {
        let sizes = [inputs, units, units, 1];
        let weights_before = |layer| (0..layer).map(|l| sizes[l] * sizes[l + 1]).sum::<usize>();
        let biases_before = |layer: usize| sizes[1..=layer].iter().sum::<usize>();
        let weights = weights_before(3);
        let layers = [0, 1, 2].map(|l| Dense {
            inputs: sizes[l],
            outputs: sizes[l + 1],
            first_weight: weights_before(l),
            first_bias: weights + biases_before(l),
        });
        let params = weights + biases_before(3);
        let panels = |features| Aligned::zeros(features * rows.next_multiple_of(PANEL));
        Self {
            kernels: F::kernels(),
            layers,
            params: Aligned::zeros(params),
            gradient: Aligned::zeros(params),
            rows: 0,
            values: sizes.map(panels),
            d_outputs: [units, units, 1].map(panels),
            transposed: Aligned::zeros(transpose_size(rows, inputs.max(units))),
        }
    }

    /// The weights, without the biases.
    pub(crate) fn weights(&self) -> &[F] {
        &self.params[..self.layers[0].first_bias]
    }

    /// Copies a batch into the panels.
    pub(crate) fn load<'a>(&mut self, rows: impl ExactSizeIterator<Item = &'a [f32]>) {
        let inputs = self.layers[0].inputs;
        self.rows = rows.len();
        for (r, row) in rows.enumerate() {
            let panel = panel_mut(&mut self.values[0], r / PANEL, inputs);
            for (feature, &value) in panel.chunks_exact_mut(PANEL).zip(row) {
                feature[r % PANEL] = F::of(f64::from(value));
            }
        }
    }

    /// The batch's logits, from what was loaded.
    pub(crate) fn forward(&mut self) {
        for (l, layer) in self.layers.iter().enumerate() {
            let (before, after) = self.values.split_at_mut(l + 1);
            let bias = &self.params[layer.bias()];
            for (p, rows) in panels(self.rows) {
                (self.kernels.affine)(AffineJob {
                    weights: layer.matrix(&self.params),
                    mode: if l < 2 { Mode::Relu(bias) } else { Mode::Plain(bias) },
                    rows,
                    input: panel(&before[l], p, layer.inputs),
                    output: panel_mut(&mut after[0], p, layer.outputs),
                });
            }
        }
    }

    /// One logit per row of the batch: positive for the second class.
    pub(crate) fn logits(&self) -> impl Iterator<Item = F> {
        self.values[3][..self.rows].iter().copied()
    }

    /// The log-loss of the batch, summed, and its gradient with respect to the parameters.
    pub(crate) fn backward(&mut self, labels: impl Iterator<Item = bool>) -> f64 {
        let (mut loss, d_logits) = (0.0, &mut self.d_outputs[2]);
        for ((&logit, d), label) in self.values[3].iter().zip(d_logits.iter_mut()).zip(labels) {
            let (row_loss, row_gradient) = log_loss(logit, label);
            loss += row_loss.f64();
            *d = row_gradient;
        }
        // The kernels work on whole lanes; rows that are not there must add nothing.
        d_logits[self.rows..whole_lanes(self.rows)].fill(F::zero());
        for l in (0..self.layers.len()).rev() {
            self.layer_backward(l);
        }
        loss
    }

    /// From the gradient of a layer's output to that of its parameters and of the layer before it.
    fn layer_backward(&mut self, l: usize) {
        let layer = &self.layers[l];
        let (before, d_output) = self.d_outputs.split_at_mut(l);
        let (d_weights, d_bias) = self.gradient.split_at_mut(self.layers[0].first_bias);
        let bias = layer.first_bias - d_weights.len();
        (self.kernels.affine_weight_gradient)(WeightGradientJob {
            outputs: layer.outputs,
            inputs: layer.inputs,
            rows: self.rows,
            accumulate: false,
            d_output: &d_output[0],
            input: &self.values[l],
            d_weights: &mut d_weights[layer.weights()],
            stride: layer.inputs,
            d_bias: Some(&mut d_bias[bias..bias + layer.outputs]),
            scratch: &mut self.transposed,
        });
        let Some(d_input) = before.last_mut() else { return };
        for (p, rows) in panels(self.rows) {
            (self.kernels.affine_input_gradient)(InputGradientJob {
                weights: layer.matrix(&self.params),
                mask: Some(panel(&self.values[l], p, layer.inputs)),
                accumulate: false,
                rows,
                d_output: panel(&d_output[0], p, layer.outputs),
                d_input: panel_mut(d_input, p, layer.inputs),
            });
        }
    }
}

/// −log of the probability that a logit gives to its label, and the derivative.
pub(super) fn log_loss<F: Real>(logit: F, label: bool) -> (F, F) {
    let wrong = if label { -logit } else { logit };
    let small = (-wrong.abs()).exp();
    let loss = wrong.max(F::zero()) + small.ln_1p();
    let share = if wrong < F::zero() { small } else { F::one() } / (F::one() + small);
    (loss, if label { -share } else { share })
}

/// The panels that hold this many rows, each with its whole lanes of rows.
fn panels(rows: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..rows.div_ceil(PANEL)).map(move |p| (p, whole_lanes(rows - p * PANEL).min(PANEL)))
}

fn panel<F>(buffer: &[F], p: usize, features: usize) -> &[F] {
    &buffer[p * features * PANEL..][..features * PANEL]
}

fn panel_mut<F>(buffer: &mut [F], p: usize, features: usize) -> &mut [F] {
    &mut buffer[p * features * PANEL..][..features * PANEL]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand::RngExt;

    const INPUTS: usize = 3;
    /// Two panels, the second filled to a lane and a bit.
    const ROWS: usize = 64 + 16 + 5;

    /// A network with random parameters and a loaded batch; the label of a row is its parity.
    fn network<F: Real>() -> Mlp<F> {
        let mut rng = Streams::new(3).stream(Purpose::Synthetic, 0, 0);
        let mut mlp = Mlp::new(INPUTS, 7, ROWS);
        mlp.params.fill_with(|| F::of(rng.random_range(-0.7..0.7)));
        let data: Vec<f32> = (0..INPUTS * ROWS).map(|_| rng.random_range(-2.0..2.0)).collect();
        mlp.load(data.chunks_exact(INPUTS));
        mlp
    }

    fn loss<F: Real>(mlp: &mut Mlp<F>) -> f64 {
        mlp.forward();
        mlp.backward((0..ROWS).map(|i| i % 2 == 1))
    }

    #[test]
    fn gradient_is_that_of_finite_differences() {
        let mut mlp = network::<f64>();
        loss(&mut mlp);
        let gradient = mlp.gradient.to_vec();
        for (i, found) in gradient.iter().enumerate() {
            let (h, kept) = (1e-5, mlp.params[i]);
            let [above, below] = [h, -h].map(|h| {
                mlp.params[i] = kept + h;
                loss(&mut mlp)
            });
            mlp.params[i] = kept;
            let expected = (above - below) / (2.0 * h);
            // h² times a third derivative of up to 85 rows, and rounding of a loss of 60 over h:
            // 1e-10 · 85 and 60 · 1e-16 / 1e-5.
            assert!((found - expected).abs() < 1e-8, "{i}: {found} {expected}");
        }
    }

    #[test]
    fn single_precision_agrees_with_double() {
        let (mut single, mut double) = (network::<f32>(), network::<f64>());
        let (a, b) = (loss(&mut single), loss(&mut double));
        // Roundings of 6e-8 in sums of 85 rows of numbers of size 2.
        assert!((a - b).abs() < 1e-4, "{a} {b}");
        for (a, b) in single.gradient.iter().zip(&*double.gradient) {
            assert!((f64::from(*a) - b).abs() < 1e-4, "{a} {b}");
        }
    }

    #[test]
    fn a_smaller_batch_leaves_nothing_of_the_larger_one() {
        let mut mlp = network::<f64>();
        loss(&mut mlp);
        let row = [0.5f32, -1.0, 2.0];
        mlp.load([&row[..]].into_iter());
        mlp.forward();
        mlp.backward([true].into_iter());
        let mut alone = Mlp::<f64>::new(INPUTS, 7, 1);
        alone.params.copy_from_slice(&mlp.params);
        alone.load([&row[..]].into_iter());
        alone.forward();
        alone.backward([true].into_iter());
        assert_eq!(mlp.gradient[..], alone.gradient[..]);
        assert_eq!(mlp.logits().count(), 1);
    }

    #[test]
    fn log_loss_is_exact_far_out() {
        // ln(1 + e⁻⁴⁰) is e⁻⁴⁰ in double precision, and 40 + e⁻⁴⁰ is 40.
        let tiny = (-40f64).exp();
        assert_eq!(log_loss(40.0, true), (tiny, -tiny));
        assert_eq!(log_loss(-40.0, true), (40.0, -1.0));
        assert_eq!(log_loss(0.0, false), (2f64.ln(), 0.5));
    }
}
