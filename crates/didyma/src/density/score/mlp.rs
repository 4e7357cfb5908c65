//! A network of two hidden layers and its derivatives up to the second, on one panel of rows.
//!
//! With pre-activations a, activations h = φ(a) and matrices W, for a scalar E of the output:
//!
//! ```text
//! forward   a = W h₋ + b        h = φ(a)
//! adjoint   g = ∂E/∂h           δ = φ′ g             g₋ = Wᵀ δ
//! tangent   ȧ = W ḣ₋            ḣ = φ′ ȧ             along some direction of the input
//! reverse   ā = φ′ h̄ + φ″ g ȧ   h̄₋ = Wᵀ ā
//! ```
//!
//! `reverse` without its second term is backpropagation. With it, it is the derivative of `adjoint` along the tangent (a
//! Hessian–vector product), and also the backpropagation through `adjoint` itself: v · ∂E/∂input has the gradient
//! ā h₋ᵀ + δ ḣ₋ᵀ with respect to W if v is the direction of the tangent.

use super::layout::Mlp;
use crate::density::flow::{Dense, Gradient};
use crate::network::kernel::{
    AffineJob, Aligned, InputGradientJob, Kernels, Mode, PANEL, Real, SiluJob, WeightGradientJob,
    Weights,
};
use std::ops::Range;

/// How many derivatives of the activations a forward pass leaves behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Order {
    Value,
    Slope,
    Curvature,
}

/// All panels of one hidden layer.
#[derive(Debug)]
pub(super) struct Hidden<F> {
    /// a, and ȧ after `tangent`.
    pub pre: Aligned<F>,
    /// h
    pub value: Aligned<F>,
    /// φ′(a)
    slope: Aligned<F>,
    /// φ″(a), and φ″(a) g after `adjoint`.
    bend: Aligned<F>,
    /// δ
    delta: Aligned<F>,
    /// ḣ
    tangent: Aligned<F>,
    /// ā
    pub bar: Aligned<F>,
}

impl<F: Real> Hidden<F> {
    fn new(units: usize) -> Self {
        let panel = || Aligned::zeros(units * PANEL);
        Self {
            pre: panel(),
            value: panel(),
            slope: panel(),
            bend: panel(),
            delta: panel(),
            tangent: panel(),
            bar: panel(),
        }
    }

    fn activate(&mut self, pass: &Pass<F>, order: Order) {
        (pass.kernels.silu)(SiluJob {
            rows: pass.rows,
            input: &self.pre,
            value: &mut self.value,
            slope: (order >= Order::Slope).then_some(&mut *self.slope),
            curvature: (order >= Order::Curvature).then_some(&mut *self.bend),
        });
    }

    /// From g in the place of δ to δ, and from φ″ to φ″ g.
    fn keep_adjoint(&mut self, order: Order) {
        if order >= Order::Curvature {
            self.bend.iter_mut().zip(&*self.delta).for_each(|(bend, &g)| *bend *= g);
        }
        self.delta.iter_mut().zip(&*self.slope).for_each(|(g, &slope)| *g *= slope);
    }

    fn keep_tangent(&mut self) {
        let parts = self.slope.iter().zip(&*self.pre);
        self.tangent.iter_mut().zip(parts).for_each(|(to, (&slope, &pre))| *to = slope * pre);
    }

    /// From h̄ in the place of ā to ā.
    fn keep_reverse(&mut self, order: Order) {
        self.bar.iter_mut().zip(&*self.slope).for_each(|(bar, &slope)| *bar *= slope);
        if order >= Order::Curvature {
            let parts = self.bend.iter().zip(&*self.pre);
            self.bar.iter_mut().zip(parts).for_each(|(bar, (&bend, &pre))| *bar += bend * pre);
        }
    }
}

/// The memory of one network.
pub(super) type MlpTape<F> = [Hidden<F>; 2];

pub(super) fn mlp_tape<F: Real>(units: usize) -> MlpTape<F> {
    [Hidden::new(units), Hidden::new(units)]
}

/// What every product of a pass needs.
#[derive(Clone, Copy)]
pub(super) struct Pass<'a, F: Real> {
    pub kernels: &'static Kernels<F>,
    pub params: &'a [F],
    /// Rows in use, in whole lanes.
    pub rows: usize,
    /// As many zeros as the widest layer has outputs: the bias of a tangent.
    pub zeros: &'a [F],
}

impl<F: Real> Pass<'_, F> {
    pub(super) fn affine(&self, weights: Weights<F>, bias: &[F], input: &[F], output: &mut [F]) {
        let (mode, rows) = (Mode::Plain(bias), self.rows);
        (self.kernels.affine)(AffineJob { weights, mode, rows, input, output });
    }

    fn layer(&self, dense: &Dense, input: &[F], output: &mut [F]) {
        self.affine(dense.weights(self.params), dense.bias(self.params), input, output);
    }

    /// output = W input
    pub(super) fn product(&self, weights: Weights<F>, input: &[F], output: &mut [F]) {
        self.affine(weights, self.zeros, input, output);
    }

    /// d_input = Wᵀ d_output
    pub(super) fn back(&self, weights: Weights<F>, d_output: &[F], d_input: &mut [F]) {
        let (mask, accumulate, rows) = (None, false, self.rows);
        let job = InputGradientJob { weights, mask, accumulate, rows, d_output, d_input };
        (self.kernels.affine_input_gradient)(job);
    }
}

