//! Does the posterior reproduce the observation? Simulations at its samples, summary by summary.

use super::key::key;
use super::{Figure, Kind};
use crate::report::data::{Check, Cohort, Comparison, checks};
use didyma_plot::{Anchor, Canvas, Frame, Ink, Label, Place, Scale, Stroke, number, shortened};

/// Summaries that are drawn, at most: those furthest from the simulations.
const MOST: usize = 30;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 480.0;
const RIGHT: f64 = 60.0;
const ABOVE: f64 = 12.0;
const BELOW: f64 = 44.0;
/// Height of a cohort's bar.
const BAR: f64 = 12.0;

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let of_cohort = |cohort: &Cohort| cohort.runs.iter().map(checks).find(|c| !c.is_empty());
    let all: Vec<Vec<Check>> =
        runs.cohorts.iter().map(|cohort| of_cohort(cohort).unwrap_or_default()).collect();
    let summaries = all.iter().map(Vec::len).max().filter(|&n| n > 0)?;
    let mut shown: Vec<usize> = (0..summaries).collect();
    if summaries > MOST {
        let tails = |i: usize| all.iter().filter_map(move |checks| Some(checks.get(i)?.tail));
        let worst = |i: usize| tails(i).fold(1.0, f64::min);
        shown.sort_by(|&a, &b| worst(a).total_cmp(&worst(b)));
        shown.truncate(MOST);
        shown.sort_unstable();
    }
    let row = BAR * all.len() as f64 + 12.0;
    let key = key(runs);
    let top = ABOVE + key.height();
    let height = top + row * shown.len() as f64 + BELOW;
    let mut canvas = Canvas::new(place, LEFT + WIDTH + RIGHT, height);
    key.draw(&mut canvas, (LEFT, 4.0));
    let ends =
        all.iter().flatten().flat_map(|c| [c.scaled(c.quantiles[0]), c.scaled(c.quantiles[4])]);
    let reach = ends.map(f64::abs).fold(3.0, f64::max).min(8.0);
    let frame = Frame {
        corner: (LEFT, top),
        size: (WIDTH, row * shown.len() as f64),
        x: Scale::new(-reach, reach),
        y: Scale::new(0.0, 1.0),
    };
    frame.border(&mut canvas);
    frame.x_axis(&mut canvas, "simulated minus observed, in units of the simulations' spread");
    for (k, &summary) in shown.iter().enumerate() {
        let y = top + row * k as f64;
        for (g, checks) in all.iter().enumerate() {
            if let Some(check) = checks.get(summary) {
                let middle = y + 6.0 + BAR * (g as f64 + 0.5);
                bar(&mut canvas, &frame, middle, Ink::Series(g), check);
            }
        }
        let at = (LEFT - 8.0, y + 0.5 * row + 4.0);
        let label = Label::new(11.0, Ink::Text, Anchor::End);
        canvas.text(at, &shortened(&runs.first().observation[summary].0, 28), label);
    }
    let x = frame.across(0.0);
    canvas.line((x, top), (x, frame.bottom()), Stroke::new(Ink::Truth, 1.6));
    let seeds = runs.cohorts.iter().any(|cohort| cohort.runs.len() > 1);
    Some(finished(canvas, summaries - shown.len(), seeds))
}

fn finished(canvas: Canvas, left_out: usize, seeds: bool) -> Figure {
    let title = "Posterior predictive check".to_owned();
    let others = match left_out {
        0 => String::new(),
        n => format!(" The {n} summaries that agree best are left out."),
    };
    let whose = if seeds { " Drawn for the first seed of each." } else { "" };
    let caption = format!(
        "Simulations at samples of the posterior: 68 and 95 % of those that succeed (thick and thin, a dot for the median) around the observation \
         (red). A bar that misses the line is a summary that the posterior does not reproduce; an arrow points to one that \
         is further off than the figure reaches.{others}{whose}"
    );
    let svg = canvas.finish(&title, &caption);
    Figure { kind: Kind::Predictive, title, caption, svg }
}

fn bar(canvas: &mut Canvas, frame: &Frame, y: f64, ink: Ink, check: &Check) {
    let place = |value: f64| {
        let scaled = check.scaled(value).clamp(frame.x.low(), frame.x.high());
        frame.across(scaled)
    };
    let [lowest, low, median, high, highest] = check.quantiles.map(place);
    let words = format!(
        "{}: observed {}, simulated {} ({} to {}), two-sided p {:.3}",
        check.name,
        number(check.observed),
        number(check.quantiles[2]),
        number(check.quantiles[0]),
        number(check.quantiles[4]),
        check.tail
    );
    canvas.telling(&words, |canvas| {
        canvas.line((lowest, y), (highest, y), Stroke::new(ink, 2.0));
        canvas.rectangle((low, y - 4.0), (high - low, 8.0), ink, 0.75);
        canvas.dot((median, y), 2.6, Ink::Paper);
        for (end, way) in [(frame.x.low(), -1.0), (frame.x.high(), 1.0)] {
            if way * check.scaled(check.quantiles[2]) >= way * end {
                let tip = frame.across(end) + 8.0 * way;
                let arrow = [(tip, y), (tip - 8.0 * way, y - 5.0), (tip - 8.0 * way, y + 5.0)];
                canvas.areas([arrow.as_slice()], ink, 1.0);
            }
        }
    });
}
