//! The key of a figure: the colour of each cohort.

use crate::report::data::{Cohort, Comparison};
use didyma_plot::{Ink, Legend, Stroke, Style};

/// The cohorts below each other; nothing for a single one.
pub(super) fn key(runs: &Comparison) -> Legend {
    let entry = |(i, cohort): (usize, &Cohort)| {
        let words = match cohort.runs.len() {
            1 => cohort.name.clone(),
            seeds => format!("{} ({seeds} seeds)", cohort.name),
        };
        (words, Style { stroke: Stroke::new(Ink::Series(i), 3.0), mark: None })
    };
    let shown = runs.cohorts.iter().enumerate().filter(|_| runs.cohorts.len() > 1);
    Legend::new(shown.map(entry).collect(), 0.0)
}
