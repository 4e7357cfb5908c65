//! Where each weight lies in the one flat vector of parameters.
//!
//! The order is that of nflows: for each layer the conditioner (first layer; per block: context gate,
//! two linear layers; last layer), then the linear layer (bias, lower, upper, diagonal). Matrices are
//! row-major, output by input.

use super::FlowConfig;
use crate::error::{Error, Result};
use crate::network::kernel::{Real, Weights};
use std::ops::Range;

/// One affine map: a matrix and a bias.
#[derive(Clone, Debug)]
pub(crate) struct Dense {
    pub weight: usize,
    pub bias: usize,
    pub inputs: usize,
    pub outputs: usize,
}

impl Dense {
    pub(crate) fn weights<'a, F>(&self, params: &'a [F]) -> Weights<'a, F> {
        self.columns(params, 0..self.inputs)
    }

    /// Only some columns of the matrix.
    pub(crate) fn columns<'a, F>(&self, params: &'a [F], columns: Range<usize>) -> Weights<'a, F> {
        Weights {
            data: &params[self.weight + columns.start..self.bias],
            outputs: self.outputs,
            inputs: columns.len(),
            stride: self.inputs,
        }
    }

    pub(crate) fn bias<'a, F>(&self, params: &'a [F]) -> &'a [F] {
        &params[self.bias..][..self.outputs]
    }

    /// Matrix and bias, to write gradients to.
    pub(crate) fn split<'a, F>(&self, params: &'a mut [F]) -> (&'a mut [F], &'a mut [F]) {
        params[self.weight..self.bias + self.outputs].split_at_mut(self.bias - self.weight)
    }
}

/// Where the gradient of the parameters goes: added to what is there, or in its place.
///
/// Every parameter is written exactly once by a backward pass, so replacing saves clearing first.
#[derive(Debug)]
pub struct Gradient<'a, F> {
    /// As long as the parameters.
    pub sum: &'a mut [F],
    /// Add to `sum` instead of replacing it.
    pub accumulate: bool,
}

impl<F: Real> Gradient<'_, F> {
    pub(super) fn put(&mut self, i: usize, value: F) {
        self.sum[i] = if self.accumulate { self.sum[i] + value } else { value };
    }
}

/// A residual block: h + sigmoid(context x) ⊙ second(relu(first(relu h))).
#[derive(Clone, Debug)]
pub(super) struct Block {
    pub context: Dense,
    pub first: Dense,
    pub second: Dense,
}

/// y = L (U z) + bias; L unit lower triangular, U upper with diagonal softplus(diagonal) + 1e-3.
#[derive(Clone, Debug)]
pub(super) struct Linear {
    pub bias: usize,
    pub lower: usize,
    pub upper: usize,
    pub diagonal: usize,
    pub dim: usize,
}

/// One coupling layer and the linear layer after it.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    /// Features that condition and pass unchanged.
    pub identity: Vec<usize>,
    /// Features that the splines act on.
    pub transformed: Vec<usize>,
    pub initial: Dense,
    pub blocks: Vec<Block>,
    pub last: Dense,
    pub linear: Linear,
}

/// A named piece of the parameter vector, as it is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tensor {
    /// For example `layers.0.blocks.1.first.weight`.
    pub name: String,
    /// Where it lies.
    pub range: Range<usize>,
    /// Rows and columns, or the length alone.
    pub shape: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub layers: Vec<Layer>,
    pub tensors: Vec<Tensor>,
    pub len: usize,
}

impl Layout {
    pub(super) fn new(config: &FlowConfig) -> Self {
        let mut builder = Builder::default();
        let layers = (0..config.layers).map(|l| builder.layer(config, l)).collect();
        Self { layers, tensors: builder.tensors, len: builder.len }
    }
}

/// Hands out the places of the flat vector, one after the other.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    pub tensors: Vec<Tensor>,
    pub len: usize,
}

impl Builder {
    fn take(&mut self, name: String, shape: &[usize]) -> usize {
        let start = self.len;
        self.len += shape.iter().product::<usize>();
        self.tensors.push(Tensor { name, range: start..self.len, shape: shape.to_vec() });
        start
    }

    pub(crate) fn dense(&mut self, name: &str, inputs: usize, outputs: usize) -> Dense {
        let weight = self.take(format!("{name}.weight"), &[outputs, inputs]);
        let bias = self.take(format!("{name}.bias"), &[outputs]);
        Dense { weight, bias, inputs, outputs }
    }

    fn layer(&mut self, config: &FlowConfig, l: usize) -> Layer {
        let (dim, units) = (config.theta_dim, config.units);
        let (mut transformed, mut identity): (Vec<_>, Vec<_>) =
            (0..dim).partition(|f| f % 2 == l % 2);
        if transformed.is_empty() {
            // One dimension: every layer transforms it, conditioned on x alone.
            (transformed, identity) = (identity, transformed);
        }
        let at = format!("layers.{l}");
        let initial = self.dense(&format!("{at}.initial"), identity.len() + config.x_dim, units);
        let blocks = (0..config.blocks)
            .map(|b| {
                let at = format!("{at}.blocks.{b}");
                let context = self.dense(&format!("{at}.context"), config.x_dim, units);
                let first = self.dense(&format!("{at}.first"), units, units);
                let second = self.dense(&format!("{at}.second"), units, units);
                Block { context, first, second }
            })
            .collect();
        let logits = transformed.len() * config.spline().logits();
        let last = self.dense(&format!("{at}.last"), units, logits);
        let triangle = dim * (dim - 1) / 2;
        let linear = Linear {
            bias: self.take(format!("{at}.linear.bias"), &[dim]),
            lower: self.take(format!("{at}.linear.lower"), &[triangle]),
            upper: self.take(format!("{at}.linear.upper"), &[triangle]),
            diagonal: self.take(format!("{at}.linear.diagonal"), &[dim]),
            dim,
        };
        Layer { identity, transformed, initial, blocks, last, linear }
    }
}

/// Refuses a parameter vector that is not as long as the shape of a model (`why`) asks for, or holds NaN or infinity.
pub(crate) fn check_params<F: Real>(
    params: &[F],
    expected: usize,
    why: &'static str,
) -> Result<()> {
    if params.len() != expected {
        let (name, unit, found) = ("params", "numbers", params.len());
        return Err(Error::Shape { name, unit, found, expected, why });
    }
    match params.iter().position(|p| !p.is_finite()) {
        Some(index) => Err(Error::BadParams { index, value: params[index].f64() }),
        None => Ok(()),
    }
}
