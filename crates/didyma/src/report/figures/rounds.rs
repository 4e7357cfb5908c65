//! Where simulations were made, round by round.

use super::pairs::chosen;
use super::{Figure, Kind};
use crate::report::data::{Comparison, RunData};
use didyma_plot::{
    Anchor, Canvas, Frame, Histogram, Ink, Label, Place, Scale, Stroke, number, quantile,
    shortened, view,
};

/// Parameters that are drawn, at most.
const MOST: usize = 4;
const WIDTH: f64 = 160.0;
/// Bars of a histogram: late rounds are narrow beside the prior.
const RIDGE_BARS: usize = 56;
const ROW: f64 = 26.0;
const LEFT: f64 = 146.0;
const GAP: f64 = 16.0;
const ABOVE: f64 = 40.0;
const BELOW: f64 = 42.0;

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let run = runs.first();
    if run.simulated.is_empty() {
        return None;
    }
    let shown: Vec<usize> = chosen(runs).into_iter().take(MOST).collect();
    let rounds = run.simulated.len();
    let width = LEFT + shown.len() as f64 * (WIDTH + GAP);
    let mut canvas = Canvas::new(place, width, ABOVE + rounds as f64 * ROW + BELOW);
    counts(&mut canvas, run);
    for (k, &parameter) in shown.iter().enumerate() {
        let corner = (LEFT + k as f64 * (WIDTH + GAP), ABOVE);
        ridges(&mut canvas, corner, run, parameter);
    }
    let title = "Simulations".to_owned();
    let left_out = match run.dim() - shown.len() {
        0 => String::new(),
        n => format!(" {n} parameters are left out."),
    };
    let whose = match runs.len() {
        1 => String::new(),
        _ => format!(" Drawn for {}, seed {}.", run.method(), run.summary.seed),
    };
    let caption = format!(
        "Parameters that each round simulated: the first draws them from the prior, every later one where the posterior \
         so far says. Red: the true values, where they are known.{left_out}{whose}"
    );
    let svg = canvas.finish(&title, &caption);
    Some(Figure { kind: Kind::Simulations, title, caption, svg })
}

fn counts(canvas: &mut Canvas, run: &RunData) {
    let label = Label::new(11.0, Ink::Muted, Anchor::End);
    for (i, (simulations, failures)) in run.simulated.iter().enumerate() {
        let y = ABOVE + (i as f64 + 0.8) * ROW;
        let (words, ink) = match failures {
            0 => (format!("{}: {simulations}", i + 1), Ink::Muted),
            _ => (format!("{}: {simulations}, {failures} failed", i + 1), Ink::Truth),
        };
        canvas.text((LEFT - 10.0, y), &words, Label { ink, ..label });
    }
    canvas.text(
        (LEFT - 10.0, ABOVE - 12.0),
        "round: simulations",
        Label { ink: Ink::Text, ..label },
    );
}

/// A small histogram for every round, one below the other.
fn ridges(canvas: &mut Canvas, corner: (f64, f64), run: &RunData, parameter: usize) {
    let columns: Vec<&[f64]> = run.proposals.iter().map(|round| &*round[parameter]).collect();
    let truth = run.truth.as_ref().map(|truth| truth[parameter]);
    let range = view(columns.iter().copied(), truth, run.support(parameter));
    let size = (WIDTH, columns.len() as f64 * ROW);
    let frame = Frame { corner, size, x: Scale::new(range.0, range.1), y: Scale::new(0.0, 1.0) };
    for (i, column) in columns.iter().enumerate() {
        let bars = Histogram::new(column, range, RIDGE_BARS);
        let (base, unit) =
            (corner.1 + (i + 1) as f64 * ROW, 0.92 * ROW / bars.highest().max(1e-300));
        let mut outline = vec![(frame.across(range.0), base)];
        outline.extend(bars.iter().flat_map(|(left, right, height)| {
            let y = base - unit * height;
            [(frame.across(left), y), (frame.across(right), y)]
        }));
        outline.push((frame.across(range.1), base));
        let (low, high) = middle(column);
        let words = format!(
            "round {}: 95 % of {} between {} and {}",
            i + 1,
            run.label(parameter),
            number(low),
            number(high)
        );
        canvas.telling(&words, |canvas| {
            canvas.areas([outline.as_slice()], Ink::Series(0), 0.45);
            canvas.line((corner.0, base), (corner.0 + WIDTH, base), Stroke::new(Ink::Grid, 1.0));
        });
    }
    if let Some(truth) = truth {
        let x = frame.across(truth.clamp(range.0, range.1));
        canvas.line((x, corner.1), (x, frame.bottom()), Stroke::new(Ink::Truth, 1.2));
    }
    frame.title(canvas, &shortened(run.label(parameter), 20));
    frame.x_axis(canvas, "");
}

/// The middle 95 %.
fn middle(column: &[f64]) -> (f64, f64) {
    let mut sorted = column.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    (quantile(&sorted, 0.025), quantile(&sorted, 0.975))
}
