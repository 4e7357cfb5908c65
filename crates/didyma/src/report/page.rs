//! One page about a run, or several of one problem: figures, tables and words, in a single file without any other.

use super::data::{Comparison, RunData};
use super::figures::{Figure, Kind};
use super::text::{advice, command, level_table, parameter_lines};
use super::verdict::{marked, verdicts};
use crate::error::Result;
use crate::run::{Findings, REPORT};
use crate::storage::files::write_inside;
use didyma_plot::{Place, escaped, number_to};
use std::fmt::Write;

const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");

/// The page as HTML.
pub fn page(runs: &Comparison) -> String {
    let figures: Vec<Figure> =
        Kind::ALL.iter().filter_map(|(_, kind)| kind.draw(runs, Place::Page)).collect();
    let names: Vec<&str> = figures.iter().map(|figure| figure.kind.name()).collect();
    let mut main = verdicts(runs) + &warnings(runs);
    for figure in &figures {
        main.push_str(&section(figure));
        if figure.kind == Kind::Pairs {
            main.push_str(&parameters(runs));
        }
    }
    main.extend(level_table(&runs.first().summary.rounds).filter(|_| runs.len() == 1));
    main.push_str(&made(runs));
    document(&title(runs), &names, &facts(runs), &main)
}

/// Writes the page about a single run into its directory.
pub fn write_page(findings: &Findings) -> Result<()> {
    let runs = Comparison::new(vec![RunData::of(findings, true)?])?;
    write_inside(&findings.run().file(REPORT), page(&runs).as_bytes())
}

/// A whole file: the title, the numbers that matter most, and what is below.
pub(super) fn document(
    title: &str,
    figures: &[&str],
    facts: &[(String, &str)],
    main: &str,
) -> String {
    let (version, figures, title) = (env!("CARGO_PKG_VERSION"), figures.join(" "), escaped(title));
    let facts: String = facts
        .iter()
        .map(|(value, name)| {
            let value = escaped(value);
            format!("<li><b>{value}</b><span class=\"muted\">{name}</span></li>\n")
        })
        .collect();
    format!(
        "<!doctype html>\n<html lang=\"en\" data-theme=\"light\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"generator\" content=\"didyma {version}\">\n<title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n\
         <body data-figures=\"{figures}\">\n<header>\n<div class=\"bar\"><p class=\"brand\">didyma</p>\
         <button id=\"theme\" type=\"button\" aria-pressed=\"false\">dark</button></div>\n<h1>{title}</h1>\n\
         <ul class=\"facts\">\n{facts}</ul>\n</header>\n<main>\n{main}</main>\n\
         <div id=\"tip\" role=\"tooltip\" hidden></div>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n"
    )
}

fn title(runs: &Comparison) -> String {
    let task = &runs.first().manifest.task;
    match (runs.cohorts.len(), runs.len()) {
        (1, 1) => format!("{task} by {}", runs.first().method()),
        (1, seeds) => format!("{task} by {}, {seeds} seeds", runs.first().method()),
        (cohorts, all) => format!("{task}: {cohorts} methods, {all} runs"),
    }
}

/// The numbers that matter most.
fn facts(runs: &Comparison) -> Vec<(String, &'static str)> {
    let run = runs.first();
    let mut facts = Vec::new();
    if runs.len() == 1 {
        let (done, all) = (run.summary.rounds.len(), run.manifest.config.rounds);
        let simulations: usize = run.simulated.iter().map(|(count, _)| count).sum();
        facts.push((format!("{done} / {all}"), "rounds"));
        facts.push((simulations.to_string(), "simulations"));
        facts.push((duration(run.summary.seconds_total), "wall-clock time"));
        let c2st = run.summary.rounds.last().and_then(|round| round.scores.c2st_words(3));
        facts.extend(c2st.map(|c2st| (c2st, "C2ST, 0.5 is perfect")));
        if let Some(apart) = run.summary.rounds.last().and_then(|round| round.disagreement) {
            facts.push((format!("{apart:.3}"), "members apart, 0 is none"));
        }
        facts.extend(run.summary.peak_rss_mb.map(|mb| (format!("{mb:.0} MB"), "memory")));
    } else {
        let cohorts = runs.cohorts.len();
        facts.push((cohorts.to_string(), if cohorts == 1 { "method" } else { "methods" }));
        facts.push((runs.len().to_string(), "runs"));
    }
    facts
}

fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 100.0 => format!("{s:.0} s"),
        s if s < 7200.0 => format!("{:.0} min", s / 60.0),
        s => format!("{:.1} h", s / 3600.0),
    }
}

fn warnings(runs: &Comparison) -> String {
    let told = |run: &RunData| -> Vec<String> {
        let whose = if runs.len() == 1 { String::new() } else { format!("{}: ", run.name) };
        advice(run).into_iter().map(|words| format!("{whose}{words}")).collect()
    };
    let words: Vec<String> = runs.runs().flat_map(told).collect();
    list("Read this, too", &words)
}

