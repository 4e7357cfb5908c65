//! Training: where the arithmetic of a step runs, the optimiser, and the epochs of a round.

mod adam;
mod cpu;
mod engine;
mod fit;
mod flow;
mod noise;
mod optimiser;
mod score;
mod shared;
mod team;
mod tiles;

pub use adam::{AdamConfig, Decay};
pub use engine::{Engine, EngineState};
pub use fit::{Best, EpochReport, Fit, FitState, StopReason, TrainRows};
pub use flow::CpuEngine;
pub use noise::Noise;
pub use score::ScoreEngine;
