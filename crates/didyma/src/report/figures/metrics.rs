//! Scores of the posterior, round by round.

use super::key::key;
use super::{Figure, Kind};
use crate::inference::RoundReport;
use crate::report::data::{Cohort, Comparison};
use didyma_plot::{Canvas, Frame, Ink, Place, Scale, Stroke, number};

const PANEL: (f64, f64) = (340.0, 170.0);
const LEFT: f64 = 58.0;
const ABOVE: f64 = 28.0;
const BELOW: f64 = 42.0;
const RIGHT: f64 = 18.0;

/// A score: its name, and how it is read.
struct Score {
    name: &'static str,
    about: &'static str,
    of: fn(&RoundReport) -> Option<f64>,
    /// Its standard error, where it has one.
    error: fn(&RoundReport) -> Option<f64>,
    /// The value of a perfect posterior, where it is known.
    ideal: Option<f64>,
}

/// A score of every run by round, and standard errors of a single run by round.
type Line = [(u32, Vec<f64>)];
type Bars = [(u32, f64)];

const SCORES: [Score; 4] = [
    Score {
        name: "C2ST",
        about: "0.5 is perfect, 1 worst",
        of: |r| r.scores.c2st,
        error: |r| r.scores.c2st_error,
        ideal: Some(0.5),
    },
    Score {
        name: "MMD²",
        about: "0 is perfect",
        of: |r| r.scores.mmd2,
        error: |_| None,
        ideal: Some(0.0),
    },
    Score {
        name: "LMD",
        about: "log distance, lower is better",
        of: |r| r.scores.lmd,
        error: |_| None,
        ideal: None,
    },
    Score {
        name: "NLOG",
        about: "−log q(θ*), lower is better",
        of: |r| r.scores.nlog,
        error: |_| None,
        ideal: None,
    },
];

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let has = |score: &&Score| runs.cohorts.iter().any(|g| !g.by_round(score.of).is_empty());
    let scores: Vec<&Score> = SCORES.iter().filter(has).collect();
    if scores.is_empty() {
        return None;
    }
    let (columns, rows) = (scores.len().min(2), scores.len().div_ceil(2));
    let step = (LEFT + PANEL.0 + RIGHT, ABOVE + PANEL.1 + BELOW);
    let key = key(runs);
    let top = key.height();
    let (width, height) = (columns as f64 * step.0, top + rows as f64 * step.1);
    let mut canvas = Canvas::new(place, width, height);
    key.draw(&mut canvas, (LEFT, 0.0));
    for (i, score) in scores.iter().enumerate() {
        let corner = ((i % 2) as f64 * step.0 + LEFT, top + (i / 2) as f64 * step.1 + ABOVE);
        panel(&mut canvas, corner, score, runs);
    }
    let title = "Quality by round".to_owned();
    let caption = "How close the posterior of each round is to the truth. C2ST: how often a classifier tells its samples \
                   from the reference, mean over classifier seeds; the bars of a single run are its standard error over \
                   these seeds, of which each asks about fewer rows before the last round. LMD: log of the median distance of simulations to the observation. NLOG: −log of \
                   the density at the true parameters."
        .to_owned();
    let told: Vec<String> = runs.cohorts.iter().map(|cohort| told(cohort, &scores)).collect();
    let svg = canvas.finish(&title, &told.join("; "));
    Some(Figure { kind: Kind::Metrics, title, caption, svg })
}

/// The last scores of a cohort in words, for those who cannot see them.
fn told(cohort: &Cohort, scores: &[&Score]) -> String {
    let last = |score: &&Score| {
        let (round, values) = cohort.by_round(score.of).pop()?;
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let error = errors(score, cohort).into_iter().find(|(of, _)| *of == round);
        let error = error.map_or(String::new(), |(_, error)| format!(" ± {error:.3}"));
        Some(format!("{} {mean:.3}{error} after round {round}", score.name))
    };
    let told: Vec<String> = scores.iter().filter_map(last).collect();
    format!("{}: {}", cohort.name, told.join(", "))
}

/// The standard errors of a single run's score by round; of several runs the spread is drawn instead.
fn errors(score: &Score, cohort: &Cohort) -> Vec<(u32, f64)> {
    let single = cohort.runs.len() == 1;
    let found = if single { cohort.by_round(score.error) } else { Vec::new() };
    found.into_iter().map(|(round, values)| (round, values[0])).collect()
}

fn panel(canvas: &mut Canvas, corner: (f64, f64), score: &Score, runs: &Comparison) {
    let lines: Vec<_> = runs.cohorts.iter().map(|cohort| cohort.by_round(score.of)).collect();
    let bars: Vec<_> = runs.cohorts.iter().map(|cohort| errors(score, cohort)).collect();
    let ends = lines.iter().zip(&bars).flat_map(|(line, bars)| {
        line.iter().flat_map(|(round, values)| {
            let error = error_of(bars, *round);
            values.iter().flat_map(move |value| [value - error, value + error])
        })
    });
    let last = lines.iter().flatten().map(|(round, _)| *round).max().unwrap_or(1);
    let frame = Frame {
        corner,
        size: PANEL,
        x: Scale::counted(1, last),
        y: Scale::around(ends.chain(score.ideal)),
    };
    frame.title(canvas, &format!("{}: {}", score.name, score.about));
    frame.y_axis(canvas, "");
    frame.x_axis(canvas, "round");
    if let Some(ideal) = score.ideal {
        let y = frame.up(ideal);
        let stroke = Stroke::new(Ink::Reference, 1.4).dashed();
        canvas.line((frame.corner.0, y), (frame.right(), y), stroke);
    }
    for (i, ((line, bars), cohort)) in lines.iter().zip(&bars).zip(&runs.cohorts).enumerate() {
        series(canvas, &frame, Ink::Series(i), (line, bars), (score.name, cohort));
    }
}

/// The error of a round; 0 where none is known.
fn error_of(bars: &Bars, round: u32) -> f64 {
    bars.iter().find(|(of, _)| *of == round).map_or(0.0, |(_, error)| *error)
}

/// The mean over seeds with a band from the lowest to the highest, or a single run with the bars of its errors.
fn series(
    canvas: &mut Canvas,
    frame: &Frame,
    ink: Ink,
    (line, bars): (&Line, &Bars),
    (score, cohort): (&str, &Cohort),
) {
    let low = |values: &[f64]| values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = |values: &[f64]| values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let place = |(round, values): &(u32, Vec<f64>), of: &dyn Fn(&[f64]) -> f64| {
        frame.place(f64::from(*round), of(values))
    };
    if cohort.runs.len() > 1 {
        let mut band: Vec<_> = line.iter().map(|point| place(point, &high)).collect();
        band.extend(line.iter().rev().map(|point| place(point, &low)));
        canvas.areas([band.as_slice()], ink, 0.18);
    }
    let means: Vec<_> = line.iter().map(|point| place(point, &mean)).collect();
    canvas.lines([means.as_slice()], Stroke::new(ink, 1.8));
    for ((round, values), &at) in line.iter().zip(&means) {
        let error = error_of(bars, *round);
        let spread = match values.len() {
            1 if error > 0.0 => format!(" ± {error:.3}"),
            1 => String::new(),
            _ => format!(" ({} to {})", number(low(values)), number(high(values))),
        };
        let words = format!("{}, round {round}: {score} {:.3}{spread}", cohort.name, mean(values));
        canvas.telling(&words, |canvas| {
            frame.bar(canvas, (f64::from(*round), mean(values)), error, ink);
            canvas.dot(at, 4.0, ink);
        });
    }
}
