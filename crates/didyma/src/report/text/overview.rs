//! A run in short, as text and as a table for a notebook.

use super::{ParameterLine, cut_by_prior, level_line, parameter_lines, round_line};
use crate::error::Result;
use crate::report::data::columns;
use crate::run::{Findings, Summary, Word};
use didyma_plot::{escaped, number_to};
use serde::Serialize;
use std::fmt;

/// A run in short; its field names are the JSON keys.
#[derive(Clone, Debug, Serialize)]
pub struct Overview {
    /// Its results.
    #[serde(flatten)]
    pub summary: Summary,
    /// The posterior, parameter by parameter; empty before the first round is done.
    pub parameters: Vec<ParameterLine>,
    /// Simulations that are stored; a round that is under way has some too.
    pub simulations: usize,
    /// Those of them that failed.
    pub failed: usize,
    /// Warnings that no check of the verdict says.
    #[serde(skip)]
    pub notes: Vec<String>,
    /// Whether a line for each round is left out of the text.
    #[serde(skip)]
    pub without_rounds: bool,
}

impl Overview {
    /// A run in short from what it found.
    pub fn of(findings: &Findings) -> Result<Self> {
        let (run, mut summary) = (findings.run(), findings.results().clone());
        let ((simulations, failed), mut parameters) = (run.counts()?, Vec::new());
        let mut notes = findings.notes();
        if let Some(posterior) = findings.posterior() {
            let samples = columns(findings.samples()?.unwrap_or_default(), posterior.dim());
            let cut = cut_by_prior(posterior.prior(), &samples);
            notes.extend(cut.clone());
            summary.warnings.extend(cut);
            parameters = parameter_lines(posterior.prior(), &samples, summary.truth.as_deref());
            summary.verdict = Some(findings.verdict()?.clone());
        }
        Ok(Self { summary, parameters, simulations, failed, notes, without_rounds: false })
    }

    /// What it is of and how far it has come.
    fn heading(&self) -> String {
        let Self { summary, simulations, .. } = self;
        let failed = match self.failed {
            0 => String::new(),
            failed => format!(" ({failed} failed)"),
        };
        let Summary { task, method, seed, rounds, .. } = summary;
        format!(
            "{task} by {method}, seed {seed}: {} of {} rounds, {simulations} simulations{failed}, {:.0} s{}",
            rounds.len(),
            summary.config.rounds,
            summary.seconds_total,
            self.devices()
        )
    }

    /// Where it was trained, if not on the CPU alone.
    fn devices(&self) -> String {
        let noted = self.summary.rounds.iter().map(|round| round.device.as_str());
        let mut devices: Vec<&str> = noted.filter(|device| !device.is_empty()).collect();
        devices.dedup();
        match devices.iter().all(|device| device.starts_with("CPU")) {
            true => String::new(),
            false => format!(", on {}", devices.join(", then ")),
        }
    }

    /// The same as HTML: a heading, the verdict, the table of parameters, warnings.
    pub fn html(&self) -> String {
        let row = |p: &ParameterLine| {
            // Two digits of the spread.
            let short = |value: f64| number_to(value, p.sd / 20.0);
            let [low, _, median, _, high] = p.quantiles.map(short);
            let cells = [short(p.mean), short(p.sd), low, median, high];
            let cells = cells.into_iter().chain([p.truth.map_or(String::new(), short)]);
            let cells: String = cells.map(|cell| format!("<td>{cell}</td>")).collect();
            let (name, prior) = (escaped(&p.name), escaped(&p.prior));
            format!("<tr><th>{name}</th>{cells}<td>{prior}</td></tr>\n")
        };
        let rows: String = self.parameters.iter().map(row).collect();
        let heads = ["parameter", "mean", "sd", "2.5 %", "median", "97.5 %", "true", "prior"];
        let heads: String = heads.iter().map(|head| format!("<th>{head}</th>")).collect();
        let warnings: String =
            self.notes.iter().map(|words| format!("<p>⚠ {}</p>\n", escaped(words))).collect();
        let table = match self.parameters.is_empty() {
            true => String::new(),
            false => {
                format!("<table><thead><tr>{heads}</tr></thead>\n<tbody>{rows}</tbody></table>\n")
            }
        };
        format!(
            "<p><b>{}</b></p>\n{}{table}{warnings}",
            escaped(&self.heading()),
            self.verdict_html()
        )
    }

    /// The verdict's word with its reasons, of which a posterior that is trusted needs none.
    fn verdict_html(&self) -> String {
        let Some(verdict) = &self.summary.verdict else { return String::new() };
        let (symbol, colour) = match verdict.word {
            Word::Trust => ("✓", "#2d8a5b"),
            Word::Check => ("!", "#d9822b"),
            Word::DoNotTrust => ("✗", "#c1121f"),
        };
        let reasons = match verdict.word {
            Word::Trust => String::new(),
            _ => format!(": {}", escaped(&verdict.reasons.join("; "))),
        };
        format!(
            "<p style=\"border-left: 4px solid {colour}; padding-left: 8px\"><b>{symbol} Verdict: {}</b>{reasons}</p>\n",
            verdict.word
        )
    }
}

impl fmt::Display for Overview {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { summary, parameters, .. } = self;
        write!(f, "{}", self.heading())?;
        for round in summary.rounds.iter().filter(|_| !self.without_rounds) {
            write!(f, "\n  {}", round_line(round, summary.config.rounds))?;
        }
        let chosen = summary.rounds.last().and_then(level_line);
        chosen.iter().try_for_each(|line| write!(f, "\n{line}"))?;
        if !parameters.is_empty() {
            let width = parameters.iter().map(|p| p.name.len()).max().unwrap_or(0).max(9);
            write!(
                f,
                "\n{:<width$}  {:>10}  {:>9}  {:>10}  {:>10}  {:>10}  {:>10}  prior",
                "parameter", "mean", "sd", "2.5 %", "median", "97.5 %", "true"
            )?;
            for p in parameters {
                let [low, _, median, _, high] = p.quantiles;
                let truth = p.truth.map_or(String::new(), |truth| format!("{truth:.4}"));
                write!(
                    f,
                    "\n{:<width$}  {:>10.4}  {:>9.4}  {low:>10.4}  {median:>10.4}  {high:>10.4}  {truth:>10}  {}",
                    p.name, p.mean, p.sd, p.prior
                )?;
            }
        }
        self.notes.iter().try_for_each(|warning| write!(f, "\nwarning: {warning}"))?;
        summary.verdict.iter().try_for_each(|verdict| write!(f, "\n{verdict}"))
    }
}
