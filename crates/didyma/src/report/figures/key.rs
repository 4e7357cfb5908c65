//! The key of a figure: which colour each group of runs has.

use crate::report::data::{Comparison, Group};
use didyma_plot::{Ink, Legend, Stroke, Style};

/// The groups of runs below each other; nothing for a single group.
pub(super) fn key(runs: &Comparison) -> Legend {
    let entry = |(i, group): (usize, &Group)| {
        let words = match group.runs.len() {
            1 => group.name.clone(),
            seeds => format!("{} ({seeds} seeds)", group.name),
        };
        (words, Style { stroke: Stroke::new(Ink::Series(i), 3.0), mark: None })
    };
    let shown = runs.groups.iter().enumerate().filter(|_| runs.groups.len() > 1);
    Legend::new(shown.map(entry).collect(), 0.0)
}
