//! How the series of a chart are told apart: by ink, then by mark.

use crate::canvas::{Canvas, Point, Stroke};
use crate::ink::Ink;

/// Inks before the marks change: the sixth is close to the first.
const INKS: usize = 5;
/// Marks before a series looks like an earlier one.
const MARKS: [Mark; 4] = [Mark::Dot, Mark::Diamond, Mark::Square, Mark::Triangle];
/// Dashes of lines that have no marks.
const DASHES: [&str; 3] = ["5 4", "2 3", "10 3 2 3"];

/// The shape of a mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mark {
    /// A circle.
    Dot,
    /// A square on its corner.
    Diamond,
    /// A square.
    Square,
    /// A triangle, its tip above.
    Triangle,
}

impl Mark {
    /// Draws it; all shapes of a radius look equally large.
    pub fn draw(self, canvas: &mut Canvas, (x, y): Point, radius: f64, ink: Ink) {
        let corners: &[Point] = match self {
            Self::Dot => return canvas.dot((x, y), radius, ink),
            Self::Diamond => &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)],
            Self::Square => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            Self::Triangle => &[(0.0, -1.3), (1.2, 0.8), (-1.2, 0.8)],
        };
        let outline: Vec<Point> =
            corners.iter().map(|(dx, dy)| (x + radius * dx, y + radius * dy)).collect();
        canvas.areas([outline.as_slice()], ink, 1.0);
    }
}

/// How a series is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Its line.
    pub stroke: Stroke,
    /// Its marks, where it has any.
    pub mark: Option<Mark>,
}

impl Style {
    /// The series of this number, of what was measured.
    pub fn measured(number: usize) -> Self {
        let mark = MARKS[number / INKS % MARKS.len()];
        Self { stroke: Stroke::new(Ink::Series(number % INKS), 1.8), mark: Some(mark) }
    }

    /// The series of this number, of what others say: grey, dashed, without marks.
    pub fn stated(number: usize) -> Self {
        let dashes = DASHES[number % DASHES.len()];
        Self { stroke: Stroke { dashes, ..Stroke::new(Ink::Reference, 1.5) }, mark: None }
    }
}

/// The styles of names, in the order in which they first came. A name may stand for what was measured and for what others
/// say of it, and looks different then.
pub(crate) struct Styles<'a>(Vec<(&'a str, bool, Style)>);

impl<'a> Styles<'a> {
    /// Names, and whether they are of what others say.
    pub(crate) fn of(names: impl IntoIterator<Item = (&'a str, bool)>) -> Self {
        let mut styles = Self(Vec::new());
        for (name, stated) in names {
            if styles.find(name, stated).is_none() {
                let number = styles.0.iter().filter(|known| known.1 == stated).count();
                let style = if stated { Style::stated(number) } else { Style::measured(number) };
                styles.0.push((name, stated, style));
            }
        }
        styles
    }

    /// The style of a name.
    pub(crate) fn find(&self, name: &str, stated: bool) -> Option<Style> {
        let known = self.0.iter().find(|known| (known.0, known.1) == (name, stated));
        known.map(|(_, _, style)| *style)
    }

    /// The entries of a legend.
    pub(crate) fn entries(&self) -> Vec<(String, Style)> {
        let named = self.0.iter().filter(|(name, ..)| !name.is_empty());
        named.map(|&(name, _, style)| (name.to_owned(), style)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ink::Place;

    #[test]
    fn twenty_series_look_different() {
        let drawn = |number: usize| {
            let (mut canvas, style) =
                (Canvas::new(Place::Alone, 9.0, 9.0), Style::measured(number));
            let mark = style.mark.expect("what was measured has marks");
            mark.draw(&mut canvas, (4.0, 4.0), 3.0, style.stroke.ink);
            canvas.finish("", "")
        };
        let mut all: Vec<String> = (0..20).map(drawn).collect();
        all.sort();
        all.dedup();
        assert_eq!(all.len(), 20);
    }
}
