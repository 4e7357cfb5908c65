//! Levels that a run chose by itself, in words.

use crate::inference::RoundReport;
use crate::training::levels::LevelChoice;
use std::fmt::Write;

/// The levels that a round chose, in one line.
pub(super) fn level_line(report: &RoundReport) -> Option<String> {
    let chosen = report.levels.as_ref()?;
    Some(format!(
        "levels of round {}: M0 = {}, base {}, top {}{}; r2 = {:.2} ± {:.2}, variance x cost {:.2} of that of the settings (predicted)",
        report.round,
        chosen.m0,
        chosen.base,
        chosen.top,
        tails(chosen),
        chosen.r2,
        chosen.r2_se,
        chosen.share()
    ))
}

/// `, P(L >= 4), ... = 0.120 0.043`; nothing where the base is the top.
fn tails(chosen: &LevelChoice) -> String {
    let tails: String = chosen.tails.iter().map(|p| format!(" {p:.3}")).collect();
    match chosen.tails.is_empty() {
        true => String::new(),
        false => format!(", P(L >= {}), ... ={tails}", chosen.base + 1),
    }
}

/// The levels of all rounds that chose some, as a table of the page.
pub(crate) fn level_table(rounds: &[RoundReport]) -> Option<String> {
    let mut rows = String::new();
    for (round, chosen) in rounds.iter().filter_map(|r| Some((r.round, r.levels.as_ref()?))) {
        let LevelChoice { m0, base, top, r2, r2_se, .. } = chosen;
        let tails: Vec<String> = chosen.tails.iter().map(|p| format!("{p:.3}")).collect();
        let second: Vec<String> =
            chosen.second_moments.iter().map(|v| format!("{v:.1e}")).collect();
        writeln!(
            rows,
            "<tr><th scope=\"row\">{round}</th><td>{m0}</td><td>{base}</td><td>{top}</td><td>{}</td><td>{r2:.2} ± {r2_se:.2}</td><td>{}</td><td>{:.2}</td></tr>",
            tails.join(" "),
            second.join(" "),
            chosen.share()
        )
        .expect("a string takes everything");
    }
    let heads = [
        "round",
        "M₀",
        "base",
        "top",
        "P(L ≥ base + 1), …",
        "r2",
        "E‖gradient‖² from level 1 on",
        "variance × cost / as set, predicted",
    ];
    let heads: String = heads.iter().map(|head| format!("<th scope=\"col\">{head}</th>")).collect();
    (!rows.is_empty()).then(|| {
        format!(
            "<section>\n<h2>Levels that were chosen</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Levels\">\
             <table><thead><tr>{heads}</tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n\
             <p class=\"muted\">For each round, from moments measured on the flow of the round before. Level l has M₀ · 2^l inner samples.</p>\n\
             </section>\n"
        )
    })
}
