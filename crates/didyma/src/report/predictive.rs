//! Does the posterior reproduce the observation? Simulations at its samples, summary by summary.

use super::axes::{Frame, Scale, number};
use super::canvas::{Anchor, Canvas, Ink, Label, Place, Stroke};
use super::compare::Comparison;
use super::data::RunData;
use super::figure::{Figure, Kind};
use super::legend;

/// Summaries that are drawn, at most: those furthest from the simulations.
const MOST: usize = 30;
const LEFT: f64 = 190.0;
const WIDTH: f64 = 480.0;
const RIGHT: f64 = 60.0;
const ABOVE: f64 = 12.0;
const BELOW: f64 = 44.0;
/// Height of one group's bar.
const BAR: f64 = 12.0;

/// What simulations say of one summary.
pub struct Check {
    /// Its name.
    pub name: String,
    /// The observation.
    pub observed: f64,
    /// Quantiles of the simulations: 2.5, 16, 50, 84 and 97.5 %.
    pub quantiles: [f64; 5],
    /// The smaller share of simulations on one side of the observation, doubled: small where they disagree.
    pub tail: f64,
}

/// One check for each summary; none where nothing could be simulated.
pub fn checks(run: &RunData) -> Vec<Check> {
    let columns = run.predictive.iter().flatten();
    columns
        .zip(&run.observation)
        .filter(|(column, _)| !column.is_empty())
        .map(|(column, (name, observed))| {
            let mut sorted = column.clone();
            sorted.sort_unstable_by(f64::total_cmp);
            let n = sorted.len();
            let at = |q: f64| sorted[((n - 1) as f64 * q).round() as usize];
            // Those that equal the observation, as counts may, are on both sides.
            let below = sorted.partition_point(|x| x < observed);
            let above = n - sorted.partition_point(|x| x <= observed);
            let least = (n - below).min(n - above) as f64 / n as f64;
            Check {
                name: name.clone(),
                observed: *observed,
                quantiles: [0.025, 0.16, 0.5, 0.84, 0.975].map(at),
                tail: (2.0 * least).min(1.0),
            }
        })
        .collect()
}

impl Check {
    /// A value in units of the simulations' spread, from the observation.
    fn scaled(&self, value: f64) -> f64 {
        let spread = 0.5 * (self.quantiles[3] - self.quantiles[1]);
        (value - self.observed) / if spread > 0.0 { spread } else { self.observed.abs().max(1.0) }
    }
}

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let all: Vec<Vec<Check>> = runs.groups.iter().map(|group| checks(&group.runs[0])).collect();
    let summaries = all.iter().map(Vec::len).max().filter(|&n| n > 0)?;
    let mut shown: Vec<usize> = (0..summaries).collect();
    if summaries > MOST {
        shown.sort_by(|&a, &b| all[0][a].tail.total_cmp(&all[0][b].tail));
        shown.truncate(MOST);
        shown.sort_unstable();
    }
    let row = BAR * all.len() as f64 + 12.0;
    let top = ABOVE + legend::height(runs);
    let height = top + row * shown.len() as f64 + BELOW;
    let mut canvas = Canvas::new(place, LEFT + WIDTH + RIGHT, height);
    legend::draw(&mut canvas, runs, (LEFT, 4.0));
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
        canvas.text(at, &shortened(&runs.first().observation[summary].0), label);
    }
    let x = frame.across(0.0);
    canvas.line((x, top), (x, frame.bottom()), Stroke::new(Ink::Truth, 1.6));
    Some(finished(canvas, summaries - shown.len()))
}

fn finished(canvas: Canvas, left_out: usize) -> Figure {
    let title = "Posterior predictive check".to_owned();
    let others = match left_out {
        0 => String::new(),
        n => format!(" The {n} summaries that agree best are left out."),
    };
    let caption = format!(
        "Simulations at 400 samples of the posterior: 68 and 95 % of them (thick and thin) around the observation (red). \
         A bar that misses the line is a summary that the posterior does not reproduce.{others}"
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
        "{}: observed {}, simulated {} ({} to {}), two-sided share {:.2}",
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
    });
}

/// A name that fits beside the figure.
fn shortened(name: &str) -> String {
    match name.chars().count() > 28 {
        true => name.chars().take(27).chain(['…']).collect(),
        false => name.to_owned(),
    }
}
