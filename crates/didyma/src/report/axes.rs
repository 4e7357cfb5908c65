//! Axes: where a value lies on a canvas, and the round numbers along its edge.

use super::canvas::{Anchor, Canvas, Ink, Label, Point, Stroke};

/// Height of the numbers along an axis.
const SMALL: f64 = 11.0;
/// Height of an axis's name.
const NAME: f64 = 12.0;

/// Values along an edge.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Whether only whole numbers have a name.
    whole: bool,
}

impl Scale {
    /// From low to high; an interval without width is widened around its place.
    pub fn new(low: f64, high: f64) -> Self {
        let (low, high) =
            if low.is_finite() && high.is_finite() { (low, high) } else { (0.0, 1.0) };
        let (low, high) = (low.min(high), low.max(high));
        let pad = if high > low { 0.0 } else { 0.5 * low.abs().max(1.0) };
        Self { low: low - pad, high: high + pad, logarithmic: false, whole: false }
    }

    /// All of these values, and a little more. None of them: 0 to 1.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values);
        let pad = 0.05 * (high - low);
        Self::new(low - pad, high + pad)
    }

    /// All of these that are above 0, by their logarithm.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = extent(values.into_iter().filter(|&value| value > 0.0));
        let (low, high) = if low.is_finite() { (low, high) } else { (0.1, 1.0) };
        Self { low: low / 1.3, high: high * 1.3, logarithmic: true, whole: false }
    }

    /// Things that are counted, from `first` to `last`, with a little room.
    pub fn counted(first: u32, last: u32) -> Self {
        Self { whole: true, ..Self::new(f64::from(first) - 0.3, f64::from(last) + 0.3) }
    }

    /// The lowest value.
    pub fn low(&self) -> f64 {
        self.low
    }

    /// The highest value.
    pub fn high(&self) -> f64 {
        self.high
    }

    /// 0 at the low end, 1 at the high one.
    pub fn share(&self, value: f64) -> f64 {
        match self.logarithmic {
            true => (value / self.low).ln() / (self.high / self.low).ln(),
            false => (value - self.low) / (self.high - self.low),
        }
    }

    /// About this many round values with their names, which differ however narrow the scale is.
    pub fn named_ticks(&self, about: usize) -> Vec<(f64, String)> {
        let ticks = self.ticks(about);
        let step = ticks.windows(2).map(|pair| pair[1] - pair[0]).fold(f64::INFINITY, f64::min);
        let name = |value: f64| match self.logarithmic {
            true => number(value),
            false => number_to(value, step),
        };
        ticks.iter().map(|&tick| (tick, name(tick))).collect()
    }

    /// About this many round values.
    pub fn ticks(&self, about: usize) -> Vec<f64> {
        match self.logarithmic {
            true => self.powers(about),
            false => self.multiples(about),
        }
    }

    fn multiples(&self, about: usize) -> Vec<f64> {
        let rough = (self.high - self.low) / about.max(1) as f64;
        let rough = if self.whole { rough.max(1.0) } else { rough };
        let unit = 10f64.powf(rough.log10().floor());
        let miss = |step: &f64| (step / rough).ln().abs();
        let steps = [1.0, 2.0, 5.0, 10.0].map(|m| m * unit);
        let step = steps.into_iter().min_by(|a, b| miss(a).total_cmp(&miss(b))).unwrap_or(unit);
        let (first, last) = ((self.low / step).ceil(), (self.high / step + 1e-9).floor());
        (0..=(last - first).clamp(0.0, 50.0) as usize).map(|i| (first + i as f64) * step).collect()
    }

    fn powers(&self, about: usize) -> Vec<f64> {
        let (first, last) = (self.low.log10().ceil() as i32, self.high.log10().floor() as i32);
        let step = ((last - first + 1) as usize).div_ceil(about.max(1)).max(1);
        let powers: Vec<f64> = (first..=last).step_by(step).map(|k| 10f64.powi(k)).collect();
        match powers.len() {
            // Less than a decade: 1, 2, 5.
            0 | 1 => {
                let decade = self.low.log10().floor() as i32;
                let values =
                    (decade..decade + 2).flat_map(|k| [1.0, 2.0, 5.0].map(|m| m * 10f64.powi(k)));
                values.filter(|value| (self.low..=self.high).contains(value)).collect()
            }
            _ => powers,
        }
    }
}

