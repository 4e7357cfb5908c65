//! What q(θ | x) is made of: a spline flow, or the score of a diffusion.

pub mod coordinates;
mod dataset;
mod ensemble;
mod evaluator;
pub mod flow;
mod relevance;
mod scaling;
pub mod score;
mod whitening;

pub use dataset::Dataset;
pub(crate) use ensemble::{Base, Ensemble};
pub use evaluator::{Cpu, Evaluator};

use crate::error::Result;
use crate::math::normal;
use crate::rows::Rows;
use flow::{FlowConfig, SplineFlow};
use score::{ScoreConfig, ScoreModel};
use serde::{Deserialize, Serialize};

/// A model of q(θ | x) that carries draws of a standard normal base to θ. Its parameters are kept apart from it.
#[derive(Clone, Debug)]
#[expect(clippy::large_enum_variant, reason = "a run has a few, never many")]
pub enum Density {
    /// A conditional spline flow.
    Flow(SplineFlow),
    /// The probability-flow ODE of a diffusion whose score was learnt.
    Score(ScoreModel),
}

/// Its shape, as files hold it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DensityConfig {
    /// Of a flow.
    Flow(FlowConfig),
    /// Of a score.
    Score(ScoreConfig),
}

impl Density {
    /// A model of this shape.
    pub fn new(config: DensityConfig) -> Result<Self> {
        match config {
            DensityConfig::Flow(config) => SplineFlow::new(config).map(Self::Flow),
            DensityConfig::Score(config) => ScoreModel::new(config).map(Self::Score),
        }
    }

    /// Its shape.
    pub fn config(&self) -> DensityConfig {
        match self {
            Self::Flow(flow) => DensityConfig::Flow(flow.config().clone()),
            Self::Score(score) => DensityConfig::Score(score.config().clone()),
        }
    }

    /// Numbers of θ and of x.
    pub fn dims(&self) -> (usize, usize) {
        match self {
            Self::Flow(flow) => (flow.config().theta_dim, flow.config().x_dim),
            Self::Score(score) => (score.config().theta_dim, score.config().x_dim),
        }
    }

    /// The flow, if it is one.
    pub fn flow(&self) -> Option<&SplineFlow> {
        match self {
            Self::Flow(flow) => Some(flow),
            Self::Score(_) => None,
        }
    }

    /// Parameters to start from.
    pub fn initial_params(&self, rng: &mut impl rand::Rng) -> Vec<f32> {
        match self {
            Self::Flow(flow) => flow.initial_params(rng),
            Self::Score(score) => score.initial_params(rng),
        }
    }

    /// Number of parameters.
    pub fn params_len(&self) -> usize {
        match self {
            Self::Flow(flow) => flow.params_len(),
            Self::Score(score) => score.params_len(),
        }
    }

    /// Refuses parameters of another model, and those that hold NaN or infinity.
    pub fn check_params(&self, params: &[f32]) -> Result<()> {
        match self {
            Self::Flow(flow) => flow.check_params(params),
            Self::Score(score) => score.check_params(params),
        }
    }

    /// Makes parameters read new features of x, of which the old ones are `offset` + `slope` · new.
    pub fn fold_x(&self, params: &mut [f32], offset: &[f64], slope: &[f64]) {
        match self {
            Self::Flow(flow) => flow.fold_x(params, offset, slope),
            Self::Score(score) => score.fold_x(params, offset, slope),
        }
    }

    /// θ of given draws of the base. A flow is computed on the device, a score on the cores of this machine; so it is
    /// with the methods below.
    pub fn sample(
        &self,
        device: &dyn Evaluator,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<Vec<f32>> {
        match self {
            Self::Flow(flow) => device.transport(flow, params, x, base).map(|(theta, _)| theta),
            Self::Score(score) => score.sample(params, x, base),
        }
    }

    /// θ of given draws of the base, and log q(θ | x).
    pub fn transport(
        &self,
        device: &dyn Evaluator,
        params: &[f32],
        x: &[f32],
        base: &[f32],
    ) -> Result<(Vec<f32>, Vec<f64>)> {
        let score = match self {
            Self::Flow(flow) => return device.transport(flow, params, x, base),
            Self::Score(score) => score,
        };
        let (theta, mut log_q) = score.transport(params, x, base)?;
        for (log_q, u) in log_q.iter_mut().zip(base.chunks_exact(self.dims().0)) {
            *log_q = u.iter().map(|&u| normal::log_density(u.into())).sum::<f64>() - *log_q;
        }
        Ok((theta, log_q))
    }

    /// log q(θ | x) for each row of `theta`; `x` has as many rows, or one that all share.
    pub fn log_density(
        &self,
        device: &dyn Evaluator,
        params: &[f32],
        theta: Rows<f32>,
        x: Rows<f32>,
    ) -> Result<Vec<f64>> {
        match self {
            Self::Flow(flow) => device.log_density(flow, params, theta, x),
            Self::Score(score) => score.log_density(params, theta, x),
        }
    }
}
