//! `didyma bench`: how fast this machine is.

mod report;
mod simulate;
mod step;

pub use simulate::simulate;
pub use step::step;
