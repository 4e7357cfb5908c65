//! Figures: pure functions from results to the text of an SVG image.

mod levels;

pub use levels::level_plot;
