//! The posterior: every chosen parameter alone, and every two of them together.

use super::{Figure, Kind};
use crate::math::mean_and_deviation;
use crate::report::data::{Columns, Comparison, RunData};
use didyma_plot::{
    Anchor, Canvas, Density, Frame, Histogram, Ink, Label, Place, Range, Scale, Stroke, number,
    number_to, shortened, view,
};

/// Parameters that are drawn, at most.
const MOST: usize = 6;
/// Shares of the posterior inside of the outlines.
const SHARES: [f64; 2] = [0.95, 0.68];
/// Room for the numbers and names at the left and below.
pub(super) const LEFT: f64 = 64.0;
pub(super) const BELOW: f64 = 44.0;
pub(super) const ABOVE: f64 = 16.0;
pub(super) const GAP: f64 = 8.0;
/// Rows of a legend.
const LINE: f64 = 20.0;

/// What is drawn as one: the samples, and how.
struct Layer {
    name: String,
    samples: Columns,
    ink: Ink,
    /// Whether regions are filled, or only outlined.
    filled: bool,
}

/// A side of a cell: the parameter along it, how much of it is seen, and its true value.
struct Side {
    parameter: usize,
    range: Range,
    truth: Option<f64>,
}

impl Side {
    /// The true value, or the end of what is seen where it lies beyond.
    fn seen_truth(&self) -> Option<f64> {
        self.truth.map(|truth| truth.clamp(self.range.0, self.range.1))
    }

    /// The true value in words.
    fn truth_told(&self) -> String {
        let truth = self.truth.unwrap_or(f64::NAN);
        let width = self.range.1 - self.range.0;
        let beyond = if self.seen_truth() == self.truth { "" } else { ", beyond the edge" };
        format!("{}{beyond}", number_to(truth, width / 1000.0))
    }
}

/// The parameters that are drawn: those whose spread fell most from round 1 on, in their own order.
pub(super) fn chosen(runs: &Comparison) -> Vec<usize> {
    let mut order: Vec<usize> = (0..runs.first().dim()).collect();
    let sampled = runs.runs().find_map(|run| Some((run.samples.as_ref()?, run.proposals.first()?)));
    if let Some((samples, prior)) = sampled.filter(|_| order.len() > MOST) {
        let narrowed =
            |i: usize| mean_and_deviation(&samples[i]).1 / mean_and_deviation(&prior[i]).1;
        order.sort_by(|&a, &b| narrowed(a).total_cmp(&narrowed(b)));
    }
    order.truncate(MOST);
    order.sort_unstable();
    order
}

/// The side of a cell, by how many parameters are drawn.
pub(super) fn cell(shown: usize) -> f64 {
    match shown {
        1 => 420.0,
        2 => 300.0,
        count => 720.0 / count as f64,
    }
}

pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let layers = layers(runs);
    if layers.iter().all(|layer| layer.ink == Ink::Reference) {
        return None;
    }
    let (first, shown) = (runs.first(), chosen(runs));
    let cell = cell(shown.len());
    let step = cell + GAP;
    let side = shown.len() as f64 * step;
    // Three cells and more leave room for the legend above the diagonal.
    let legend = if shown.len() < 3 { LINE * (layers.len() + 1) as f64 } else { 0.0 };
    let mut canvas = Canvas::new(place, LEFT + side, ABOVE + legend + side + BELOW);
    let views: Vec<Range> = shown
        .iter()
        .map(|&i| {
            let truth = first.truth.as_ref().map(|truth| truth[i]);
            view(layers.iter().map(|layer| &*layer.samples[i]), truth, first.support(i))
        })
        .collect();
    for (row, column) in (0..shown.len()).flat_map(|r| (0..=r).map(move |c| (r, c))) {
        let corner = (LEFT + column as f64 * step, ABOVE + legend + row as f64 * step);
        let [across, up] = [column, row].map(|k| {
            let truth = first.truth.as_ref().map(|truth| truth[shown[k]]);
            Side { parameter: shown[k], range: views[k], truth }
        });
        let (x, y) =
            (Scale::new(across.range.0, across.range.1), Scale::new(up.range.0, up.range.1));
        let frame = Frame { corner, size: (cell, cell), x, y };
        if row == column {
            marginal(&mut canvas, frame, &layers, &across)
        } else {
            together(&mut canvas, &frame, &layers, (&across, &up))
        }
        frame.border(&mut canvas);
        let names = (first.label(shown[column]), first.label(shown[row]));
        edges(&mut canvas, &frame, (row, column, shown.len()), names);
    }
    let corner =
        if legend > 0.0 { (LEFT, ABOVE + 4.0) } else { (LEFT + 2.0 * step + 12.0, ABOVE + 14.0) };
    describe(&mut canvas, corner, &layers, first.truth.is_some());
    let told: Vec<String> = shown.iter().map(|&i| told(first, &layers[0], i)).collect();
    Some(finished(canvas, &told, first.dim() - shown.len()))
}

