//! Runs in words: while they go on, in short, and what to know before trusting them.

mod calibration;
mod commands;
mod levels;
mod narrator;
mod overview;
mod verdict;
mod words;

pub use calibration::CalibrationReport;
pub use commands::command;
use levels::level_line;
pub(super) use levels::level_table;
pub use narrator::{Line, Narrator, opening, round_line};
pub use overview::Overview;
pub use verdict::verdict;
pub use words::{
    ParameterLine, QUANTILES, advice, cut_by_prior, least_predictive, parameter_lines,
};