/// Warnings, if there are any.
pub(super) fn list(title: &str, words: &[String]) -> String {
    if words.is_empty() {
        return String::new();
    }
    let items: String = words.iter().map(|words| format!("<li>{}</li>\n", marked(words))).collect();
    format!(
        "<section class=\"warnings\" aria-label=\"Warnings\"><h2>{title}</h2>\n<ul>\n{items}</ul></section>\n"
    )
}

fn section(figure: &Figure) -> String {
    let Figure { kind, title, caption, svg } = figure;
    format!(
        "<section>\n<h2>{}</h2>\n<figure id=\"fig-{}\">\n<div class=\"scroll\" tabindex=\"0\">{svg}</div>\n\
         <figcaption class=\"muted\">{}</figcaption>\n</figure>\n</section>\n",
        escaped(title),
        kind.name(),
        escaped(caption)
    )
}

/// The table of parameters, a row for each cohort where there are several.
fn parameters(runs: &Comparison) -> String {
    let first = runs.first();
    let several = runs.cohorts.len() > 1;
    let mut rows = String::new();
    let of_cohorts: Vec<_> = runs
        .cohorts
        .iter()
        .filter_map(|cohort| {
            let lines = parameter_lines(&first.prior, &cohort.samples()?, first.truth.as_deref());
            Some((&cohort.name, lines))
        })
        .collect();
    for parameter in 0..first.dim() {
        for (name, lines) in &of_cohorts {
            let p = &lines[parameter];
            // Two digits of the spread.
            let short = |value: f64| number_to(value, p.sd / 20.0);
            let [low, _, median, _, high] = p.quantiles.map(short);
            let truth = p.truth.map_or(String::new(), short);
            let symbol = first.symbols.as_ref().map_or(String::new(), |symbols| {
                format!(" <span class=\"muted\">{}</span>", escaped(&symbols[parameter]))
            });
            let whose = if several { format!("<td>{}</td>", escaped(name)) } else { String::new() };
            writeln!(
                rows,
                "<tr><th scope=\"row\">{}{symbol}</th>{whose}<td>{}</td><td>{}</td><td>{low}</td><td>{median}</td><td>{high}</td>\
                 <td>{truth}</td><td>{}</td></tr>",
                escaped(&p.name),
                short(p.mean),
                short(p.sd),
                escaped(&p.prior)
            )
            .expect("a string takes everything");
        }
    }
    let whose = if several { "<th scope=\"col\">run</th>" } else { "" };
    format!(
        "<section>\n<h2>Parameters</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Parameters\">\
         <table><thead><tr><th scope=\"col\">parameter</th>{whose}<th scope=\"col\">mean</th><th scope=\"col\">sd</th>\
         <th scope=\"col\">2.5 %</th><th scope=\"col\">median</th><th scope=\"col\">97.5 %</th><th scope=\"col\">true</th>\
         <th scope=\"col\">prior</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

/// How it was made, and how to make it again.
fn made(runs: &Comparison) -> String {
    let mut html = "<section>\n<h2>How it was made</h2>\n".to_owned();
    for run in runs.runs() {
        let command = match command(run) {
            Some(command) => {
                format!("<pre tabindex=\"0\"><code>{}</code></pre>\n", escaped(&command))
            }
            None => String::new(),
        };
        let settings: String = run
            .manifest
            .config
            .list()
            .iter()
            .map(|(key, value, about)| {
                let (value, about) = (escaped(value), escaped(about));
                format!("<tr><th scope=\"row\">{key}</th><td>{value}</td><td class=\"muted\">{about}</td></tr>\n")
            })
            .collect();
        write!(
            html,
            "<h3>{}</h3>\n<p class=\"muted\">didyma {}, seed {}</p>\n{command}<details><summary>Every setting</summary>\n<div class=\"scroll\" tabindex=\"0\"><table><tbody>\n{settings}</tbody></table>\
             </div></details>\n",
            escaped(&run.name),
            escaped(&run.summary.version),
            run.summary.seed
        )
        .expect("a string takes everything");
    }
    html.push_str("</section>\n");
    html
}

#[cfg(test)]
mod tests {
    use super::*;
    use didyma_plot::Ink;

    /// A figure alone looks like one on a light page.
    #[test]
    fn the_style_sheet_has_the_colours_of_figures() {
        let series = (0..Ink::SERIES).map(Ink::Series);
        let series = series.chain((0..Ink::DIVERGING).map(Ink::Diverging));
        for ink in
            [Ink::Muted, Ink::Text, Ink::Grid, Ink::Reference, Ink::Truth].into_iter().chain(series)
        {
            let variable = ink.colour(Place::Page).replace("var(", "").replace(')', "");
            let entry = format!("{variable}: {};", ink.colour(Place::Alone));
            assert!(STYLE.contains(&entry), "{entry}");
        }
    }
}