impl Mlp {
    pub(super) fn forward<F: Real>(
        &self,
        pass: &Pass<F>,
        tape: &mut MlpTape<F>,
        order: Order,
        input: &[F],
        output: &mut [F],
    ) {
        pass.layer(&self.first, input, &mut tape[0].pre);
        self.finish(pass, tape, order, output);
    }

    /// `forward` when the first layer's pre-activations are known.
    pub(super) fn finish<F: Real>(
        &self,
        pass: &Pass<F>,
        [one, two]: &mut MlpTape<F>,
        order: Order,
        output: &mut [F],
    ) {
        one.activate(pass, order);
        pass.layer(&self.second, &one.value, &mut two.pre);
        two.activate(pass, order);
        pass.layer(&self.last, &two.value, output);
    }

    /// From ∂E/∂output to ∂E/∂input of some columns.
    pub(super) fn adjoint<F: Real>(
        &self,
        pass: &Pass<F>,
        [one, two]: &mut MlpTape<F>,
        order: Order,
        d_output: &[F],
        (columns, d_input): (Range<usize>, &mut [F]),
    ) {
        pass.back(self.last.weights(pass.params), d_output, &mut two.delta);
        two.keep_adjoint(order);
        pass.back(self.second.weights(pass.params), &two.delta, &mut one.delta);
        one.keep_adjoint(order);
        pass.back(self.first.columns(pass.params, columns), &one.delta, d_input);
    }

    /// Along a direction of some columns of the input, up to the last hidden layer.
    pub(super) fn tangent<F: Real>(
        &self,
        pass: &Pass<F>,
        [one, two]: &mut MlpTape<F>,
        (columns, direction): (Range<usize>, &[F]),
    ) {
        pass.product(self.first.columns(pass.params, columns), direction, &mut one.pre);
        one.keep_tangent();
        pass.product(self.second.weights(pass.params), &one.tangent, &mut two.pre);
        two.keep_tangent();
    }

    /// The tangent of some outputs.
    pub(super) fn output_tangent<F: Real>(
        &self,
        pass: &Pass<F>,
        [_, two]: &MlpTape<F>,
        outputs: Range<usize>,
        tangent: &mut [F],
    ) {
        let weights = self.last.weights(pass.params);
        let data = &weights.data[outputs.start * weights.stride..];
        let weights = Weights { data, outputs: outputs.len(), ..weights };
        pass.product(weights, &two.tangent, tangent);
    }

    /// From the gradient of the output to ā of both hidden layers.
    pub(super) fn reverse<F: Real>(
        &self,
        pass: &Pass<F>,
        [one, two]: &mut MlpTape<F>,
        order: Order,
        d_output: &[F],
    ) {
        pass.back(self.last.weights(pass.params), d_output, &mut two.bar);
        two.keep_reverse(order);
        pass.back(self.second.weights(pass.params), &two.bar, &mut one.bar);
        one.keep_reverse(order);
    }

    /// The gradient of some columns of the input after `reverse`.
    pub(super) fn input_gradient<F: Real>(
        &self,
        pass: &Pass<F>,
        [one, _]: &MlpTape<F>,
        columns: Range<usize>,
        d_input: &mut [F],
    ) {
        pass.back(self.first.columns(pass.params, columns), &one.bar, d_input);
    }

    /// ā h₋ᵀ of all three layers, after `reverse`.
    pub(super) fn weight_gradient<F: Real>(
        &self,
        sums: &mut Sums<F>,
        [one, two]: &MlpTape<F>,
        input: &[F],
        d_output: &[F],
    ) {
        sums.add(&self.first, &one.bar, input);
        sums.add(&self.second, &two.bar, &one.value);
        sums.add(&self.last, d_output, &two.value);
    }

    /// Adds δ ḣ₋ᵀ of all three layers, after `adjoint` and `tangent`.
    pub(super) fn adjoint_weight_gradient<F: Real>(
        &self,
        sums: &mut Sums<F>,
        [one, two]: &MlpTape<F>,
        (columns, direction): (Range<usize>, &[F]),
        adjoint: &[F],
    ) {
        sums.add_tangent(&self.first, columns, &one.delta, direction);
        sums.add_tangent(&self.second, 0..self.second.inputs, &two.delta, &one.tangent);
        sums.add_tangent(&self.last, 0..self.last.inputs, adjoint, &two.tangent);
    }
}

/// Where the gradients of weights are summed.
pub(super) struct Sums<'a, F: Real> {
    pub kernels: &'static Kernels<F>,
    pub rows: usize,
    pub gradient: Gradient<'a, F>,
    pub scratch: &'a mut [F],
}

impl<F: Real> Sums<'_, F> {
    fn add(&mut self, dense: &Dense, d_output: &[F], input: &[F]) {
        let (d_weights, d_bias) = dense.split(self.gradient.sum);
        (self.kernels.affine_weight_gradient)(WeightGradientJob {
            outputs: dense.outputs,
            inputs: dense.inputs,
            rows: self.rows,
            accumulate: self.gradient.accumulate,
            d_output,
            input,
            d_weights,
            stride: dense.inputs,
            d_bias: Some(d_bias),
            scratch: self.scratch,
        });
    }

    fn add_tangent(&mut self, dense: &Dense, columns: Range<usize>, delta: &[F], tangent: &[F]) {
        let (d_weights, _) = dense.split(self.gradient.sum);
        (self.kernels.affine_weight_gradient)(WeightGradientJob {
            outputs: dense.outputs,
            inputs: columns.len(),
            rows: self.rows,
            accumulate: true,
            d_output: delta,
            input: tangent,
            d_weights: &mut d_weights[columns.start..],
            stride: dense.inputs,
            d_bias: None,
            scratch: self.scratch,
        });
    }
}
