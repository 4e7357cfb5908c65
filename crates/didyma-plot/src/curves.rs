//! Curves in panels: a whole chart in one call.

use crate::axes::Frame;
use crate::canvas::{Anchor, Canvas, Label, Stroke, shortened};
use crate::ink::{Ink, Place};
use crate::legend::Legend;
use crate::scale::{Scale, number, number_to, shown};
use crate::style::{Style, Styles};

const PANEL: (f64, f64) = (330.0, 230.0);
const LEFT: f64 = 72.0;
const RIGHT: f64 = 18.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 46.0;
const TITLE: f64 = 34.0;
/// Letters that the width and the height of a panel hold.
const LETTERS: (usize, usize) = (40, 30);

/// One line of a chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its entry in the legend; curves of the same name look the same in every panel.
    pub name: String,
    /// Its points in the order of the line. One that its axes cannot show interrupts the line.
    pub points: Vec<CurvePoint>,
    /// Drawn dashed and grey, without marks: theory or a printed value.
    pub dashed: bool,
}

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CurvePoint {
    /// Where it is.
    pub x: f64,
    /// Its value.
    pub y: f64,
    /// Half the height of its bar, e.g. a standard error; 0 for none.
    pub error: f64,
}

/// Curves over the same axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Written above it.
    pub title: String,
    /// The name of x.
    pub x_label: String,
    /// The name of y.
    pub y_label: String,
    /// True where x is drawn by its logarithm.
    pub log_x: bool,
    /// True where y is drawn by its logarithm.
    pub log_y: bool,
    /// Its lines; the later above the earlier, and those that are dashed below all others.
    pub curves: Vec<Curve>,
}

impl Panel {
    fn shows(&self, point: &CurvePoint) -> bool {
        shown(self.log_x, point.x) && shown(self.log_y, point.y)
    }

    /// Axes around all that can be shown.
    fn frame(&self, corner: (f64, f64)) -> Frame {
        let points = || self.curves.iter().flat_map(|c| &c.points).filter(|p| self.shows(p));
        Frame {
            corner,
            size: PANEL,
            x: Scale::with_bars(self.log_x, points().map(|p| (p.x, 0.0))),
            y: Scale::with_bars(self.log_y, points().map(|p| (p.y, p.error))),
        }
    }

    /// The curves in words, for those who cannot see them.
    fn told(&self) -> String {
        let told = |curve: &Curve| {
            let shown: Vec<_> = curve.points.iter().filter(|p| self.shows(p)).collect();
            let at = |p: &CurvePoint| format!("{} at {}", value(p.y, p.error), value(p.x, 0.0));
            let words = match shown[..] {
                [] => "no points".to_owned(),
                [only] => at(only),
                [first, .., last] => format!("from {} to {}", at(first), at(last)),
            };
            let hidden = match curve.points.len() - shown.len() {
                0 => String::new(),
                hidden => format!(" ({hidden} of {} cannot be shown)", curve.points.len()),
            };
            spaced(&[&curve.name, &format!("{words}{hidden}")])
        };
        let curves: Vec<String> = self.curves.iter().map(told).collect();
        let by = if self.x_label.is_empty() { "" } else { "by" };
        let axes = spaced(&[&self.y_label, by, &self.x_label]);
        let head = [self.title.as_str(), &axes].into_iter().filter(|words| !words.is_empty());
        format!("{}: {}", head.collect::<Vec<_>>().join(", "), curves.join(", "))
    }
}

/// The SVG image of panels side by side, in up to three columns, with one legend for all. The title is written above
/// where the figure stands alone; a page has its own.
pub fn curves(title: &str, panels: &[Panel], place: Place) -> String {
    let columns = match panels.len() {
        0 => 1,
        4 => 2,
        count => count.min(3),
    };
    let rows = panels.len().div_ceil(columns);
    let step = (LEFT + PANEL.0 + RIGHT, ABOVE + PANEL.1 + BELOW);
    let width = columns as f64 * step.0;
    let all = panels.iter().flat_map(|panel| &panel.curves);
    let styles = Styles::of(all.map(|curve| (curve.name.as_str(), curve.dashed)));
    let legend = Legend::new(styles.entries(), width - LEFT);
    let headed = if place == Place::Alone { TITLE } else { 0.0 };
    let top = headed + legend.height();
    let mut canvas = Canvas::new(place, width, (top + rows as f64 * step.1).max(TITLE));
    if place == Place::Alone {
        let letters = ((width - LEFT) / 9.8) as usize;
        let label = Label::new(15.0, Ink::Text, Anchor::Start).bold();
        canvas.text((LEFT, 23.0), &shortened(title, letters), label);
    }
    legend.draw(&mut canvas, (LEFT, headed));
    for (i, panel) in panels.iter().enumerate() {
        let (column, row) = ((i % columns) as f64, (i / columns) as f64);
        draw(&mut canvas, (column * step.0 + LEFT, top + row * step.1 + ABOVE), panel, &styles);
    }
    let told: Vec<String> = panels.iter().map(Panel::told).collect();
    canvas.finish(title, &told.join("; "))
}

