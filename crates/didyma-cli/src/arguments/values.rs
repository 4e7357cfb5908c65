//! Readers of single values, which say what they want where a text is no such value.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use didyma::Named;
use didyma::config::EnsembleConfig;
use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;

pub fn whole<T: FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| "give a whole number, 0 or above".to_owned())
}

/// One of the names of a choice.
pub fn named<T: Named + Send + Sync>() -> impl TypedValueParser<Value = T> {
    let names = T::ALL.iter().map(|(name, _)| *name);
    PossibleValuesParser::new(names)
        .map(|name| T::named(&name).expect("only known names are accepted"))
}

pub fn threads(text: &str) -> Result<usize, String> {
    between(text, "a whole number of threads", 1..=1024)
}

pub fn members(text: &str) -> Result<usize, String> {
    between(text, "a whole number of members", 1..=EnsembleConfig::MOST)
}

pub fn seeds(text: &str) -> Result<u64, String> {
    between(text, "a whole number", 1..=1000)
}

/// A number of rows that fit into a machine's memory.
pub fn count(text: &str) -> Result<usize, String> {
    between(text, "a whole number", 1..=10_000_000)
}

/// A number inside of its range; `what` is asked for where it is not.
pub fn between<T>(text: &str, what: &str, range: RangeInclusive<T>) -> Result<T, String>
where
    T: FromStr + PartialOrd + Display,
{
    let found = text.parse().ok().filter(|value| range.contains(value));
    found.ok_or_else(|| format!("give {what} between {} and {}", range.start(), range.end()))
}
