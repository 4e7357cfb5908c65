//! Runs as pictures: figures, and a page that holds them all. Pure functions from what was read to text and bytes.

mod check_page;
mod data;
mod figures;
mod page;
mod text;
mod verdict;

pub use check_page::check_page;
pub use data::{Cohort, Columns, Comparison, RunData, columns};
pub use didyma_plot::Place;
pub use figures::{Figure, Kind, level_plot, png};
pub use page::{page, write_page};
pub use text::{
    CalibrationReport, Line, Narrator, Overview, ParameterLine, QUANTILES, advice, command,
    cut_by_prior, least_predictive, opening, parameter_lines, round_line, verdict,
};
