//! Runs as pictures: figures, and a page that holds them all. Pure functions from what was read to text and bytes.

mod checked;
mod commands;
mod compare;
mod data;
mod figure;
mod key;
mod levels;
mod metrics;
mod narrator;
mod overview;
mod page;
mod pairs;
mod predictive;
mod rounds;
mod summaries;
mod time;
mod training;
mod words;

pub use checked::check_page;
pub use commands::command;
pub use compare::{Comparison, Group};
pub use data::{Columns, Epoch, RunData, columns, epochs};
pub use didyma_plot::{Curve, CurvePoint, Panel, Place, curves};
pub use figure::{Figure, Kind, png};
pub use levels::level_plot;
pub use narrator::{Line, Narrator, opening, round_line};
pub use overview::Overview;
pub use page::{page, write_page};
pub use summaries::Summaries;
pub use words::{
    ParameterLine, QUANTILES, advice, cut_by_prior, least_predictive, moments, parameter_lines,
};
