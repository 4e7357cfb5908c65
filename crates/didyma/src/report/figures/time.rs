//! Where the time went.

use super::{Figure, Kind};
use crate::inference::RoundReport;
use crate::report::data::{Cohort, Comparison};
use didyma_plot::{Anchor, Canvas, Frame, Ink, Label, Place, Scale, number, shortened};

const LEFT: f64 = 150.0;
const WIDTH: f64 = 520.0;
const RIGHT: f64 = 70.0;
const ROW: f64 = 34.0;
const ABOVE: f64 = 34.0;
const BELOW: f64 = 44.0;

/// A part of the time, and its colour.
type Part = (&'static str, fn(&RoundReport) -> f64, Ink);

const PARTS: [Part; 3] = [
    ("simulating", |r| r.seconds_simulate, Ink::Series(2)),
    ("training", |r| r.seconds_train, Ink::Series(0)),
    ("scoring", |r| r.seconds_score, Ink::Series(1)),
];

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let times: Vec<[f64; 3]> = runs.cohorts.iter().map(mean_times).collect();
    let longest = times.iter().map(|parts| parts.iter().sum::<f64>()).fold(0.0, f64::max);
    if longest <= 0.0 {
        return None;
    }
    let height = ABOVE + ROW * times.len() as f64 + BELOW;
    let mut canvas = Canvas::new(place, LEFT + WIDTH + RIGHT, height);
    let frame = Frame {
        corner: (LEFT, ABOVE),
        size: (WIDTH, ROW * times.len() as f64),
        x: Scale::new(0.0, longest),
        y: Scale::new(0.0, 1.0),
    };
    frame.x_axis(&mut canvas, "seconds");
    for (i, (name, _, ink)) in PARTS.iter().enumerate() {
        let x = LEFT + 120.0 * i as f64;
        canvas.rectangle((x, 8.0), (14.0, 12.0), *ink, 0.85);
        canvas.text((x + 20.0, 18.0), name, Label::new(12.0, Ink::Text, Anchor::Start));
    }
    for (i, (cohort, parts)) in runs.cohorts.iter().zip(&times).enumerate() {
        bar(&mut canvas, &frame, ABOVE + ROW * i as f64, (&cohort.name, parts));
    }
    let title = "Time".to_owned();
    let caption = "Wall-clock time of all rounds, as the run's own clock counts it; the mean where there are several \
                   seeds. Scoring is the comparison with a known truth, where there is one."
        .to_owned();
    let told = |(cohort, parts): (&Cohort, &[f64; 3])| {
        let part = |((name, ..), seconds): (&Part, &f64)| format!("{name} {} s", number(*seconds));
        let parts: Vec<String> = PARTS.iter().zip(parts).map(part).collect();
        format!("{}: {}", cohort.name, parts.join(", "))
    };
    let told: Vec<String> = runs.cohorts.iter().zip(&times).map(told).collect();
    let svg = canvas.finish(&title, &told.join("; "));
    Some(Figure { kind: Kind::Time, title, caption, svg })
}

fn mean_times(cohort: &Cohort) -> [f64; 3] {
    let runs = cohort.runs.len() as f64;
    let rounds = || cohort.runs.iter().flat_map(|run| &run.summary.rounds);
    PARTS.map(|(_, of, _)| rounds().map(of).sum::<f64>() / runs)
}

fn bar(canvas: &mut Canvas, frame: &Frame, y: f64, (name, parts): (&str, &[f64; 3])) {
    let all: f64 = parts.iter().sum();
    let mut from = 0.0;
    for ((what, _, ink), seconds) in PARTS.iter().zip(parts) {
        let (left, right) = (frame.across(from), frame.across(from + seconds));
        let share = 100.0 * seconds / all.max(1e-300);
        let words = format!("{what}: {} s, {share:.0} %", number(*seconds));
        canvas.telling(&words, |canvas| {
            canvas.rectangle((left, y + 6.0), (right - left, ROW - 12.0), *ink, 0.85);
        });
        from += seconds;
    }
    let label = Label::new(12.0, Ink::Text, Anchor::End);
    canvas.telling(name, |canvas| {
        canvas.text((LEFT - 8.0, y + 0.5 * ROW + 4.0), &shortened(name, 18), label);
    });
    let total = format!("{} s", number(all));
    let start = Label { anchor: Anchor::Start, ..label };
    canvas.text((frame.across(all) + 6.0, y + 0.5 * ROW + 4.0), &total, start);
}
