//! Where the posterior is too high or too low at the observation, by a classifier's view of its draws (L-C2ST).

use super::pairs::{ABOVE, BELOW, GAP, LEFT, cell, chosen, edges};
use super::{Figure, Kind};
use crate::evaluation::calibration::LocalMap;
use crate::math::mean_and_deviation;
use crate::report::data::{Columns, Comparison, RunData, columns};
use didyma_plot::{
    Anchor, Canvas, Frame, Ink, Label, Place, Range, Scale, Stroke, number_to, view,
};

/// Factors by which the posterior is too high where the colours change.
const FACTORS: [f64; 3] = [1.25, 1.75, 3.0];
/// Bins of a diagonal, and the fewest draws of a bin that has a bar.
const BINS: usize = 16;
const FEWEST: usize = 5;
/// Height of the scale of colours, with its words.
const SCALE: f64 = 44.0;
/// Width of a colour's box, and of the words before the first.
const BOX: f64 = 38.0;
const WORDS: f64 = 100.0;
const DOT: f64 = 2.3;

/// What is drawn: draws by parameter, and each draw's probability to be one of the posterior rather than the truth.
struct Map<'a> {
    run: &'a RunData,
    theta: Columns,
    found: &'a LocalMap,
}

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let map = runs.runs().find_map(Map::of)?;
    let shown = chosen(runs);
    let cell = cell(shown.len());
    let (step, top) = (cell + GAP, ABOVE + SCALE);
    let side = shown.len() as f64 * step;
    let mut canvas = Canvas::new(place, (LEFT + side).max(560.0), top + side + BELOW);
    scale(&mut canvas, (LEFT, ABOVE));
    let views: Vec<Range> =
        shown.iter().map(|&i| view([&*map.theta[i]], None, map.run.support(i))).collect();
    let height = map.height(&shown, &views);
    for (row, column) in (0..shown.len()).flat_map(|r| (0..=r).map(move |c| (r, c))) {
        let corner = (LEFT + column as f64 * step, top + row as f64 * step);
        let [x, y] = [column, row].map(|k| Scale::new(views[k].0, views[k].1));
        let frame = Frame { corner, size: (cell, cell), x, y };
        if row == column {
            map.alone(&mut canvas, frame, (shown[row], views[row]), (row == 0, height));
        } else {
            map.together(&mut canvas, &frame, (shown[column], shown[row]));
        }
        frame.border(&mut canvas);
        let names = (map.run.label(shown[column]), map.run.label(shown[row]));
        edges(&mut canvas, &frame, (row, column, shown.len()), names);
    }
    Some(map.finished(canvas, runs.len() > 1))
}

impl<'a> Map<'a> {
    fn of(run: &'a RunData) -> Option<Self> {
        let found = run.calibration.as_ref().ok()?.local.as_ref()?;
        let theta = columns(&found.theta, run.dim());
        let whole = theta.iter().all(|column| column.len() == found.probability.len());
        (whole && !found.probability.is_empty()).then_some(Self { run, theta, found })
    }

    /// Two parameters: a dot for each draw, the strongest colours above.
    fn together(&self, canvas: &mut Canvas, frame: &Frame, (x, y): (usize, usize)) {
        let inside = |value: f64, scale: &Scale| (scale.low()..=scale.high()).contains(&value);
        let middle = Ink::DIVERGING / 2;
        let mut colours: Vec<usize> = (0..Ink::DIVERGING).collect();
        colours.sort_by_key(|colour| colour.abs_diff(middle));
        for colour in colours {
            let draws = self.theta[x].iter().zip(&self.theta[y]).zip(&self.found.probability);
            let of_colour = draws.filter(|(_, p)| colour_of(**p) == colour);
            let seen =
                of_colour.filter(|((a, b), _)| inside(**a, &frame.x) && inside(**b, &frame.y));
            let points: Vec<_> = seen.map(|((a, b), _)| frame.place(*a, *b)).collect();
            if !points.is_empty() {
                let words =
                    format!("{} of {} draws: {}", points.len(), self.theta[x].len(), words(colour));
                canvas.telling(&words, |canvas| canvas.dots(&points, DOT, Ink::Diverging(colour)));
            }
        }
    }

    /// One parameter: the mean probability by bin, above ½ where the posterior is too high.
    fn alone(
        &self,
        canvas: &mut Canvas,
        frame: Frame,
        (parameter, range): (usize, Range),
        (first, height): (bool, Scale),
    ) {
        let bins = self.bins(parameter, range);
        let frame = Frame { y: height, ..frame };
        if first {
            frame.y_axis(canvas, "mean probability");
        }
        let width = (range.1 - range.0) / BINS as f64;
        for (i, mean) in bins.iter().enumerate().filter_map(|(i, mean)| Some((i, (*mean)?))) {
            let [left, right] = [i, i + 1].map(|k| range.0 + k as f64 * width);
            bar(canvas, &frame, (left, right), mean);
        }
        let even = frame.up(0.5);
        let stroke = Stroke::new(Ink::Reference, 1.2).dashed();
        canvas.line((frame.corner.0, even), (frame.right(), even), stroke);
        let label = Label::new(11.0, Ink::Muted, Anchor::Start);
        canvas.text((frame.corner.0 + 6.0, frame.corner.1 + 15.0), "too high", label);
        canvas.text((frame.corner.0 + 6.0, frame.bottom() - 7.0), "too low", label);
    }

