//! Places of true parameters among draws of the posterior, parameter by parameter: are they uniform?

use super::places::{
    Calibrated, asked, band, by_members, calibrated, distribution, draw_band, p_words,
};
use super::{Figure, Kind};
use crate::evaluation::calibration::{Bands, RankCheck};
use crate::math::binomial::BinomialTails;
use crate::report::data::Comparison;
use didyma_plot::{
    Anchor, Canvas, Frame, Histogram, Ink, Label, Legend, Place, Scale, Stroke, Style, number,
    shortened,
};

/// Parameters with a colour and a histogram of their own, at most: of more the least even are chosen.
const MOST: usize = 12;
/// Parameters that are named where there are more than that.
const NAMED: usize = 3;
const WIDTH: f64 = 700.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 16.0;
const ABOVE: f64 = 10.0;
const BELOW: f64 = 52.0;
/// Histograms: how many stand beside each other, and what one takes.
const ACROSS: usize = 4;
const STEP: (f64, f64) = (180.0, 122.0);
const BARS: (f64, f64) = (144.0, 70.0);
/// Colours before the dashes change: the sixth is close to the first.
const COLOURS: usize = 5;
const DASHES: [&str; 3] = ["", "6 3", "2 3"];

/// The line of a parameter.
struct Line<'a> {
    rank: &'a RankCheck,
    /// Its entry in the legend; none for one of many.
    name: Option<String>,
    stroke: Stroke,
}

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let all = calibrated(runs)?;
    let band = band(&all)?;
    let lines = lines(&all);
    let entry = |line: &Line| {
        let stroke = Stroke { width: 2.4, ..line.stroke };
        Some((line.name.clone()?, Style { stroke, mark: None }))
    };
    let order = told_order(&lines);
    let legend = Legend::new(order.iter().copied().filter_map(entry).collect(), WIDTH);
    // Lines of several runs in one panel have no room for bars.
    let bars = if all.len() == 1 { &order[..order.len().min(MOST)] } else { &[] };
    let top = ABOVE + legend.height();
    let rows = bars.len().div_ceil(ACROSS) as f64;
    let below = if bars.is_empty() { 0.0 } else { 22.0 + rows * STEP.1 };
    let height = top + HEIGHT + BELOW + below;
    let mut canvas = Canvas::new(place, LEFT + WIDTH + RIGHT, height);
    legend.draw(&mut canvas, (LEFT, ABOVE - 4.0));
    differences(&mut canvas, (LEFT, top), &lines, &band);
    histograms(&mut canvas, top + HEIGHT + BELOW + 22.0, bars);
    Some(finished(canvas, &all, &lines, runs))
}

/// All lines, those that are drawn above others last.
fn lines<'a>(all: &[Calibrated<'a>]) -> Vec<Line<'a>> {
    if let [one] = all {
        return of_one(&one.found.parameters);
    }
    let of_cohort = |one: &Calibrated<'a>| {
        let (name, ink) = (one.name.to_owned(), Ink::Series(one.number));
        let line = move |(i, rank): (usize, &'a RankCheck)| Line {
            rank,
            name: (i == 0).then(|| name.clone()),
            stroke: Stroke::new(ink, 1.4),
        };
        one.found.parameters.iter().enumerate().map(line)
    };
    all.iter().flat_map(of_cohort).collect()
}

/// A colour for each parameter of one run, or for the least even of many.
fn of_one(ranks: &[RankCheck]) -> Vec<Line<'_>> {
    let coloured = |(i, rank): (usize, &RankCheck)| -> (Option<String>, Stroke) {
        let dashes = DASHES[i / COLOURS % DASHES.len()];
        let name = format!("{}, {}", shortened(&rank.name, 24), p_words(rank));
        (Some(name), Stroke { dashes, ..Stroke::new(Ink::Series(i % COLOURS), 1.8) })
    };
    let mut order: Vec<usize> = (0..ranks.len()).collect();
    if ranks.len() > MOST {
        order.sort_by(|&a, &b| ranks[b].p_value.total_cmp(&ranks[a].p_value));
    }
    let thin = if ranks.len() > MOST { ranks.len() - NAMED } else { 0 };
    let line = |(place, &i): (usize, &usize)| {
        let (name, stroke) = match place.checked_sub(thin) {
            // The last of many is the least even.
            Some(number) if thin > 0 => coloured((NAMED - 1 - number, &ranks[i])),
            Some(number) => coloured((number, &ranks[i])),
            None => (None, Stroke::new(Ink::Muted, 0.7)),
        };
        Line { rank: &ranks[i], name, stroke }
    };
    order.iter().enumerate().map(line).collect()
}

/// The order of legend and histograms: that of the parameters, or of many the least even first.
fn told_order<'b, 'a>(lines: &'b [Line<'a>]) -> Vec<&'b Line<'a>> {
    let many = lines.iter().any(|line| line.name.is_none()) && lines.len() > MOST;
    if many { lines.iter().rev().collect() } else { lines.iter().collect() }
}

