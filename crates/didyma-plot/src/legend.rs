//! The meaning of colours and marks, in rows above a figure.

use crate::canvas::{Anchor, Canvas, Label, shortened};
use crate::ink::Ink;
use crate::style::Style;

/// Height of one row.
const ROW: f64 = 18.0;
/// Length of the line before a name.
const SAMPLE: f64 = 22.0;
/// Letters of a name.
const LETTERS: usize = 44;

/// Names with what they look like, in columns.
#[derive(Clone, Debug)]
pub struct Legend {
    entries: Vec<(String, Style)>,
    columns: usize,
    /// Width of a column.
    step: f64,
}

impl Legend {
    /// As many columns as this width holds.
    pub fn new(entries: Vec<(String, Style)>, width: f64) -> Self {
        let letters = entries.iter().map(|(name, _)| name.chars().count().min(LETTERS));
        let step = SAMPLE + 32.0 + 7.2 * letters.max().unwrap_or(0) as f64;
        let columns = ((width / step) as usize).clamp(1, entries.len().max(1));
        // Rows as few, but as even as they can be.
        let columns = entries.len().div_ceil(entries.len().div_ceil(columns).max(1)).max(1);
        Self { entries, columns, step }
    }

    /// The height that it takes.
    pub fn height(&self) -> f64 {
        match self.entries.len() {
            0 => 0.0,
            entries => ROW * entries.div_ceil(self.columns) as f64 + 8.0,
        }
    }

    /// Draws it from this corner on.
    pub fn draw(&self, canvas: &mut Canvas, corner: (f64, f64)) {
        for (i, (name, style)) in self.entries.iter().enumerate() {
            let x = corner.0 + self.step * (i % self.columns) as f64;
            let y = corner.1 + ROW * ((i / self.columns) as f64 + 0.5);
            canvas.line((x, y), (x + SAMPLE, y), style.stroke);
            if let Some(mark) = style.mark {
                mark.draw(canvas, (x + 0.5 * SAMPLE, y), 4.0, style.stroke.ink);
            }
            let label = Label::new(12.0, Ink::Text, Anchor::Start);
            canvas.text((x + SAMPLE + 8.0, y + 4.0), &shortened(name, LETTERS), label);
        }
    }
}
