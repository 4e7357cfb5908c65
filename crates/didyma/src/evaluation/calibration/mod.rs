//! Calibration: do the probabilities that posteriors state come true over simulations whose parameters are known?

mod uniformity;

pub use uniformity::{Bands, LEAST_ROWS, MOST_POINTS, Uniformity};
