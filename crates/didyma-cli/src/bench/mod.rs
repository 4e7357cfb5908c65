//! `didyma bench`: how fast this machine is.

mod simulate;
mod step;

pub use simulate::simulate;
pub use step::step;
