//! How q is learnt: the estimators of the loss, the engine that computes a step, the optimiser, the epochs of a round.

mod adam;
mod config;
mod cpu;
pub(crate) mod device;
mod engine;
pub mod estimator;
mod fit;
mod fit_state;
pub(crate) mod levels;
pub(crate) mod reservoir;

pub use crate::density::{Cpu, Evaluator};
pub use adam::{AdamConfig, Decay};
pub use config::{Inner, LevelSource, Schedule, Split, Start, TrainConfig, Validation};
pub use cpu::{CpuEngine, Noise, ScoreEngine};
pub use device::{Device, Machine};
pub use engine::{Engine, EngineState};
pub use fit::Fit;
pub(crate) use fit::fitted;
pub use fit_state::{Best, EpochReport, FitState, StopReason, TrainRows};
pub use reservoir::Reservoir;