fn draw(canvas: &mut Canvas, corner: (f64, f64), panel: &Panel, styles: &Styles) {
    let frame = panel.frame(corner);
    frame.title(canvas, &shortened(&panel.title, LETTERS.0));
    frame.y_axis(canvas, &shortened(&panel.y_label, LETTERS.1));
    frame.x_axis(canvas, &shortened(&panel.x_label, LETTERS.0));
    let ground = (frame.corner.0, frame.bottom());
    canvas.line(ground, (frame.right(), ground.1), Stroke::new(Ink::Muted, 1.0));
    let (below, above): (Vec<&Curve>, _) = panel.curves.iter().partition(|curve| curve.dashed);
    for curve in below.into_iter().chain(above) {
        if let Some(style) = styles.find(&curve.name, curve.dashed) {
            line(canvas, &frame, (panel, curve), style);
        }
    }
}

fn line(canvas: &mut Canvas, frame: &Frame, (panel, curve): (&Panel, &Curve), style: Style) {
    let runs = || curve.points.split(|point| !panel.shows(point)).filter(|run| !run.is_empty());
    let place = |run: &[CurvePoint]| match *run {
        // A dashed line has no marks: a single value is a short line.
        [p] if style.mark.is_none() => {
            let (x, y) = frame.place(p.x, p.y);
            vec![(x - 11.5, y), (x + 11.5, y)]
        }
        _ => run.iter().map(|p| frame.place(p.x, p.y)).collect(),
    };
    let lines: Vec<_> = runs().map(place).filter(|run| run.len() > 1).collect();
    canvas.lines(lines.iter().map(Vec::as_slice), style.stroke);
    let ink = style.stroke.ink;
    for point in runs().flatten() {
        let bar = |canvas: &mut Canvas| frame.bar(canvas, (point.x, point.y), point.error, ink);
        match style.mark {
            None => bar(canvas),
            Some(mark) => canvas.telling(&words(panel, curve, point), |canvas| {
                bar(canvas);
                mark.draw(canvas, frame.place(point.x, point.y), 3.6, ink);
            }),
        }
    }
}

/// The words of a mark that is pointed at.
fn words(panel: &Panel, curve: &Curve, point: &CurvePoint) -> String {
    let error =
        if point.error > 0.0 { format!("± {}", number(point.error)) } else { String::new() };
    let x = spaced(&[&panel.x_label, &value(point.x, 0.0)]);
    let y = spaced(&[&panel.y_label, &value(point.y, point.error), &error]);
    match curve.name.as_str() {
        "" => format!("{x}: {y}"),
        name => format!("{name}, {x}: {y}"),
    }
}

/// A number as exactly as its error allows; without one, whole numbers in full and others in four digits.
fn value(value: f64, error: f64) -> String {
    if error > 0.0 {
        number_to(value, 0.1 * error)
    } else if value.fract() == 0.0 && value.abs() < 1e9 {
        format!("{}", value + 0.0).replace('-', "−")
    } else {
        number_to(value, 1e-3 * value.abs())
    }
}

