//! Axes: where a value lies on a canvas, and the round numbers along its edge.

use crate::canvas::{Anchor, Canvas, Label, Point, Stroke};
use crate::ink::Ink;
use crate::scale::Scale;

/// Height of the numbers along an axis.
const SMALL: f64 = 11.0;
/// Height of an axis's name.
const NAME: f64 = 12.0;

/// A rectangle of the canvas with a scale on each side.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Its upper left corner.
    pub corner: Point,
    /// Its width and height.
    pub size: (f64, f64),
    /// From left to right.
    pub x: Scale,
    /// From bottom to top.
    pub y: Scale,
}

impl Frame {
    /// Where values lie.
    pub fn place(&self, x: f64, y: f64) -> Point {
        (self.across(x), self.up(y))
    }

    /// Where a value of x lies.
    pub fn across(&self, x: f64) -> f64 {
        self.corner.0 + self.size.0 * self.x.share(x)
    }

    /// Where a value of y lies.
    pub fn up(&self, y: f64) -> f64 {
        self.corner.1 + self.size.1 * (1.0 - self.y.share(y))
    }

    /// The place of the lower edge.
    pub fn bottom(&self) -> f64 {
        self.corner.1 + self.size.1
    }

    /// The place of the right edge.
    pub fn right(&self) -> f64 {
        self.corner.0 + self.size.0
    }

    /// Numbers and their lines along the lower edge, with a name below.
    pub fn x_axis(&self, canvas: &mut Canvas, name: &str) {
        let middle = Label::new(SMALL, Ink::Muted, Anchor::Middle);
        for (tick, name) in self.x.named_ticks((self.size.0 / 52.0).max(2.0) as usize) {
            let x = self.across(tick);
            canvas.line((x, self.bottom()), (x, self.bottom() + 4.0), Stroke::new(Ink::Muted, 1.0));
            canvas.text((x, self.bottom() + 16.0), &name, middle);
        }
        self.x_name(canvas, name, 32.0);
    }

    /// A name below the lower edge.
    pub fn x_name(&self, canvas: &mut Canvas, name: &str, below: f64) {
        let at = (self.corner.0 + 0.5 * self.size.0, self.bottom() + below);
        canvas.text(at, name, Label::new(NAME, Ink::Text, Anchor::Middle));
    }

    /// Numbers along the left edge, with a line of the grid for each and a name beside.
    pub fn y_axis(&self, canvas: &mut Canvas, name: &str) {
        let ticks = self.y.named_ticks((self.size.1 / 40.0).max(2.0) as usize);
        let letters = ticks.iter().map(|(_, name)| name.chars().count()).max().unwrap_or(0);
        for (tick, name) in ticks {
            let y = self.up(tick);
            canvas.line((self.corner.0, y), (self.right(), y), Stroke::new(Ink::Grid, 1.0));
            let label = Label::new(SMALL, Ink::Muted, Anchor::End);
            canvas.text((self.corner.0 - 6.0, y + 4.0), &name, label);
        }
        // Long numbers push the name away.
        let beside = (0.62 * SMALL * letters as f64 + 12.0).max(44.0);
        let at = (self.corner.0 - beside, self.corner.1 + 0.5 * self.size.1);
        canvas.text(at, name, Label::new(NAME, Ink::Text, Anchor::Middle).upwards());
    }

    /// A bar of `error` up and down from a value, cut at the edges: a logarithmic axis never comes to 0.
    pub fn bar(&self, canvas: &mut Canvas, (x, y): (f64, f64), error: f64, ink: Ink) {
        if error > 0.0 && self.y.shows(y) {
            let up = |value: f64, edge: f64| {
                if self.y.shows(value) {
                    self.up(value).clamp(self.corner.1, self.bottom())
                } else {
                    edge
                }
            };
            let (low, high) = (up(y - error, self.bottom()), up(y + error, self.corner.1));
            let x = self.across(x);
            canvas.line((x, low), (x, high), Stroke::new(ink, 1.6));
        }
    }

    /// A line around it.
    pub fn border(&self, canvas: &mut Canvas) {
        let ((x, y), (w, h)) = (self.corner, self.size);
        let around = [(x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y)];
        canvas.lines([around.as_slice()], Stroke::new(Ink::Grid, 1.0));
    }

    /// A name above it.
    pub fn title(&self, canvas: &mut Canvas, text: &str) {
        let label = Label::new(13.0, Ink::Text, Anchor::Start).bold();
        canvas.text((self.corner.0, self.corner.1 - 8.0), text, label);
    }
}
