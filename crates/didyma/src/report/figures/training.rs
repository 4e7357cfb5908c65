//! Losses of every round, epoch by epoch.

use super::key::key;
use super::{Figure, Kind};
use crate::inference::EpochRecord;
use crate::named::Named;
use crate::report::data::{Comparison, RunData};
use didyma_plot::{Anchor, Canvas, Frame, Ink, Label, Place, Scale, Stroke, number};

const COLUMNS: usize = 4;
/// Rounds that are drawn, at most: the first, and the last ones.
const MOST: usize = 12;
const PANEL: (f64, f64) = (140.0, 96.0);
const LEFT: f64 = 46.0;
const ABOVE: f64 = 30.0;
const BELOW: f64 = 24.0;
const RIGHT: f64 = 4.0;

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let last = runs.runs().flat_map(|run| &run.training).map(|epoch| epoch.round).max()?;
    let rounds: Vec<u32> = (1..=last).filter(|r| *r == 1 || last - r + 1 < MOST as u32).collect();
    let columns = rounds.len().min(COLUMNS);
    let step = (LEFT + PANEL.0 + RIGHT, ABOVE + PANEL.1 + BELOW);
    let key = key(runs);
    let top = key.height() + 26.0;
    let rows = rounds.len().div_ceil(columns) as f64;
    let width = (columns as f64 * step.0).max(420.0);
    let mut canvas = Canvas::new(place, width, top + rows * step.1);
    key.draw(&mut canvas, (LEFT, 0.0));
    describe(&mut canvas, (LEFT, top - 12.0));
    for (i, round) in rounds.iter().enumerate() {
        let (column, row) = ((i % columns) as f64, (i / columns) as f64);
        let corner = (column * step.0 + LEFT, top + row * step.1 + ABOVE);
        panel(&mut canvas, corner, *round, runs);
    }
    let title = "Training".to_owned();
    let left_out = match last as usize - rounds.len() {
        0 => String::new(),
        n => format!(" Rounds 2 to {} are left out.", n + 1),
    };
    let caption = format!(
        "Loss by epoch, with the reason why each round stopped: patience, no better validation loss for long, or over a whole cycle of the learning rate; budget, \
         all steps made; diverged, the loss was no longer a number. Round 1 is maximum likelihood; losses of different \
         rounds and methods are not comparable. What is above a panel is drawn at its upper edge.{left_out}"
    );
    let svg = canvas.finish(&title, &caption);
    Some(Figure { kind: Kind::Training, title, caption, svg })
}

fn describe(canvas: &mut Canvas, (x, y): (f64, f64)) {
    let label = Label::new(12.0, Ink::Muted, Anchor::Start);
    canvas.line((x, y), (x + 22.0, y), Stroke::new(Ink::Muted, 2.0));
    canvas.text((x + 28.0, y + 4.0), "validation", label);
    canvas.line((x + 116.0, y), (x + 138.0, y), Stroke::new(Ink::Muted, 1.2).dashed());
    canvas.text((x + 144.0, y + 4.0), "training", label);
}

fn of_round(run: &RunData, round: u32) -> impl Iterator<Item = &EpochRecord> {
    run.training.iter().filter(move |epoch| epoch.round == round)
}

/// Members that were trained in a round.
fn members(run: &RunData, round: u32) -> u32 {
    of_round(run, round).map(|epoch| epoch.member + 1).max().unwrap_or(0)
}

fn panel(canvas: &mut Canvas, corner: (f64, f64), round: u32, runs: &Comparison) {
    let epochs = || runs.runs().flat_map(|run| of_round(run, round));
    let losses = epochs().flat_map(|epoch| [epoch.train_loss, epoch.validation_loss]).flatten();
    let last = epochs().map(|epoch| epoch.epoch).max().unwrap_or(1);
    let frame = Frame {
        corner,
        size: PANEL,
        x: Scale::new(1.0, f64::from(last.max(2))),
        y: typical(losses.collect()),
    };
    let trained = runs.runs().filter(|run| of_round(run, round).next().is_some());
    let mut reasons: Vec<&str> = trained
        .map(|run| match run.summary.rounds.get(round as usize - 1) {
            Some(report) => report.stop_reason.name(),
            None => "under way",
        })
        .collect();
    reasons.sort_unstable();
    reasons.dedup();
    frame.title(canvas, &format!("round {round}: {}", reasons.join(", ")));
    frame.y_axis(canvas, "");
    let label = Label::new(11.0, Ink::Muted, Anchor::End);
    canvas.text((frame.right(), frame.bottom() + 14.0), &format!("{last} epochs"), label);
    for (i, cohort) in runs.cohorts.iter().enumerate() {
        for run in &cohort.runs {
            for member in 0..members(run, round) {
                curves(canvas, &frame, Ink::Series(i), run, (round, member));
            }
        }
    }
}

/// All of the losses but for the largest few per cent, which the first steps of a round often are.
fn typical(mut losses: Vec<f64>) -> Scale {
    losses.retain(|loss| loss.is_finite());
    losses.sort_unstable_by(f64::total_cmp);
    losses.truncate((losses.len() * 97).div_ceil(100));
    Scale::around(losses)
}

fn curves(
    canvas: &mut Canvas,
    frame: &Frame,
    ink: Ink,
    run: &RunData,
    (round, member): (u32, u32),
) {
    let all = || of_round(run, round).filter(move |epoch| epoch.member == member);
    // What is above the typical losses is drawn at the upper edge.
    let place = |epoch: &EpochRecord, loss: Option<f64>| {
        let (x, y) = frame.place(f64::from(epoch.epoch), loss?);
        Some((x, y.clamp(frame.corner.1, frame.bottom())))
    };
    // A point for each pixel is enough.
    let thin = all().count().div_ceil(PANEL.0 as usize).max(1);
    let epochs = || all().step_by(thin);
    let train: Vec<_> = epochs().filter_map(|e| place(e, e.train_loss)).collect();
    let held: Vec<_> = epochs().filter_map(|e| place(e, e.validation_loss)).collect();
    canvas.lines([train.as_slice()], Stroke::new(ink, 1.0).dashed());
    canvas.lines([held.as_slice()], Stroke::new(ink, 1.8));
    let losses = all().filter_map(|e| Some((e, e.validation_loss?)));
    let best = losses.min_by(|a, b| a.1.total_cmp(&b.1));
    if let Some((epoch, loss)) = best {
        let at = place(epoch, Some(loss)).unwrap_or(frame.corner);
        let seed = run.summary.seed;
        let of = match members(run, round) {
            1 => String::new(),
            members => format!(", member {} of {members}", member + 1),
        };
        let (best, loss) = (epoch.epoch, number(loss));
        let words = format!("seed {seed}{of}, best epoch {best}: validation loss {loss}");
        canvas.telling(&words, |canvas| canvas.dot(at, 3.2, ink));
    }
}
