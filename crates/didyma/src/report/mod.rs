//! Runs as pictures: figures, and a page that holds them all. Pure functions from what was read to text and bytes.

mod axes;
mod canvas;
mod checked;
mod commands;
mod compare;
mod contour;
mod curves;
mod data;
mod density;
mod figure;
mod histogram;
mod ink;
mod key;
mod legend;
mod levels;
mod metrics;
mod narrator;
mod overview;
mod page;
mod pairs;
mod png;
mod predictive;
mod rounds;
mod scale;
mod style;
mod summaries;
mod time;
mod training;
mod words;

pub use canvas::Place;
pub use checked::check_page;
pub use commands::command;
pub use compare::{Comparison, Group};
pub use curves::{Curve, CurvePoint, Panel, curves};
pub use data::{Columns, Epoch, RunData, columns, epochs};
pub use figure::{Figure, Kind};
pub use levels::level_plot;
pub use narrator::{Line, Narrator, opening, round_line};
pub use overview::Overview;
pub use page::{page, write_page};
pub use png::png;
pub use summaries::Summaries;
pub use words::{
    ParameterLine, QUANTILES, advice, cut_by_prior, least_predictive, moments, parameter_lines,
};