fn extent(values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    values
        .into_iter()
        .filter(|value| value.is_finite())
        .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v)))
}

/// A number in few letters.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        "0".to_owned()
    } else if !(1e-3..1e5).contains(&size) {
        let text = format!("{value:.1e}");
        text.replace(".0e", "e").replace('-', "−")
    } else {
        let digits = (2 - size.log10().floor() as i32).clamp(0, 5) as usize;
        let text = format!("{value:.digits$}");
        let text = if text.contains('.') {
            text.trim_end_matches('0').trim_end_matches('.')
        } else {
            &text
        };
        text.replace('-', "−")
    }
}

/// A number with as many digits as tell differences of this size.
pub fn number_to(value: f64, resolution: f64) -> String {
    if !(resolution > 0.0 && resolution.is_finite() && value.is_finite()) {
        return number(value);
    }
    // The smallest place that matters: 0.2 needs one digit, 0.05 two.
    let place = (resolution.log10() + 1e-9).floor();
    let size = value.abs().max(resolution);
    let text = match (1e-4..1e6).contains(&size) {
        true => format!("{value:.*}", (-place).clamp(0.0, 12.0) as usize),
        false => format!("{value:.*e}", (size.log10().floor() - place).clamp(0.0, 12.0) as usize),
    };
    match text.parse() {
        Ok(0.0) => "0".to_owned(),
        _ => text.replace('-', "−"),
    }
}

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
        for (tick, name) in self.y.named_ticks((self.size.1 / 40.0).max(2.0) as usize) {
            let y = self.up(tick);
            canvas.line((self.corner.0, y), (self.right(), y), Stroke::new(Ink::Grid, 1.0));
            let label = Label::new(SMALL, Ink::Muted, Anchor::End);
            canvas.text((self.corner.0 - 6.0, y + 4.0), &name, label);
        }
        let at = (self.corner.0 - 44.0, self.corner.1 + 0.5 * self.size.1);
        canvas.text(at, name, Label::new(NAME, Ink::Text, Anchor::Middle).upwards());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_inside() {
        let ticks = Scale::new(0.13, 0.98).ticks(5);
        assert_eq!(
            ticks.iter().map(|&t| number(t)).collect::<Vec<_>>(),
            ["0.2", "0.4", "0.6", "0.8"]
        );
        assert_eq!(Scale::new(-1.0, 1.0).ticks(4), [-1.0, -0.5, 0.0, 0.5, 1.0]);
        assert_eq!(Scale::counted(1, 3).ticks(8), [1.0, 2.0, 3.0]);
        assert_eq!(Scale::logarithmic([1e-3, 20.0]).ticks(5), [1e-3, 1e-2, 1e-1, 1.0, 10.0]);
        assert_eq!(Scale::logarithmic([1.0, 6.0]).ticks(5), [1.0, 2.0, 5.0]);
    }

    #[test]
    fn names_of_ticks_differ() {
        for (low, high) in
            [(0.247, 0.248), (1234.1, 1234.3), (-1.0, 1.0), (1e-9, 2e-9), (3e7, 3.1e7), (1.0, 1.0)]
        {
            for about in [2, 5, 9] {
                let named = Scale::new(low, high).named_ticks(about);
                let mut names: Vec<_> = named.iter().map(|(_, name)| name).collect();
                names.dedup();
                assert_eq!(names.len(), named.len(), "{named:?}");
            }
        }
        assert_eq!(number_to(-0.0001, 0.01), "0");
        assert_eq!(number_to(-4.5899, 0.005), "−4.590");
        assert_eq!(number_to(1.23456e-7, 1e-9), "1.23e−7");
    }

    #[test]
    fn no_interval_breaks_a_scale() {
        for scale in [
            Scale::new(3.0, 3.0),
            Scale::new(f64::NAN, 1.0),
            Scale::around([]),
            Scale::around([1e300, -1e300]),
            Scale::logarithmic([-1.0]),
        ] {
            assert!(scale.high() > scale.low() && scale.ticks(5).len() <= 51, "{scale:?}");
        }
    }

    #[test]
    fn numbers_are_short() {
        let found = [0.0, 0.25, -1.5, 1234.6, 1.2e-7, 3.0e6, 99.96].map(number);
        assert_eq!(found, ["0", "0.25", "−1.5", "1235", "1.2e−7", "3e6", "100"]);
    }
}
