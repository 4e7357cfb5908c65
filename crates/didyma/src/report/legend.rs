//! What the colours of groups mean, in rows above a figure.

use super::canvas::{Anchor, Canvas, Ink, Label, Stroke, shortened};
use super::compare::Comparison;

/// Height of one row.
const ROW: f64 = 18.0;

/// The height that the legend takes: nothing for a single group.
pub(super) fn height(runs: &Comparison) -> f64 {
    match runs.groups.len() {
        1 => 0.0,
        groups => ROW * groups as f64 + 8.0,
    }
}

/// Draws it from this corner on.
pub(super) fn draw(canvas: &mut Canvas, runs: &Comparison, (x, y): (f64, f64)) {
    for (i, group) in runs.groups.iter().enumerate().filter(|_| runs.groups.len() > 1) {
        let y = y + ROW * (i as f64 + 0.5);
        canvas.line((x, y), (x + 22.0, y), Stroke::new(Ink::Series(i), 3.0));
        let seeds = group.runs.len();
        let words = match seeds {
            1 => group.name.clone(),
            _ => format!("{} ({seeds} seeds)", group.name),
        };
        canvas.text(
            (x + 30.0, y + 4.0),
            &shortened(&words, 44),
            Label::new(12.0, Ink::Text, Anchor::Start),
        );
    }
}
