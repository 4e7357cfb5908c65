//! The verdict as a page shows it: a word, every check with a mark, and what to do next.

use super::data::{Comparison, RunData};
use super::text::verdict;
use crate::run::{Check, Outcome, Verdict, Word};
use didyma_plot::escaped;

/// The verdict on one run, or a table of those on several.
pub(super) fn verdicts(runs: &Comparison) -> String {
    if runs.len() == 1 {
        return one(&verdict(runs.first()));
    }
    let rows: String = runs.runs().map(row).collect();
    format!(
        "<section>\n<h2>Verdicts</h2>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Verdicts\">\
         <table class=\"verdicts\"><thead><tr><th scope=\"col\">run</th><th scope=\"col\">verdict</th>\
         <th scope=\"col\">why</th></tr></thead>\n<tbody>\n{rows}</tbody></table></div>\n</section>\n"
    )
}

fn one(verdict: &Verdict) -> String {
    let (class, symbol) = look(worst(verdict.word));
    let checks: String = sorted(verdict).into_iter().map(|check| item(check, verdict)).collect();
    let next: String =
        verdict.next.iter().map(|next| format!("<li>{}</li>\n", marked(next))).collect();
    let next = match next.is_empty() {
        true => String::new(),
        false => format!("<h3>What to do next</h3>\n<ul>\n{next}</ul>\n"),
    };
    format!(
        "<section class=\"verdict {class}\" aria-label=\"Verdict\"><h2><span class=\"mark {class}\" aria-hidden=\"true\">{symbol}</span> \
         Verdict: {}</h2>\n<p>{}</p>\n<ul class=\"checks\">\n{checks}</ul>\n{next}</section>\n",
        verdict.word,
        escaped(&lead(verdict))
    )
}

/// One sentence on what the word rests on; the checks that it names come first below.
fn lead(verdict: &Verdict) -> String {
    let of = |outcome: Outcome| -> Vec<&str> {
        let found = verdict.checks.iter().filter(|check| check.outcome == outcome);
        found.map(|check| &*check.name).collect()
    };
    let names = |outcomes: &[Outcome]| -> String {
        let mut names: Vec<&str> = outcomes.iter().flat_map(|&outcome| of(outcome)).collect();
        names.dedup();
        names.join(", ")
    };
    match verdict.word {
        Word::Trust => "Everything that was checked speaks for this posterior.".to_owned(),
        Word::DoNotTrust => format!("Something is wrong: {}.", names(&[Outcome::Bad])),
        Word::Check if of(Outcome::Doubtful).is_empty() => {
            "Nothing that was checked speaks against this posterior, but what matters most could not be checked.".to_owned()
        }
        Word::Check => format!("Something is doubtful: {}.", names(&[Outcome::Doubtful])),
    }
}

/// True for a check that made the word what it is.
fn decides(check: &Check, verdict: &Verdict) -> bool {
    let doubted = verdict.checks.iter().any(|check| check.outcome >= Outcome::Doubtful);
    match verdict.word {
        Word::Trust => false,
        Word::Check if !doubted => check.outcome == Outcome::NotChecked,
        Word::Check | Word::DoNotTrust => check.outcome >= Outcome::Doubtful,
    }
}

/// The checks that decide, the worst of them first; then what is good, and what was not checked.
fn sorted(verdict: &Verdict) -> Vec<&Check> {
    let mut checks: Vec<&Check> = verdict.checks.iter().collect();
    checks.sort_by_key(|check| match check.outcome {
        Outcome::Bad => 0,
        Outcome::Doubtful => 1,
        _ if decides(check, verdict) => 2,
        Outcome::Good => 3,
        Outcome::NotChecked => 4,
    });
    checks
}

/// A check as an item of a list: its mark, its name, and what was found.
fn item(check: &Check, verdict: &Verdict) -> String {
    let (class, symbol) = look(check.outcome);
    // What a check that decided asks for stands below.
    let asks = !check.next.is_empty() && !verdict.next.contains(&check.next);
    let next = match asks {
        true => format!(" <span class=\"muted\">({})</span>", marked(&check.next)),
        false => String::new(),
    };
    format!(
        "<li><span class=\"mark {class}\"><span aria-hidden=\"true\">{symbol}</span> {}</span>\
         <span><b>{}</b>: {}{next}</span></li>\n",
        check.outcome.name(),
        escaped(&check.name),
        marked(&check.words)
    )
}

/// A run among several: its word, and why it is this one.
fn row(run: &RunData) -> String {
    let verdict = verdict(run);
    let (class, symbol) = look(worst(verdict.word));
    let checks = sorted(&verdict);
    let why = checks.iter().filter(|check| decides(check, &verdict));
    let why: Vec<String> = why
        .map(|check| format!("<b>{}</b>: {}", escaped(&check.name), marked(&check.words)))
        .collect();
    let why = if why.is_empty() { escaped(&lead(&verdict)) } else { why.join("<br>") };
    format!(
        "<tr><th scope=\"row\">{}</th><td><span class=\"mark {class}\"><span aria-hidden=\"true\">{symbol}</span> {}</span></td>\
         <td>{why}</td></tr>\n",
        escaped(&run.name),
        verdict.word
    )
}

/// The outcome that looks as a word does.
fn worst(word: Word) -> Outcome {
    match word {
        Word::Trust => Outcome::Good,
        Word::Check => Outcome::Doubtful,
        Word::DoNotTrust => Outcome::Bad,
    }
}

/// The class of an outcome in the style sheet, and its symbol.
fn look(outcome: Outcome) -> (&'static str, &'static str) {
    match outcome {
        Outcome::Good => ("is-good", "✓"),
        Outcome::NotChecked => ("is-open", "–"),
        Outcome::Doubtful => ("is-doubtful", "!"),
        Outcome::Bad => ("is-bad", "✗"),
    }
}

/// Text as HTML, with what stands between backticks as code.
pub(super) fn marked(text: &str) -> String {
    let parts: Vec<&str> = text.split('`').collect();
    // A backtick without another stays what it is.
    if parts.len().is_multiple_of(2) {
        return escaped(text);
    }
    // A line does not end within an equation.
    let part = |(i, part): (usize, &&str)| match i % 2 {
        0 => escaped(part).replace(" = ", "\u{a0}=\u{a0}"),
        _ => format!("<code>{}</code>", escaped(part)),
    };
    parts.iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_code_and_text_is_escaped() {
        assert_eq!(marked("run `a <b>` & wait"), "run <code>a &lt;b&gt;</code> &amp; wait");
        assert_eq!(marked("a ` b"), "a ` b");
    }

    #[test]
    fn every_outcome_has_a_look_of_its_own_and_only_good_is_green() {
        let all = [Outcome::Good, Outcome::NotChecked, Outcome::Doubtful, Outcome::Bad];
        let mut looks: Vec<_> = all.map(|outcome| look(outcome).1).into();
        looks.dedup();
        assert_eq!(looks.len(), 4);
        assert_eq!(all.iter().filter(|outcome| look(**outcome).0 == "is-good").count(), 1);
    }
}
