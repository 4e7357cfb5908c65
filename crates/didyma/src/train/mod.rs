//! Training steps: where the arithmetic runs, and the optimiser.

mod adam;
mod cpu;
mod engine;
mod shared;
mod team;
mod tiles;

pub use adam::{AdamConfig, Decay};
pub use cpu::CpuEngine;
pub use engine::Engine;
