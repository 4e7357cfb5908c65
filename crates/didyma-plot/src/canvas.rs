//! Drawing: marks on a canvas become the text of an SVG image.
//!
//! A figure is drawn once and seen in two places. On a page its colours are the page's variables, so that they follow its
//! theme; alone, in a file or as a bitmap, they are written out.

use crate::ink::{Ink, Place};
use std::fmt::Write;

/// A point in pixels, from the upper left corner.
pub type Point = (f64, f64);

/// How a line is drawn.
#[derive(Clone, Copy, Debug)]
pub struct Stroke {
    /// Its colour.
    pub ink: Ink,
    /// Its width in pixels.
    pub width: f64,
    /// Lengths of its dashes and gaps in the language of SVG; nothing: a full line.
    pub dashes: &'static str,
}

impl Stroke {
    /// A full line.
    pub fn new(ink: Ink, width: f64) -> Self {
        Self { ink, width, dashes: "" }
    }

    /// The same, dashed.
    pub fn dashed(self) -> Self {
        Self { dashes: "5 4", ..self }
    }
}

/// Where a text stands to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// It begins there.
    Start,
    /// Its middle is there.
    Middle,
    /// It ends there.
    End,
}

/// How a text is set.
#[derive(Clone, Copy, Debug)]
pub struct Label {
    /// Height of the letters in pixels.
    pub size: f64,
    /// Its colour.
    pub ink: Ink,
    /// Where it stands.
    pub anchor: Anchor,
    /// Degrees, clockwise.
    pub turned: f64,
    /// True for bold letters.
    pub bold: bool,
}

impl Label {
    /// A plain text.
    pub fn new(size: f64, ink: Ink, anchor: Anchor) -> Self {
        Self { size, ink, anchor, turned: 0.0, bold: false }
    }

    /// The same, bold.
    pub fn bold(self) -> Self {
        Self { bold: true, ..self }
    }

    /// The same, read from below.
    pub fn upwards(self) -> Self {
        Self { turned: -90.0, ..self }
    }
}

/// An image that is being drawn.
#[derive(Debug)]
pub struct Canvas {
    place: Place,
    width: f64,
    height: f64,
    body: String,
}

impl Canvas {
    /// An empty canvas of this size in pixels.
    pub fn new(place: Place, width: f64, height: f64) -> Self {
        Self { place, width, height, body: String::new() }
    }

    /// A straight line.
    pub fn line(&mut self, from: Point, to: Point, stroke: Stroke) {
        self.lines([[from, to].as_slice()], stroke);
    }

