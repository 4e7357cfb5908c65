//! Where each weight of a score network lies in the one flat vector of parameters.

use super::{Output, ScoreConfig};
use crate::density::flow::{Builder, Dense, Tensor};

/// Numbers that a time is embedded in: sines, then cosines.
pub(super) const TIME: usize = 64;

/// Two hidden layers and a linear one.
#[derive(Clone, Debug)]
pub(super) struct Mlp {
    pub first: Dense,
    pub second: Dense,
    pub last: Dense,
}

impl Mlp {
    fn new(builder: &mut Builder, name: &str, inputs: usize, units: usize, outputs: usize) -> Self {
        Self {
            first: builder.dense(&format!("{name}.first"), inputs, units),
            second: builder.dense(&format!("{name}.second"), units, units),
            last: builder.dense(&format!("{name}.last"), units, outputs),
        }
    }

    pub(super) fn layers(&self) -> [&Dense; 3] {
        [&self.first, &self.second, &self.last]
    }
}

/// θ and x are embedded by a network each; the main one reads both embeddings and that of the time, in this order.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    pub theta: Mlp,
    pub x: Mlp,
    pub main: Mlp,
    pub tensors: Vec<Tensor>,
    pub len: usize,
}

impl Layout {
    pub(super) fn new(config: &ScoreConfig) -> Self {
        let ScoreConfig { theta_dim, x_dim, units, .. } = *config;
        let mut builder = Builder::default();
        let [from_theta, from_x] = [theta_dim, x_dim].map(|dim| (4 * dim).max(30));
        let outputs = match config.output {
            Output::Energy => 1,
            Output::Direct => theta_dim,
        };
        let theta = Mlp::new(&mut builder, "theta", theta_dim, units, from_theta);
        let x = Mlp::new(&mut builder, "x", x_dim, units, from_x);
        let main = Mlp::new(&mut builder, "main", from_theta + from_x + TIME, units, outputs);
        Self { theta, x, main, tensors: builder.tensors, len: builder.len }
    }
}
