//! A conditional score network: q(θ | x) as the end of a diffusion run backwards.
//!
//! Noise is added to θ until only noise is left ([`Moment`]). A network learns the score of what is in between,
//! s(θ_t, x, t) = ∇ log p(θ_t | x), from pairs (θ, x) alone: by denoising score matching, the least-squares prediction of
//! −noise / std. With the score known, the probability-flow equation dθ/dt = −½ β (θ + s) carries standard normal draws to
//! draws of q(θ | x), and its divergence their density (Song et al. 2021, "Score-Based Generative Modeling through
//! Stochastic Differential Equations").
//!
//! Three networks of two hidden layers: one embeds θ_t, one x, and the main one reads both and an embedding of the time.
//! Its output is the score, or an energy whose gradient is the score ([`Output`]).

mod config;
mod diffusion;
mod field;
mod layout;
mod loss;
mod mlp;
mod ode;
mod rows;
mod tape;
#[cfg(test)]
mod tests;

pub use config::{Output, ScoreConfig};
pub use diffusion::Moment;
pub(crate) use diffusion::TRAINED_FROM;
pub use tape::Tape;

use crate::density::flow::{Tensor, check_params, fold};
use crate::error::Result;
use crate::network::kernel::Real;
use layout::Layout;
use rand::RngExt;

/// The shape of a score network; its parameters are kept outside.
///
/// θ and x should be near unit scale: the diffusion ends in a standard normal law, whatever it begins with.
///
/// ```
/// use didyma::Rows;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::score::{ScoreConfig, ScoreModel};
///
/// let model = ScoreModel::new(ScoreConfig { units: 16, ..ScoreConfig::new(2, 3) })?;
/// let params = model.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
///
/// // Two draws of the standard normal law become two draws of q(θ | x).
/// let (base, x) = ([0.3, -1.1, 0.7, 0.2], [0.5, -0.2, 1.0]);
/// let (z, log_det) = model.transport(&params, &x, &base)?;
/// let log_q = model.log_density(&params, Rows::new("z", &z, 2)?, Rows::new("x", &x, 3)?)?;
/// let normal = |b: &[f32]| -0.5 * (b[0] * b[0] + b[1] * b[1]) - std::f32::consts::TAU.ln();
/// for i in 0..2 {
///     let expected = f64::from(normal(&base[2 * i..][..2])) - log_det[i];
///     assert!((log_q[i] - expected).abs() < 1e-2);
/// }
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ScoreModel {
    config: ScoreConfig,
    layout: Layout,
}

impl ScoreModel {
    /// A network of this shape.
    pub fn new(config: ScoreConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { layout: Layout::new(&config), config })
    }

    /// The shape.
    pub fn config(&self) -> &ScoreConfig {
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

    /// First parameters: U(±1/√inputs) for weights and biases.
    pub fn initial_params(&self, rng: &mut impl rand::Rng) -> Vec<f32> {
        let Layout { theta, x, main, .. } = &self.layout;
        let mut params = vec![0.0; self.layout.len];
        for dense in [theta, x, main].into_iter().flat_map(|mlp| mlp.layers()) {
            let bound = 1.0 / (dense.inputs as f64).sqrt();
            for p in &mut params[dense.weight..dense.bias + dense.outputs] {
                *p = (bound * (2.0 * rng.random::<f64>() - 1.0)) as f32;
            }
        }
        params
    }

    /// Refuses a parameter vector of another network, and one that holds NaN or infinity.
    pub fn check_params<F: Real>(&self, params: &[F]) -> Result<()> {
        check_params(params, self.params_len(), "the shape of the score network")
    }

    /// Makes parameters read new features of x, of which the old ones are `offset` + `slope` · new: the network stays the
    /// same function.
    pub fn fold_x(&self, params: &mut [f32], offset: &[f64], slope: &[f64]) {
        assert_eq!(offset.len(), self.config.x_dim, "one for each number of x");
        fold(&self.layout.x.first, 0, params, offset, slope);
    }

    /// Numbers of the embedding of θ, and of x.
    fn embedded(&self) -> (usize, usize) {
        (self.layout.theta.last.outputs, self.layout.x.last.outputs)
    }

    /// Floating-point operations of the matrix products of one training step on this many pairs: 2 per multiply-add, 3
    /// products per matrix (forward, and the gradients of input and weights). An energy also needs the adjoint, the
    /// tangent and their weight gradient of every matrix that θ passes.
    pub fn flops(&self, pairs: usize) -> u64 {
        let Layout { theta, x, main, .. } = &self.layout;
        let weights = |mlp: &layout::Mlp| -> usize {
            mlp.layers().iter().map(|dense| dense.inputs * dense.outputs).sum()
        };
        let units = self.config.units;
        let not_from_theta = (main.first.inputs - self.embedded().0) * units;
        let (of_theta, of_x) = (weights(theta), weights(x));
        let once = 3 * (of_theta + of_x + weights(main))
            - units * (self.config.theta_dim + self.config.x_dim + layout::TIME);
        let twice = match self.config.output {
            Output::Direct => 0,
            Output::Energy => 3 * (of_theta + weights(main) - not_from_theta),
        };
        2 * ((once + twice) * pairs) as u64
    }
}