    /// Lines through these points, drawn as one mark.
    pub fn lines<'a>(&mut self, lines: impl IntoIterator<Item = &'a [Point]>, stroke: Stroke) {
        let d = outline(lines, false);
        if d.is_empty() {
            return;
        }
        let colour = stroke.ink.colour(self.place);
        let dash = match stroke.dashes {
            "" => String::new(),
            dashes => format!(r#" stroke-dasharray="{dashes}""#),
        };
        let width = stroke.width;
        self.put(format_args!(
            r#"<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linejoin="round"{dash}/>"#
        ));
    }

    /// Filled regions; where an odd number of outlines goes around, they are full.
    pub fn areas<'a>(
        &mut self,
        outlines: impl IntoIterator<Item = &'a [Point]>,
        ink: Ink,
        opacity: f64,
    ) {
        let d = outline(outlines, true);
        if d.is_empty() {
            return;
        }
        let colour = ink.colour(self.place);
        self.put(format_args!(
            r#"<path d="{d}" fill="{colour}" fill-opacity="{opacity}" fill-rule="evenodd"/>"#
        ));
    }

    /// A filled rectangle.
    pub fn rectangle(&mut self, corner: Point, size: (f64, f64), ink: Ink, opacity: f64) {
        if ![corner.0, corner.1, size.0, size.1].iter().all(|v| v.is_finite()) {
            return;
        }
        let colour = ink.colour(self.place);
        let ([x, y], [w, h]) = ([corner.0, corner.1].map(short), [size.0, size.1].map(short));
        self.put(format_args!(
            r#"<rect x="{x}" y="{y}" width="{w}" height="{h}" fill="{colour}" fill-opacity="{opacity}"/>"#
        ));
    }

    /// A filled circle.
    pub fn dot(&mut self, at: Point, radius: f64, ink: Ink) {
        if !(at.0.is_finite() && at.1.is_finite()) {
            return;
        }
        let (colour, [x, y]) = (ink.colour(self.place), [at.0, at.1].map(short));
        self.put(format_args!(r#"<circle cx="{x}" cy="{y}" r="{radius}" fill="{colour}"/>"#));
    }

    /// Many filled circles, drawn as one mark.
    pub fn dots(&mut self, at: &[Point], radius: f64, ink: Ink) {
        let lines: Vec<[Point; 2]> = at.iter().map(|&at| [at, at]).collect();
        let d = outline(lines.iter().map(<[Point; 2]>::as_slice), false);
        // Lines without length are their round ends.
        let (colour, width) = (ink.colour(self.place), 2.0 * radius);
        self.put(format_args!(
            r#"<path d="{d}" fill="none" stroke="{colour}" stroke-width="{width}" stroke-linecap="round"/>"#
        ));
    }

    /// A text.
    pub fn text(&mut self, at: Point, text: &str, label: Label) {
        if !(at.0.is_finite() && at.1.is_finite()) {
            return;
        }
        let [x, y] = [at.0, at.1].map(short);
        let colour = label.ink.colour(self.place);
        let anchor = match label.anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let turn = match label.turned {
            0.0 => String::new(),
            degrees => format!(r#" transform="rotate({degrees} {x} {y})""#),
        };
        let (weight, size) =
            (if label.bold { r#" font-weight="bold""# } else { "" }, short(label.size));
        let text = escaped(text);
        self.put(format_args!(
            r#"<text x="{x}" y="{y}" font-size="{size}" fill="{colour}" text-anchor="{anchor}"{weight}{turn}>{text}</text>"#
        ));
    }

    /// Marks that tell `words` when they are pointed at.
    pub fn telling(&mut self, words: &str, draw: impl FnOnce(&mut Self)) {
        let words = escaped(words);
        self.put(format_args!(r#"<g class="tip"><title>{words}</title>"#));
        draw(self);
        self.put(format_args!("</g>"));
    }

    /// The image, with what is told of it to those who cannot see it.
    pub fn finish(self, title: &str, description: &str) -> String {
        let Self { place, width, height, body } = self;
        let (title, description) = (escaped(title), escaped(description));
        let paper = match place {
            Place::Page => String::new(),
            Place::Alone => {
                let paper = Ink::Paper.colour(place);
                format!(r#"<rect width="{width}" height="{height}" fill="{paper}"/>"#)
            }
        };
        let font = match place {
            Place::Page => "inherit",
            Place::Alone => "'DejaVu Sans', Verdana, sans-serif",
        };
        // A figure on a page is never enlarged, only shrunk.
        let shape = match place {
            Place::Page => format!(r#"style="width:100%;max-width:{width}px;height:auto""#),
            Place::Alone => format!(r#"width="{width}" height="{height}""#),
        };
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" {shape} font-family="{font}" role="img" aria-label="{title}. {description}">{paper}{body}</svg>"#
        )
    }

    fn put(&mut self, mark: std::fmt::Arguments<'_>) {
        self.body.write_fmt(mark).expect("a string takes everything");
    }
}

/// Outlines in the language of SVG paths, without points that are not finite.
fn outline<'a>(lines: impl IntoIterator<Item = &'a [Point]>, closed: bool) -> String {
    let mut d = String::new();
    for line in lines {
        let points = line.iter().filter(|(x, y)| x.is_finite() && y.is_finite());
        for (i, &(x, y)) in points.enumerate() {
            let (x, y) = (short(x), short(y));
            let command = if i == 0 { 'M' } else { 'L' };
            write!(d, "{command}{x} {y}").expect("a string takes everything");
        }
        if closed && !line.is_empty() {
            d.push('Z');
        }
    }
    d
}

/// A tenth of a pixel is as fine as anybody sees.
fn short(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A name in at most this many letters.
pub fn shortened(name: &str, letters: usize) -> String {
    if name.chars().count() > letters {
        name.chars().take(letters.saturating_sub(1)).chain(['…']).collect()
    } else {
        name.to_owned()
    }
}

/// Text as it stands in HTML and SVG, in an attribute too.
pub fn escaped(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            // XML allows neither control characters nor these two.
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => safe.push(' '),
            c => safe.push(c),
        }
    }
    safe
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn marks_are_well_formed_whatever_the_words() {
        let mut canvas = Canvas::new(Place::Alone, 100.0, 50.0);
        canvas.telling("a < b & \"c\"\u{7}", |canvas| canvas.dot((1.23, 4.56), 2.0, Ink::Truth));
        canvas.dot((f64::NAN, 0.0), 2.0, Ink::Truth);
        canvas.rectangle((0.0, f64::INFINITY), (1.0, 1.0), Ink::Truth, 1.0);
        canvas.text((0.0, 0.0), "<script>", Label::new(12.0, Ink::Text, Anchor::Start));
        canvas.dots(&[(1.0, 2.0), (f64::NAN, 0.0)], 1.5, Ink::Diverging(9));
        let line = [(0.0, 0.0), (f64::NAN, 1.0), (2.0, 3.04)];
        canvas.lines([line.as_slice()], Stroke::new(Ink::Series(7), 1.5).dashed());
        let svg = canvas.finish("title", "");
        assert!(svg.contains("<title>a &lt; b &amp; &quot;c&quot; </title>"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert_eq!(shortened("lotka-volterra", 6), "lotka…");
        assert!(svg.contains("&lt;script&gt;") && !svg.contains("<script>"), "{svg}");
        assert!(svg.contains(r#"d="M0 0L2 3""#) && svg.contains("#d55e00"), "{svg}");
        assert!(svg.contains(r##"d="M1 2L1 2" fill="none" stroke="#9c3a00""##), "{svg}");
    }

    #[test]
    fn colours_of_a_page_are_its_variables() {
        let mut canvas = Canvas::new(Place::Page, 10.0, 10.0);
        canvas.rectangle((0.0, 0.0), (1.0, 1.0), Ink::Series(2), 0.5);
        let svg = canvas.finish("title", "");
        assert!(svg.contains("var(--series-2)") && !svg.contains('#'), "{svg}");
    }
}
