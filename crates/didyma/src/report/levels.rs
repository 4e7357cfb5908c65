//! The levels of an estimator in one picture: second moments and means against the level.

use crate::diagnostics::{LevelMoments, LevelReport, Slope};
use plotters::coord::Shift;
use plotters::prelude::*;
use std::error::Error;
use std::ops::Range;

const SIZE: (u32, u32) = (960, 460);
/// Colours that differ for the colour-blind too (Okabe and Ito, 2008).
const LOSS: RGBColor = RGBColor(0, 114, 178);
const GRADIENT: RGBColor = RGBColor(213, 94, 0);
const GREY: RGBColor = RGBColor(110, 110, 110);
const TITLE: (&str, i32) = ("sans-serif", 18);
const LABEL: (&str, i32) = ("sans-serif", 14);

/// A line of one quantity: its values and standard errors by level, and what was fitted to it.
struct Line {
    name: &'static str,
    colour: RGBColor,
    points: Vec<(f64, f64, f64)>,
    fit: Slope,
}

impl Line {
    fn new(
        (name, colour, fit): (&'static str, RGBColor, Slope),
        report: &LevelReport,
        of: fn(&LevelMoments) -> (f64, f64),
    ) -> Self {
        let above = report.levels.iter().filter(|l| l.level > 0);
        let points = above.map(|l| (f64::from(l.level), of(l).0.abs(), of(l).1)).collect();
        Self { name, colour, points, fit }
    }

    fn label(&self) -> String {
        format!("{}, slope {:.2} ± {:.2}", self.name, self.fit.value, self.fit.error)
    }

    /// log₂ of value, and of value ± one standard error.
    fn bars(&self) -> impl Iterator<Item = (f64, f64, f64, f64)> {
        self.points.iter().filter(|p| p.1 > 0.0).map(|&(level, value, error)| {
            let low = (value - error).max(value / 16.0);
            (level, value.log2(), low.log2(), (value + error).log2())
        })
    }
}

/// An SVG image of the second moments (left) and of the means (right) of the levels, on axes of log₂, with the
/// fitted slopes.
pub fn level_plot(report: &LevelReport, title: &str) -> Result<String, Box<dyn Error>> {
    let [loss, gradient, mean] = report.lines;
    let moments = [
        Line::new(("E |Δψ|²", LOSS, loss), report, |l| {
            (l.second_moment_loss, l.second_moment_loss_se)
        }),
        Line::new(("E ‖Δρ‖²", GRADIENT, gradient), report, |l| {
            (l.second_moment_gradient, l.second_moment_gradient_se)
        }),
    ];
    let means = [Line::new(("|E Δψ|", LOSS, mean), report, |l| (l.mean_loss, l.mean_loss_se))];
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE).map_err(plain)?;
        let root = root.titled(title, TITLE).map_err(plain)?;
        let (left, right) = root.split_horizontally(SIZE.0 / 2);
        panel(&left, "second moments", &moments)?;
        panel(&right, "means", &means)?;
        root.present().map_err(plain)?;
    }
    Ok(svg)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

fn panel(area: &Area, caption: &str, lines: &[Line]) -> Result<(), Box<dyn Error>> {
    let (levels, values) = ranges(lines);
    let mut chart = ChartBuilder::on(area)
        .caption(caption, LABEL)
        .margin(12)
        .x_label_area_size(40)
        .y_label_area_size(54)
        .build_cartesian_2d(levels.clone(), values)
        .map_err(plain)?;
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(GREY.mix(0.2))
        .x_desc("level")
        .y_desc("log₂")
        .x_labels((levels.end - levels.start) as usize + 1)
        .x_label_formatter(&|level| format!("{level:.0}"))
        .y_label_formatter(&|value| format!("{value:.0}"))
        .label_style(LABEL)
        .draw()
        .map_err(plain)?;
    for line in lines {
        let bars: Vec<_> = line.bars().collect();
        let (colour, fit) = (line.colour, line.fit);
        let ends = [levels.start + 0.3, levels.end - 0.3];
        let fitted = ends.map(|level| (level, fit.intercept + fit.value * level));
        chart.draw_series(LineSeries::new(fitted, colour.mix(0.5))).map_err(plain)?;
        let marks =
            bars.iter().map(|&(level, value, ..)| Circle::new((level, value), 4, colour.filled()));
        chart
            .draw_series(marks)
            .map_err(plain)?
            .label(line.label())
            .legend(move |(x, y)| Circle::new((x + 8, y), 4, colour.filled()));
        let bar = |&(level, _, low, high): &(f64, f64, f64, f64)| {
            PathElement::new([(level, low), (level, high)], colour.stroke_width(2))
        };
        chart.draw_series(bars.iter().map(bar)).map_err(plain)?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::UpperRight)
        .background_style(WHITE.mix(0.8))
        .border_style(TRANSPARENT)
        .label_font(LABEL)
        .draw()
        .map_err(plain)?;
    Ok(())
}

/// Levels with room on both sides, and values from the smallest to above the largest.
fn ranges(lines: &[Line]) -> (Range<f64>, Range<f64>) {
    let bars = || lines.iter().flat_map(Line::bars);
    let last = bars().map(|b| b.0).fold(1.0, f64::max);
    let low = bars().map(|b| b.2).fold(f64::INFINITY, f64::min);
    let high = bars().map(|b| b.3).fold(f64::NEG_INFINITY, f64::max);
    match low.is_finite() && high.is_finite() {
        true => (0.5..last + 0.5, low.floor() - 0.5..high.ceil() + 2.5),
        false => (0.5..last + 0.5, 0.0..1.0),
    }
}

/// The error of the drawing library, which borrows nothing.
fn plain<E: Error + Send + Sync>(error: DrawingAreaErrorKind<E>) -> Box<dyn Error> {
    error.to_string().into()
}