/// A parameter in words, for those who cannot see it.
fn told(run: &RunData, layer: &Layer, i: usize) -> String {
    let (mean, sd) = mean_and_deviation(&layer.samples[i]);
    let [mean, sd] = [mean, sd].map(|value| number_to(value, sd / 20.0));
    format!("{} {mean} ± {sd}", run.label(i))
}

fn finished(canvas: Canvas, told: &[String], left_out: usize) -> Figure {
    let shown = told.len();
    let others = match left_out {
        0 => String::new(),
        n => format!(
            " The {shown} parameters that narrowed most are drawn; {n} others are in the table."
        ),
    };
    let title = "Posterior".to_owned();
    let caption = format!(
        "Each parameter alone, and in pairs the regions that hold 68 and 95 % of the posterior.{others}"
    );
    let svg = canvas.finish(&title, &told.join(", "));
    Figure { kind: Kind::Pairs, title, caption, svg }
}

fn layers(runs: &Comparison) -> Vec<Layer> {
    let single = runs.cohorts.len() == 1;
    let reference = runs.first().reference.clone().map(|samples| Layer {
        name: "reference".to_owned(),
        samples,
        ink: Ink::Reference,
        filled: false,
    });
    let cohorts = runs.cohorts.iter().enumerate().filter_map(|(i, cohort)| {
        let name = if single { "posterior".to_owned() } else { cohort.name.clone() };
        let samples = cohort.samples()?;
        Some(Layer { name, samples, ink: Ink::Series(i), filled: i == 0 })
    });
    cohorts.chain(reference).collect()
}

/// One parameter: bars for what is filled, outlines for the rest.
fn marginal(canvas: &mut Canvas, frame: Frame, layers: &[Layer], side: &Side) {
    let Side { parameter, range, .. } = *side;
    // The same bars for all, or heights could not be compared.
    let most = layers.iter().map(|layer| layer.samples[parameter].len()).max().unwrap_or(0);
    let histogram =
        |layer: &Layer| Histogram::new(&layer.samples[parameter], range, Histogram::bars(most));
    let histograms: Vec<Histogram> = layers.iter().map(histogram).collect();
    let highest = histograms.iter().map(Histogram::highest).fold(0.0, f64::max);
    let frame = Frame { y: Scale::new(0.0, 1.08 * highest), ..frame };
    for (layer, histogram) in layers.iter().zip(&histograms) {
        for (left, right, height) in histogram.iter().filter(|bar| layer.filled && bar.2 > 0.0) {
            let corner = frame.place(left, height);
            let size = (frame.across(right) - corner.0, frame.bottom() - corner.1);
            let [from, to] = [left, right].map(|end| number_to(end, right - left));
            let words = format!("{from} to {to}: density {}", number(height));
            canvas.telling(&words, |canvas| canvas.rectangle(corner, size, layer.ink, 0.55));
        }
        if !layer.filled {
            let steps: Vec<_> = histogram
                .iter()
                .flat_map(|(left, right, height)| {
                    [frame.place(left, height), frame.place(right, height)]
                })
                .collect();
            canvas.lines([steps.as_slice()], stroke(layer));
        }
    }
    if let Some(truth) = side.seen_truth() {
        let x = frame.across(truth);
        canvas.telling(&format!("true value {}", side.truth_told()), |canvas| {
            canvas.line((x, frame.corner.1), (x, frame.bottom()), Stroke::new(Ink::Truth, 1.6));
        });
    }
}

