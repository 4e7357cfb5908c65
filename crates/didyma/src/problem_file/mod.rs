//! A user's own problem as a TOML file: parameters, an observation and a simulator in any language.

mod fields;
mod file;
mod priors;
mod reader;
mod schema;
mod settings;
mod simulator;

pub use fields::{FIELDS, Field};
pub use file::ProblemFile;
pub use schema::schema;
pub use settings::FileSettings;
