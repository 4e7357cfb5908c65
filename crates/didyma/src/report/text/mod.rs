//! Runs in words: while they go on, in short, and what to know before trusting them.

mod commands;
mod narrator;
mod overview;
mod words;

pub use commands::command;
pub use narrator::{Line, Narrator, opening, round_line};
pub use overview::Overview;
pub(super) use words::reassurance;
pub use words::{
    ParameterLine, QUANTILES, advice, cut_by_prior, least_predictive, parameter_lines,
};
