//! The page of `didyma check`: what the prior gives, and where the observation lies in it.

use super::page::{document, list};
use crate::problem::check::{SimulatorCheck, SummaryCheck};
use didyma_plot::{
    Canvas, Frame, Histogram, Ink, Place, Scale, Stroke, escaped, number, shortened, view,
};
use std::fmt::Write;

/// Panels beside each other.
const ACROSS: usize = 3;
const PANEL: (f64, f64) = (190.0, 90.0);
const GAP: (f64, f64) = (34.0, 62.0);
/// Summaries that are drawn, at most: those whose observation is furthest out.
const MOST: usize = 30;

/// The page as HTML.
pub fn check_page(check: &SimulatorCheck) -> String {
    let SimulatorCheck { name, parameters, simulations, seconds, .. } = check;
    let facts = [
        (parameters.len().to_string(), "parameters"),
        (check.summaries.len().to_string(), "summaries"),
        (simulations.to_string(), "simulations"),
        (check.failed().to_string(), "failed"),
        (format!("{:.3} s", seconds * check.workers as f64 / *simulations as f64), "each"),
    ];
    let notes = check.notes();
    let mut main = match notes.is_empty() {
        true => "<p class=\"good\">Nothing stands against a run.</p>\n".to_owned(),
        false => list("Read this first", &notes),
    };
    write!(main, "{}{}{}", figure(check), table(check), failures(check))
        .expect("a string takes all");
    let title = format!("{name}: a check of the simulator");
    document(&title, &["check"], &facts, &main)
}

fn figure(check: &SimulatorCheck) -> String {
    let mut shown: Vec<&SummaryCheck> =
        check.summaries.iter().filter(|summary| !summary.values.is_empty()).collect();
    if shown.is_empty() {
        return String::new();
    }
    if shown.len() > MOST {
        shown.sort_by(|a, b| a.tail.total_cmp(&b.tail));
        shown.truncate(MOST);
    }
    let (columns, rows) = (shown.len().min(ACROSS), shown.len().div_ceil(ACROSS));
    let width = GAP.0 + columns as f64 * (PANEL.0 + GAP.0);
    let mut canvas = Canvas::new(Place::Page, width, 30.0 + rows as f64 * (PANEL.1 + GAP.1));
    for (i, summary) in shown.iter().enumerate() {
        let (column, row) = ((i % ACROSS) as f64, (i / ACROSS) as f64);
        panel(
            &mut canvas,
            (GAP.0 + column * (PANEL.0 + GAP.0), 30.0 + row * (PANEL.1 + GAP.1)),
            summary,
        );
    }
    let title = "Prior predictive check";
    let caption = "Simulations at draws of the prior, summary by summary, and the observation (red). One that lies beyond \
                   all simulations cannot be explained by any parameters that the prior allows, as far as these tell.";
    format!(
        "<section>\n<h2>{title}</h2>\n<figure id=\"fig-check\">\n<div class=\"scroll\" tabindex=\"0\">{}</div>\n\
         <figcaption class=\"muted\">{caption}</figcaption>\n</figure>\n</section>\n",
        canvas.finish(title, caption)
    )
}

fn panel(canvas: &mut Canvas, corner: (f64, f64), summary: &SummaryCheck) {
    let SummaryCheck { name, observed, values, below, .. } = summary;
    let range = view([&**values], Some(*observed), (f64::NEG_INFINITY, f64::INFINITY));
    let bars = Histogram::new(values, range, Histogram::bars(values.len()));
    let y = Scale::new(0.0, bars.highest().max(1e-300) * 1.08);
    let frame = Frame { corner, size: PANEL, x: Scale::new(range.0, range.1), y };
    let words = format!(
        "{name}: observed {}, above {:.0} % of simulations",
        number(*observed),
        100.0 * below
    );
    canvas.telling(&words, |canvas| {
        for (left, right, height) in bars.iter().filter(|(.., height)| *height > 0.0) {
            let (at, size) =
                (frame.place(left, height), (frame.across(right) - frame.across(left)).max(1.0));
            canvas.rectangle(at, (size, frame.bottom() - at.1), Ink::Series(0), 0.6);
        }
        let x = frame.across(observed.clamp(range.0, range.1));
        canvas.line((x, corner.1), (x, frame.bottom()), Stroke::new(Ink::Truth, 1.6));
    });
    frame.border(canvas);
    frame.title(canvas, &shortened(name, 24));
    frame.x_axis(canvas, "");
}

fn table(check: &SimulatorCheck) -> String {
    let mut rows = String::new();
    for s in check.summaries.iter().filter(|summary| !summary.values.is_empty()) {
        writeln!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{:.0} %</td><td>{:.3}</td></tr>",
            escaped(&s.name),
            number(s.observed),
            number(s.range.0),
            number(s.range.1),
            100.0 * s.below,
            s.tail
        )
        .expect("a string takes all");
    }
    format!(
        "<section>\n<h2>Summaries</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Summaries\">\
         <table><thead><tr><th scope=\"col\">summary</th><th scope=\"col\">observed</th><th scope=\"col\">least</th>\
         <th scope=\"col\">greatest</th><th scope=\"col\">below</th><th scope=\"col\">two-sided p</th></tr></thead>\n\
         <tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn failures(check: &SimulatorCheck) -> String {
    let Some(first) = &check.first_failure else { return String::new() };
    let reasons: String = check
        .failures
        .iter()
        .map(|(reason, count)| format!("<li>{count} times: {}</li>\n", escaped(reason)))
        .collect();
    format!(
        "<section>\n<h2>Failures</h2>\n<ul>\n{reasons}</ul>\n<pre tabindex=\"0\"><code>{}</code></pre>\n</section>\n",
        escaped(first)
    )
}
