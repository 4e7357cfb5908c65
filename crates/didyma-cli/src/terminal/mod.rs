//! The terminal while a command works: progress, pictures, interrupts.

mod board;
mod charts;
mod interrupt;
mod live;
mod progress;
pub mod screen;
mod shard_bar;

pub use board::Board;
pub use charts::{bars, bin, bounds, curve};
pub use interrupt::{Stop, end_on_interrupt, interrupts, stop_on_interrupt, unless};
pub use live::Live;
pub use progress::bar;
pub use screen::Screen;
pub use shard_bar::{ShardBar, failed_in_a_row};
