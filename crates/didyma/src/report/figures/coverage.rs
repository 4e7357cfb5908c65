//! How often regions of the posterior have the true parameters inside, against how often it says they do.

use super::key::key;
use super::places::{
    Calibrated, asked, band, by_members, calibrated, distribution, draw_band, p_words,
};
use super::{Figure, Kind};
use crate::evaluation::calibration::{Bands, RankCheck};
use crate::report::data::Comparison;
use didyma_plot::{Anchor, Canvas, Frame, Ink, Label, Place, Scale, Stroke, number};

const SIDE: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 26.0;
const ABOVE: f64 = 28.0;
const BELOW: f64 = 46.0;

/// A way to lay regions into a posterior.
struct Regions {
    title: &'static str,
    rank: for<'a> fn(&Calibrated<'a>) -> &'a RankCheck,
    /// True where places count from the outermost region inwards.
    inwards: bool,
    /// A curve above the diagonal, and one below it, where a side means anything by itself.
    sides: Option<[&'static str; 2]>,
}

const REGIONS: [Regions; 2] = [
    Regions {
        title: "Highest-density regions",
        rank: |one| &one.found.density,
        inwards: true,
        sides: Some(["too wide", "too narrow"]),
    },
    Regions {
        title: "Random balls (TARP)",
        rank: |one| &one.found.distance,
        inwards: false,
        sides: None,
    },
];

impl Regions {
    /// The levels of the smallest regions that have the true parameters inside.
    fn levels(&self, one: &Calibrated) -> Vec<f64> {
        let level = |place: &f64| if self.inwards { 1.0 - place } else { *place };
        (self.rank)(one).places.iter().map(level).collect()
    }
}

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let all = calibrated(runs)?;
    let band = band(&all)?;
    let key = key(runs);
    let (step, top) = (LEFT + SIDE + RIGHT, key.height());
    let mut canvas = Canvas::new(place, 2.0 * step, top + ABOVE + SIDE + BELOW);
    key.draw(&mut canvas, (LEFT, 0.0));
    for (i, regions) in REGIONS.iter().enumerate() {
        let corner = (i as f64 * step + LEFT, top + ABOVE);
        panel(&mut canvas, corner, regions, (&all, &band));
    }
    let title = "Coverage".to_owned();
    let caption = format!(
        "How often regions of the posterior have the true parameters inside, over {}, against how often it says so: exact \
         posteriors follow the diagonal, and stay in the grey band in 95 of 100 cases. Left: a curve above the diagonal is a \
         posterior that is too wide, below it one that is too narrow. Right: a curve that is flat in the middle is too narrow, \
         steep in the middle too wide, and off to one side in the wrong place.{}",
        asked(&all, runs),
        by_members(&all)
    );
    let told: Vec<String> = all.iter().map(told).collect();
    let svg = canvas.finish(&title, &told.join("; "));
    Some(Figure { kind: Kind::Coverage, title, caption, svg })
}

/// The p-values in words, for those who cannot see the curves.
fn told(one: &Calibrated) -> String {
    let words = |regions: &Regions| format!("{}: {}", regions.title, p_words((regions.rank)(one)));
    let words: Vec<String> = REGIONS.iter().map(words).collect();
    format!("{}, {}", one.name, words.join(", "))
}

fn panel(
    canvas: &mut Canvas,
    corner: (f64, f64),
    regions: &Regions,
    (all, band): (&[Calibrated], &Bands),
) {
    let unit = Scale::new(0.0, 1.0);
    let frame = Frame { corner, size: (SIDE, SIDE), x: unit, y: unit };
    let p = match all {
        [one] => format!(", {}", p_words((regions.rank)(one))),
        _ => String::new(),
    };
    frame.title(canvas, &format!("{}{p}", regions.title));
    frame.y_axis(canvas, "share inside, in truth");
    draw_band(canvas, &frame, band, |_, share| share);
    frame.x_axis(canvas, "share inside, by the posterior");
    let diagonal = [frame.place(0.0, 0.0), frame.place(1.0, 1.0)];
    canvas.lines([diagonal.as_slice()], Stroke::new(Ink::Reference, 1.2).dashed());
    for one in all {
        curve(canvas, &frame, one, (regions, band));
    }
    frame.border(canvas);
    if let Some([above, below]) = regions.sides {
        let label = |anchor| Label::new(12.0, Ink::Muted, anchor);
        canvas.text((corner.0 + 12.0, corner.1 + 22.0), above, label(Anchor::Start));
        canvas.text((frame.right() - 12.0, frame.bottom() - 14.0), below, label(Anchor::End));
    }
}

fn curve(
    canvas: &mut Canvas,
    frame: &Frame,
    one: &Calibrated,
    (regions, band): (&Regions, &Bands),
) {
    let points = distribution(&regions.levels(one), band);
    let placed: Vec<_> = points.iter().map(|&(at, share)| frame.place(at, share)).collect();
    let rank = (regions.rank)(one);
    let off = number(rank.deviation);
    let words = format!("{}: {}, at most {off} off the diagonal", one.name, p_words(rank));
    let stroke = Stroke::new(Ink::Series(one.number), 2.0);
    canvas.telling(&words, |canvas| canvas.lines([placed.as_slice()], stroke));
}
