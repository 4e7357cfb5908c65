//! The conditional neural spline flow q(θ | x), with hand-derived gradients.
//!
//! z = f(θ; x) is a chain of L layers, each a spline coupling followed by a linear map, and
//!
//! ```text
//! log q(θ | x) = log N(z; 0, I) + Σ_l log |det J_l|
//! ```
//!
//! A coupling leaves every other feature as it is; these and x go through a residual network that
//! yields a monotone rational-quadratic spline for each of the remaining features (Durkan et al.
//! 2019, "Neural Spline Flows"). With one dimension there is nothing to couple: every layer then
//! transforms it by a spline that depends on x alone.
//!
//! Work comes in tiles of pairs (θ, x) that share x in groups: see [`Tape`].

mod conditioner;
mod conditioner_gradient;
mod config;
mod fold;
mod gradient;
mod groups;
mod layout;
mod linear;
mod pass;
mod rows;
mod tape;

pub use config::FlowConfig;
pub(crate) use fold::fold;
pub use groups::Groups;
pub(crate) use layout::{Builder, Dense, check_params};
pub use layout::{Gradient, Tensor};
pub use rows::{check_densities, check_samples};
pub use tape::Tape;

use crate::error::Result;
use crate::network::kernel::{MIN_DERIVATIVE, Real};
use layout::Layout;
use rand::RngExt;

/// Bound of the first weights of a residual block's second layer: blocks start near the identity.
const SECOND_LAYER_BOUND: f64 = 1e-3;

/// The shape of a flow; its parameters are kept outside.
///
/// ```
/// use didyma::{FlowConfig, Rows, SplineFlow};
/// use didyma::rng::{Purpose, Streams};
///
/// let flow = SplineFlow::new(FlowConfig::new(2, 3))?;
/// let streams = Streams::new(1);
/// let params: Vec<f32> = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
///
/// let x_o = [0.5, -0.2, 1.0];
/// let mut rng = streams.stream(Purpose::Posterior, 0, 0);
/// let (theta, log_q) = flow.sample(&params, &x_o, 100, &mut rng)?;
/// let again = flow.log_density(&params, Rows::new("theta", &theta, 2)?, Rows::new("x", &x_o, 3)?)?;
/// assert!(log_q.iter().zip(&again).all(|(a, b)| (a - b).abs() < 1e-3));
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SplineFlow {
    config: FlowConfig,
    layout: Layout,
}

impl SplineFlow {
    /// A flow of this shape.
    ///
    /// Numbers far from unit scale, such as raw summaries in the thousands, saturate the conditioner
    /// and make splines so steep that f32 cannot resolve them: scale θ and x before the flow
    /// ([`Coordinates`](crate::coordinates::Coordinates)).
    pub fn new(config: FlowConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { layout: Layout::new(&config), config })
    }

    /// The shape.
    pub fn config(&self) -> &FlowConfig {
        &self.config
    }

    /// Number of parameters.
    pub fn params_len(&self) -> usize {
        self.layout.len
    }

    /// The parameters by name, in the order of the flat vector.
    pub fn tensors(&self) -> &[Tensor] {
        &self.layout.tensors
    }

    /// First parameters: U(±1/√inputs) for weights and biases (PyTorch's default), U(±10⁻³) for the
    /// second layer of each residual block, and the identity for the linear layers.
    pub fn initial_params<F: Real>(&self, rng: &mut impl rand::Rng) -> Vec<F> {
        let mut params = vec![F::zero(); self.layout.len];
        let mut fill = |dense: &Dense, bound: f64| {
            for p in &mut params[dense.weight..dense.bias + dense.outputs] {
                *p = F::of(bound * (2.0 * rng.random::<f64>() - 1.0));
            }
        };
        let default = |dense: &Dense| 1.0 / (dense.inputs as f64).sqrt();
        for layer in &self.layout.layers {
            fill(&layer.initial, default(&layer.initial));
            for block in &layer.blocks {
                fill(&block.context, default(&block.context));
                fill(&block.first, default(&block.first));
                fill(&block.second, SECOND_LAYER_BOUND);
            }
            fill(&layer.last, default(&layer.last));
        }
        let unit_diagonal = F::of(((1.0 - MIN_DERIVATIVE).exp() - 1.0).ln());
        for layer in &self.layout.layers {
            params[layer.linear.diagonal..][..layer.linear.dim].fill(unit_diagonal);
        }
        params
    }

    /// Floating-point operations of the matrix products of one training step on this many pairs in
    /// this many groups: 2 per multiply-add; 3 products per matrix (forward, and the gradients of
    /// input and weights), 2 for those that read x, which needs no gradient.
    pub fn flops(&self, pairs: usize, groups: usize) -> u64 {
        let (mut per_pair, mut per_group) = (0, 0);
        for layer in &self.layout.layers {
            let (units, known) = (layer.initial.outputs, layer.identity.len());
            let hidden = layer.blocks.len() * 2 * units * units + units * layer.last.outputs;
            let from_x = (1 + layer.blocks.len()) * self.config.x_dim * units;
            per_group += 2 * from_x;
            per_pair += 3 * layer.linear.dim * layer.linear.dim;
            let conditioner = if known == 0 { &mut per_group } else { &mut per_pair };
            *conditioner += 3 * (known * units + hidden);
        }
        2 * (per_pair * pairs + per_group * groups) as u64
    }
}