    /// One scale for the bars of all parameters, as far below ½ as above.
    fn height(&self, shown: &[usize], views: &[Range]) -> Scale {
        let means = shown.iter().zip(views).flat_map(|(&i, &range)| self.bins(i, range));
        let off = means.flatten().map(|mean| (mean - 0.5).abs()).fold(0.12, f64::max);
        Scale::new(0.5 - 1.2 * off, 0.5 + 1.2 * off)
    }

    /// The mean probability in each bin of a parameter; none where too few draws lie.
    fn bins(&self, parameter: usize, range: Range) -> Vec<Option<f64>> {
        let width = (range.1 - range.0) / BINS as f64;
        let mut bins = vec![(0.0, 0); BINS];
        let draws = self.theta[parameter].iter().zip(&self.found.probability);
        for (theta, probability) in draws.filter(|(theta, _)| (range.0..=range.1).contains(*theta))
        {
            let bin = &mut bins[(((theta - range.0) / width) as usize).min(BINS - 1)];
            *bin = (bin.0 + probability, bin.1 + 1);
        }
        let mean = |&(sum, draws): &(f64, usize)| (draws >= FEWEST).then(|| sum / draws as f64);
        bins.iter().map(mean).collect()
    }

    fn finished(&self, canvas: Canvas, several: bool) -> Figure {
        let LocalMap { p_value, probability, .. } = self.found;
        let (mean, spread) = mean_and_deviation(probability);
        let title = "Where the posterior is too high or too low".to_owned();
        let whose = if several { format!(" Drawn for {}.", self.run.name) } else { String::new() };
        let noise = match *p_value < 0.05 {
            true => "so that the colours mean something",
            false => "so that the colours may well be noise",
        };
        let caption = format!(
            "A classifier looks at draws of the posterior at the observation: orange where it takes the posterior to be too high, \
             blue where too low, grey where it sees no difference; on the diagonal, its mean probability by parameter, ½ where all \
             is well. An exact posterior is told apart as well as this in {:.0} of 100 cases, {noise}.{whose}",
            100.0 * p_value
        );
        let told = format!(
            "p = {p_value:.3}, probability {mean:.2} ± {spread:.2} over {} draws",
            probability.len()
        );
        let svg = canvas.finish(&title, &told);
        Figure { kind: Kind::Local, title, caption, svg }
    }
}

/// The step of the scale of colours: the odds that a draw is one of the posterior say by which factor it is too high.
fn colour_of(probability: f64) -> usize {
    let odds = probability / (1.0 - probability);
    let above = FACTORS.iter().filter(|factor| odds >= **factor).count();
    let below = FACTORS.iter().filter(|factor| odds * **factor <= 1.0).count();
    Ink::DIVERGING / 2 + above - below
}

/// A colour in words.
fn words(colour: usize) -> String {
    let middle = Ink::DIVERGING / 2;
    let side = if colour < middle { "too low" } else { "too high" };
    match colour.abs_diff(middle) {
        0 => "as it should be".to_owned(),
        steps => match FACTORS.get(steps) {
            Some(next) => format!("{} to {next} times {side}", FACTORS[steps - 1]),
            None => format!("{} times {side} or more", FACTORS[steps - 1]),
        },
    }
}

fn bar(canvas: &mut Canvas, frame: &Frame, (left, right): (f64, f64), mean: f64) {
    let [from, to] = [left, right].map(|end| number_to(end, right - left));
    let words = format!("{from} to {to}: mean probability {mean:.2}");
    let (low, high) = (mean.min(0.5), mean.max(0.5));
    let corner = frame.place(left, high);
    let size = (frame.across(right) - corner.0 - 1.0, (frame.up(low) - corner.1).max(1.0));
    let ink = Ink::Diverging(colour_of(mean));
    canvas.telling(&words, |canvas| canvas.rectangle(corner, size, ink, 1.0));
}

/// The scale of colours, with the factors where they change.
fn scale(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let words = Label::new(12.0, Ink::Text, Anchor::Start);
    canvas.text((x, y + 11.0), "times too low", words);
    let (start, middle) = (x + WORDS, Ink::DIVERGING / 2);
    for colour in 0..Ink::DIVERGING {
        let left = start + BOX * colour as f64;
        canvas.rectangle((left, y), (BOX, 13.0), Ink::Diverging(colour), 1.0);
        if colour > 0 {
            // Up to the middle box the factors fall, and from its right side on they rise.
            let place = if colour <= middle { middle - colour } else { colour - middle - 1 };
            let label = Label::new(11.0, Ink::Muted, Anchor::Middle);
            canvas.text((left, y + 27.0), &FACTORS[place].to_string(), label);
        }
    }
    canvas.text((start + BOX * Ink::DIVERGING as f64 + 10.0, y + 11.0), "times too high", words);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_even_around_one_half() {
        let middle = Ink::DIVERGING / 2;
        for (probability, step) in [(0.5, 0), (0.55, 0), (0.6, 1), (0.7, 2), (0.76, 3), (1.0, 3)] {
            assert_eq!(colour_of(probability), middle + step, "{probability}");
            assert_eq!(colour_of(1.0 - probability), middle - step, "{probability}");
        }
        assert_eq!(words(middle), "as it should be");
        assert_eq!(words(middle + 1), "1.25 to 1.75 times too high");
        assert_eq!(words(0), "3 times too low or more");
    }
}
