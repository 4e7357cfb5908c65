//! Engines on the cores of this machine: a team of threads, tiles of whole groups, sums in a fixed order.

mod engine;
mod flow;
mod noise;
mod optimiser;
mod score;
mod shared;
mod team;
mod tiles;

pub use flow::CpuEngine;
pub use noise::Noise;
pub use score::ScoreEngine;