fn spaced(words: &[&str]) -> String {
    words.iter().copied().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(f64, f64, f64)]) -> Curve {
        let points = points.iter().map(|&(x, y, error)| CurvePoint { x, y, error }).collect();
        Curve { name: name.to_owned(), points, dashed: false }
    }

    fn panel(log: bool, curves: Vec<Curve>) -> Panel {
        let [title, x_label, y_label] = ["Work", "n", "MSE"].map(str::to_owned);
        Panel { title, x_label, y_label, log_x: log, log_y: log, curves }
    }

    /// The lines of every path in this colour, in pixels.
    fn paths(svg: &str, ink: Ink) -> Vec<Vec<Vec<(f64, f64)>>> {
        let colour = format!(r#"fill="none" stroke="{}""#, ink.colour(Place::Alone));
        let of_ink = svg.split("<path d=\"").skip(1).filter(|path| path.contains(&colour));
        let point = |pair: &str| {
            let (x, y) = pair.split_once(' ').unwrap();
            (x.parse().unwrap(), y.parse().unwrap())
        };
        let d = of_ink.map(|path| path.split_once('"').unwrap().0);
        d.map(|d| d.split('M').skip(1).map(|l| l.split('L').map(point).collect()).collect())
            .collect()
    }

    #[test]
    fn a_power_is_a_straight_line() {
        let points: Vec<_> = (0..9).map(|k| 2f64.powi(k)).map(|n| (n, 3.0 / n / n, 0.0)).collect();
        let svg = curves("t", &[panel(true, vec![curve("a", &points)])], Place::Alone);
        // After the sample of the legend.
        let line = &paths(&svg, Ink::Series(0))[1][0];
        assert_eq!(line.len(), 9);
        let (first, last) = (line[0], line[8]);
        for (k, &(x, y)) in line.iter().enumerate() {
            let share = k as f64 / 8.0;
            // Every coordinate is rounded to a tenth: half of it here, half at the ends.
            assert!((x - first.0 - share * (last.0 - first.0)).abs() <= 0.1 + 1e-9, "{line:?}");
            assert!((y - first.1 - share * (last.1 - first.1)).abs() <= 0.1 + 1e-9, "{line:?}");
        }
        assert!(last.0 - first.0 > 0.9 * PANEL.0 && last.1 - first.1 > 0.9 * PANEL.1, "{line:?}");
    }

    #[test]
    fn what_cannot_be_shown_interrupts_the_line() {
        let hidden = [0.0, -1.0, f64::NAN, f64::INFINITY];
        for (x, y) in hidden.iter().flat_map(|&bad| [(bad, 1.0), (3.0, bad)]) {
            let points = [
                (1.0, 1.0, 0.0),
                (2.0, 2.0, f64::NAN),
                (x, y, 1.0),
                (4.0, 4.0, 0.0),
                (5.0, 5.0, 0.0),
            ];
            let svg = curves("t", &[panel(true, vec![curve("a", &points)])], Place::Alone);
            let lines = &paths(&svg, Ink::Series(0))[1];
            assert_eq!(lines.iter().map(Vec::len).collect::<Vec<_>>(), [2, 2], "{svg}");
            assert_eq!(svg.matches("<title>").count(), 4, "{svg}");
            assert!(svg.contains("(1 of 5 cannot be shown)"), "{svg}");
            assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        }
    }

    #[test]
    fn bars_are_as_long_as_errors_say() {
        let points = [(0.0, 0.0, 0.0), (1.0, 5.0, 2.0), (2.0, 10.0, 0.0)];
        let found = paths(
            &curves("t", &[panel(false, vec![curve("", &points)])], Place::Alone),
            Ink::Series(0),
        );
        let (line, bar) = (&found[0][0], &found[1][0]);
        // Four of the ten units between first and last; each end is rounded to a tenth.
        let unit = (line[0].1 - line[2].1) / 10.0;
        assert!((bar[0].1 - bar[1].1 - 4.0 * unit).abs() < 0.2, "{bar:?}");
        assert!((bar[0].0 - line[1].0).abs() < 1e-9 && found.len() == 2, "{found:?}");
        // Below zero there is no logarithm: the bar ends at the axis.
        let panel = panel(true, vec![curve("", &[(1.0, 1.0, 3.0), (2.0, 1.0, f64::INFINITY)])]);
        let svg = curves("t", std::slice::from_ref(&panel), Place::Alone);
        let (found, frame) = (paths(&svg, Ink::Series(0)), panel.frame((0.0, TITLE + ABOVE)));
        assert!((found[1][0][0].1 - frame.bottom()).abs() < 0.1, "{found:?}");
        assert!((found[1][0][1].1 - frame.up(4.0)).abs() < 0.1, "{found:?}");
        assert!((found[2][0][1].1 - frame.corner.1).abs() < 0.1, "{found:?}");
    }

    #[test]
    fn names_are_safe_and_have_one_ink() {
        let one = [(1.0, 1.0, 0.0)];
        let theory = Curve { dashed: true, ..curve("theory", &one) };
        let panels = [
            panel(true, vec![curve("<a & b>", &one), theory]),
            panel(false, vec![curve("c", &one), curve("<a & b>", &one)]),
            panel(false, vec![]),
        ];
        let svg = curves("<t>", &panels, Place::Alone);
        assert!(svg.contains("&lt;a &amp; b&gt;, n 1: MSE 1</title>") && !svg.contains("<a &"));
        assert_eq!(svg.matches(">theory</text>").count(), 1, "{svg}");
        let dots = |ink: Ink| {
            svg.matches(&format!(r#"r="3.6" fill="{}""#, ink.colour(Place::Alone))).count()
        };
        assert_eq!([dots(Ink::Series(0)), dots(Ink::Series(1))], [2, 1], "{svg}");
        assert!(curves("", &[], Place::Page).starts_with("<svg") && !svg.contains("NaN"));
        assert_eq!(svg, curves("<t>", &panels, Place::Alone));
    }
}
