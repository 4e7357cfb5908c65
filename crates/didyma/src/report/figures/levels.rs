//! The levels of an estimator in one picture: second moments and means against the level.

use super::{Figure, Kind};
use crate::evaluation::levels::{LevelMoments, LevelReport, Slope};
use crate::report::data::Comparison;
use didyma_plot::{Anchor, Canvas, Frame, Ink, Label, Place, Scale, Stroke, number};

const PANEL: (f64, f64) = (330.0, 250.0);
const LEFT: f64 = 62.0;
const RIGHT: f64 = 18.0;
const ABOVE: f64 = 64.0;
const BELOW: f64 = 44.0;

/// A line of one quantity: its values and standard errors by level, and what was fitted to it.
struct Line {
    name: &'static str,
    ink: Ink,
    points: Vec<(f64, f64, f64)>,
    fit: Slope,
}

impl Line {
    fn new(
        (name, ink, fit): (&'static str, Ink, Slope),
        report: &LevelReport,
        of: fn(&LevelMoments) -> (f64, f64),
    ) -> Self {
        let above = report.levels.iter().filter(|l| l.level > 0);
        let points = above.map(|l| (f64::from(l.level), of(l).0.abs(), of(l).1));
        Self { name, ink, points: points.filter(|p| p.1 > 0.0).collect(), fit }
    }

    fn label(&self) -> String {
        let slope = format!("{:.2}", self.fit.value).replace('-', "−");
        format!("{}, slope {slope} ± {:.2}", self.name, self.fit.error)
    }

    /// The value of the fitted line.
    fn fitted(&self, level: f64) -> f64 {
        (self.fit.intercept + self.fit.value * level).exp2()
    }
}

/// The figure of a run's levels; of a single run only, since several would hide each other.
pub(super) fn draw(runs: &Comparison, place: Place) -> Option<Figure> {
    let report = runs.first().levels.as_ref().filter(|_| runs.len() == 1)?;
    let title = "Levels of the estimator".to_owned();
    let caption = format!(
        "Second moments and means of the level differences on the trained flow, by inner samples of the pool and M₀ = {:.0}, \
         with fitted slopes. The gradient's moments fall like 2^(−r2 l) with r2 = {:.2} ± {:.2}. Above 1 the untruncated estimators have finite variance at \
         finite cost; the truncated ones do for any r2, and gain the more the larger it is.",
        report.levels[0].cost, report.r2, report.r2_se
    );
    let svg = level_figure(report, &title, place, false);
    Some(Figure { kind: Kind::Levels, title, caption, svg })
}

/// An SVG image of the second moments (left) and of the means (right) of the levels, on logarithmic axes, with the
/// fitted slopes.
pub fn level_plot(report: &LevelReport, title: &str) -> String {
    level_figure(report, title, Place::Alone, true)
}

fn level_figure(report: &LevelReport, title: &str, place: Place, headed: bool) -> String {
    let [loss, gradient, mean] = report.lines;
    let moments = [
        Line::new(("E |Δψ|²", Ink::Series(0), loss), report, |l| {
            (l.second_moment_loss, l.second_moment_loss_se)
        }),
        Line::new(("E ‖Δρ‖²", Ink::Series(1), gradient), report, |l| {
            (l.second_moment_gradient, l.second_moment_gradient_se)
        }),
    ];
    let means =
        [Line::new(("|E Δψ|", Ink::Series(0), mean), report, |l| (l.mean_loss, l.mean_loss_se))];
    let step = LEFT + PANEL.0 + RIGHT;
    let mut canvas = Canvas::new(place, 2.0 * step, ABOVE + PANEL.1 + BELOW);
    if headed {
        let label = Label::new(14.0, Ink::Text, Anchor::Start).bold();
        canvas.text((LEFT, 20.0), title, label);
    }
    panel(&mut canvas, LEFT, &moments);
    panel(&mut canvas, LEFT + step, &means);
    let told: Vec<String> = moments.iter().chain(&means).map(Line::label).collect();
    canvas.finish(title, &told.join("; "))
}

fn panel(canvas: &mut Canvas, left: f64, lines: &[Line]) {
    let points = || lines.iter().flat_map(|line| &line.points);
    let last = points().map(|p| p.0).fold(1.0, f64::max);
    let frame = Frame {
        corner: (left, ABOVE),
        size: PANEL,
        x: Scale::counted(1, last as u32),
        y: Scale::with_bars(true, points().map(|p| (p.1, p.2))),
    };
    frame.y_axis(canvas, "");
    frame.x_axis(canvas, "level");
    for (i, line) in lines.iter().enumerate() {
        let at = (left, ABOVE - 24.0 + 16.0 * i as f64);
        canvas.dot((at.0 + 4.0, at.1 - 4.0), 4.0, line.ink);
        canvas.text((at.0 + 14.0, at.1), &line.label(), Label::new(12.0, Ink::Text, Anchor::Start));
        let ends = [0.8, last + 0.2].map(|level| {
            let (x, y) = frame.place(level, line.fitted(level));
            (x, y.clamp(frame.corner.1, frame.bottom()))
        });
        if line.fit.value.is_finite() {
            canvas.lines([ends.as_slice()], Stroke::new(line.ink, 1.2).dashed());
        }
        for &(level, value, error) in &line.points {
            let words =
                format!("level {level}: {} {} ± {}", line.name, number(value), number(error));
            canvas.telling(&words, |canvas| {
                frame.bar(canvas, (level, value), error, line.ink);
                canvas.dot(frame.place(level, value), 4.0, line.ink);
            });
        }
    }
}