/// The distribution functions less that of uniform numbers, and the band that an exact posterior stays in.
fn differences(canvas: &mut Canvas, corner: (f64, f64), lines: &[Line], band: &Bands) {
    let curves: Vec<Vec<(f64, f64)>> = lines
        .iter()
        .map(|line| distribution(&line.rank.places, band))
        .map(|curve| curve.into_iter().map(|(at, share)| (at, share - at)).collect())
        .collect();
    let of_band = band.points.iter().zip(band.low.iter().zip(&band.high));
    let of_band = of_band.flat_map(|(at, (low, high))| [at - low, high - at]);
    let heights = curves.iter().flatten().map(|(_, height)| height.abs());
    let reach = 1.3 * heights.chain(of_band).fold(0.02, f64::max);
    let (x, y) = (Scale::new(0.0, 1.0), Scale::new(-reach, reach));
    let frame = Frame { corner, size: (WIDTH, HEIGHT), x, y };
    frame.y_axis(canvas, "share below, minus expected");
    draw_band(canvas, &frame, band, |at, share| share - at);
    frame.x_axis(
        canvas,
        "place of the true value among draws of the posterior (0 below all, 1 above all)",
    );
    let zero = frame.up(0.0);
    canvas.line((corner.0, zero), (frame.right(), zero), Stroke::new(Ink::Reference, 1.2).dashed());
    for (line, curve) in lines.iter().zip(&curves) {
        let RankCheck { name, deviation, .. } = line.rank;
        let points: Vec<_> = curve.iter().map(|&(at, height)| frame.place(at, height)).collect();
        let words = format!("{name}: {}, at most {} off", p_words(line.rank), number(*deviation));
        canvas.telling(&words, |canvas| canvas.lines([points.as_slice()], line.stroke));
    }
    frame.border(canvas);
    hint(canvas, (frame.right(), corner.1 + 16.0), "above all along: the posterior is too high");
    hint(
        canvas,
        (frame.right(), frame.bottom() - 8.0),
        "below all along: the posterior is too low",
    );
}

/// Words inside of the panel, before its right edge and above its grid.
fn hint(canvas: &mut Canvas, (right, y): (f64, f64), words: &str) {
    let width = 6.4 * words.chars().count() as f64;
    canvas.rectangle((right - 8.0 - width, y - 11.0), (width + 4.0, 15.0), Ink::Paper, 1.0);
    canvas.text((right - 8.0, y), words, Label::new(11.0, Ink::Muted, Anchor::End));
}

/// Histograms of the places, with the band of the bars of an exact posterior.
fn histograms(canvas: &mut Canvas, top: f64, lines: &[&Line]) {
    let counts = lines.iter().map(|line| line.rank.places.len());
    let Some(rows) = counts.max() else { return };
    let bars = (rows / 15).clamp(5, 20);
    let drawn: Vec<Histogram> =
        lines.iter().map(|line| Histogram::new(&line.rank.places, (0.0, 1.0), bars)).collect();
    // All bars of a histogram at once: each is outside with a share of 5 %.
    let tail = 0.5 * 0.05 / bars as f64;
    let range = BinomialTails::new(rows, 1.0 / bars as f64).range_above(tail);
    let (low, high) = range.unwrap_or((0, rows));
    let [low, high] = [low, high].map(|count| (count * bars) as f64 / rows as f64);
    let highest = drawn.iter().map(Histogram::highest).fold(high, f64::max);
    for (i, (line, histogram)) in lines.iter().zip(&drawn).enumerate() {
        let corner = (LEFT + (i % ACROSS) as f64 * STEP.0, top + (i / ACROSS) as f64 * STEP.1);
        let y = Scale::new(0.0, 1.1 * highest);
        let frame = Frame { corner, size: BARS, x: Scale::new(0.0, 1.0), y };
        bars_of(canvas, &frame, line, (histogram, (low, high)));
    }
}

fn bars_of(
    canvas: &mut Canvas,
    frame: &Frame,
    line: &Line,
    (histogram, band): (&Histogram, (f64, f64)),
) {
    let RankCheck { name, shift, width, .. } = line.rank;
    let words = format!(
        "{name}: {}, true values {} sd above the middle, spread {} (1 is right)",
        p_words(line.rank),
        number(*shift),
        number(*width)
    );
    canvas.telling(&words, |canvas| {
        let corner = frame.place(0.0, band.1);
        let size = (frame.size.0, frame.up(band.0) - corner.1);
        canvas.rectangle(corner, size, Ink::Reference, 0.25);
        for (left, right, height) in histogram.iter().filter(|bar| bar.2 > 0.0) {
            let corner = frame.place(left, height);
            let size = (frame.across(right) - corner.0 - 1.0, frame.bottom() - corner.1);
            canvas.rectangle(corner, size, line.stroke.ink, 0.6);
        }
    });
    let even = frame.up(1.0);
    canvas.line(
        (frame.corner.0, even),
        (frame.right(), even),
        Stroke::new(Ink::Reference, 1.0).dashed(),
    );
    frame.border(canvas);
    frame.title(canvas, &shortened(name, 18));
    frame.x_axis(canvas, "");
}

fn finished(canvas: Canvas, all: &[Calibrated], lines: &[Line], runs: &Comparison) -> Figure {
    let title = "Calibration by parameter".to_owned();
    let many = match lines.len() {
        count if all.len() == 1 && count > MOST => {
            format!(
                " Of {count} parameters the {NAMED} least even are named, and {MOST} have a histogram."
            )
        }
        _ => String::new(),
    };
    let caption = format!(
        "Where the true values of {} lie among draws of the posterior: an exact posterior keeps a line in the grey band in 95 of \
         100 cases, and its histogram as flat as the grey bar. A line above on the left and below on the right, or tall outer bars, \
         is a posterior that is too narrow; the other way around, or tall middle bars, one that is too wide.{many}{members}",
        asked(all, runs),
        members = by_members(all)
    );
    let told = lines.iter().filter_map(|line| line.name.clone()).collect::<Vec<_>>().join("; ");
    let svg = canvas.finish(&title, &told);
    Figure { kind: Kind::Ranks, title, caption, svg }
}