fn stroke(layer: &Layer) -> Stroke {
    let stroke = Stroke::new(layer.ink, 1.6);
    if layer.ink == Ink::Reference { stroke.dashed() } else { stroke }
}

/// Two parameters: the regions that hold most.
fn together(canvas: &mut Canvas, frame: &Frame, layers: &[Layer], (x, y): (&Side, &Side)) {
    for layer in layers {
        let (xs, ys) = (&layer.samples[x.parameter], &layer.samples[y.parameter]);
        let density = Density::new(xs, ys, x.range, y.range);
        for (share, opacity) in SHARES.into_iter().zip([0.22, 0.4]) {
            let outlines = density.outlines(density.level(share));
            let placed: Vec<Vec<_>> = outlines
                .iter()
                .map(|ring| {
                    let close = ring.iter().chain(ring.first());
                    close.map(|&(x, y)| frame.place(x, y)).collect()
                })
                .collect();
            let words = format!("{}: {:.0} % lies inside", layer.name, 100.0 * share);
            canvas.telling(&words, |canvas| {
                if layer.filled {
                    canvas.areas(placed.iter().map(Vec::as_slice), layer.ink, opacity);
                }
                let width = if layer.filled { 1.0 } else { 1.4 };
                canvas.lines(placed.iter().map(Vec::as_slice), Stroke { width, ..stroke(layer) });
            });
        }
    }
    if let (Some(a), Some(b)) = (x.seen_truth(), y.seen_truth()) {
        let words = format!("true values {}; {}", x.truth_told(), y.truth_told());
        let (x, y) = frame.place(a, b);
        canvas.telling(&words, |canvas| {
            canvas.line((x - 6.0, y), (x + 6.0, y), Stroke::new(Ink::Truth, 2.0));
            canvas.line((x, y - 6.0), (x, y + 6.0), Stroke::new(Ink::Truth, 2.0));
        });
    }
}

/// Numbers and names, at the outer cells only.
pub(super) fn edges(
    canvas: &mut Canvas,
    frame: &Frame,
    (row, column, count): (usize, usize, usize),
    names: (&str, &str),
) {
    if row + 1 == count {
        frame.x_axis(canvas, "");
        frame.x_name(canvas, &shortened(names.0, 24), 34.0);
    }
    if column == 0 && row > 0 {
        for (tick, name) in frame.y.named_ticks((frame.size.1 / 44.0).max(2.0) as usize) {
            let label = Label::new(11.0, Ink::Muted, Anchor::End);
            canvas.text((frame.corner.0 - 6.0, frame.up(tick) + 4.0), &name, label);
        }
        let at = (frame.corner.0 - 48.0, frame.corner.1 + 0.5 * frame.size.1);
        canvas.text(
            at,
            &shortened(names.1, 24),
            Label::new(12.0, Ink::Text, Anchor::Middle).upwards(),
        );
    }
}

/// What the colours mean.
fn describe(canvas: &mut Canvas, (x, y): (f64, f64), layers: &[Layer], truth: bool) {
    let mut entries: Vec<(&str, Stroke)> =
        layers.iter().map(|layer| (&*layer.name, Stroke { width: 3.0, ..stroke(layer) })).collect();
    if truth {
        entries.push(("true parameters", Stroke::new(Ink::Truth, 3.0)));
    }
    for (i, (name, stroke)) in entries.into_iter().enumerate() {
        let y = y + LINE * i as f64;
        canvas.line((x, y), (x + 22.0, y), stroke);
        canvas.text(
            (x + 30.0, y + 4.0),
            &shortened(name, 40),
            Label::new(12.0, Ink::Text, Anchor::Start),
        );
    }
}
