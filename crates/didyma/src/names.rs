//! Names of parameters, summaries and problems: one list of what they may hold, checked where they enter.

use crate::error::{Error, Result};
use std::borrow::Cow;
use std::collections::HashSet;

/// Most characters of a name.
const LONGEST: usize = 200;
/// Characters of a name that a message shows.
const SHOWN: usize = 60;
/// A cell that begins with one of these is a formula to spreadsheets, quoted or not.
const FORMULA: [char; 4] = ['=', '+', '-', '@'];

/// The use of a name, which decides what it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    /// Text beside figures, such as a label.
    Text,
    /// The head of a column: a parameter or a summary.
    Column,
    /// A part of a folder's name: a problem.
    Folder,
}

/// The reason that a name is refused, with the remedy; none of a good one.
pub(crate) fn fault(name: &str, of: Use) -> Option<&'static str> {
    let folder = || name.contains(['/', '\\']) || name.starts_with('.');
    match name {
        "" => Some("is empty: write something"),
        _ if name.chars().any(is_hidden) => {
            Some("has a control character or an invisible one: leave it out")
        }
        _ if name.trim() != name => Some("begins or ends with a blank: leave it out"),
        _ if name.chars().nth(LONGEST).is_some() => {
            Some("has more than 200 characters: shorten it")
        }
        _ if of == Use::Column && name.starts_with(FORMULA) => {
            Some("begins with =, +, - or @, a formula to spreadsheets: begin it with a letter")
        }
        _ if of == Use::Folder && folder() => {
            Some("names folders too: leave slashes and a leading dot out")
        }
        _ => None,
    }
}

/// Refuses a bad name; `what` begins the sentence. The name is shown with its hidden characters as escapes, since it may
/// come from a file that somebody else has made.
pub(crate) fn check(what: &'static str, name: &str, of: Use) -> Result<()> {
    let Some(fault) = fault(name, of) else { return Ok(()) };
    let mut shown: String = name.chars().take(SHOWN).collect();
    if shown.len() < name.len() {
        shown.push('…');
    }
    Err(Error::Name { what, name: shown, fault })
}

/// The first name that an earlier one equals.
pub(crate) fn repeated<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = HashSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// Text without anything that a terminal would obey; lines and tabs stay.
pub fn readable(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| is_hidden(c) && c != '\n' && c != '\t';
    if text.contains(obeyed) { text.replace(obeyed, "\u{fffd}").into() } else { text.into() }
}

/// Control characters (Unicode's Cc, which has ESC, BEL, NUL and line ends), separators of lines and paragraphs, marks
/// that change the direction of text, and what has no width: two names must not look the same, nor one like another.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{3164}' | '\u{feff}')
        || matches!(c, '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}' | '\u{200b}'..='\u{200f}')
        || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}')
        || matches!(c, '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_use_has_its_list() {
        for name in
            ["a", "θ₁", "v (m/s)", "x(0, 1)", "a\"b", "#1", "nan", "1", "$\\alpha_{1}$", "a b"]
        {
            assert_eq!((fault(name, Use::Text), fault(name, Use::Column)), (None, None), "{name}");
        }
        for name in [
            "",
            " a",
            "a\u{a0}",
            "a\0",
            "\u{1b}[2J",
            "a\u{7}",
            "a\nb",
            "a\u{9b}",
            "\u{202e}a",
            "a\u{feff}",
        ] {
            for of in [Use::Text, Use::Column, Use::Folder] {
                assert!(fault(name, of).is_some_and(|why| why.contains(": ")), "{name:?}");
            }
        }
        assert_eq!(fault(&"θ".repeat(LONGEST), Use::Column), None);
        assert!(fault(&"θ".repeat(LONGEST + 1), Use::Column).is_some());
        for name in ["=1+1", "+a", "-log_k", "@x"] {
            assert!(fault(name, Use::Column).is_some() && fault(name, Use::Folder).is_none());
        }
        for name in ["a/b", "a\\b", "..", ".a"] {
            assert!(fault(name, Use::Column).is_none() && fault(name, Use::Folder).is_some());
        }
    }

    #[test]
    fn messages_show_no_hidden_character() {
        let told =
            check("the parameter", "\u{1b}[2J\u{202e}\0", Use::Column).unwrap_err().to_string();
        assert!(
            told.starts_with("the parameter \"\\u{1b}[2J\\u{202e}\\0\" has a control"),
            "{told}"
        );
        let told = check("the parameter", &"a".repeat(9999), Use::Column).unwrap_err().to_string();
        assert!(told.len() < 150, "{told}");
        assert_eq!(readable("a\u{1b}[1m\n\tb\u{9b}"), "a\u{fffd}[1m\n\tb\u{fffd}");
        assert!(matches!(readable("plain\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn repetitions_are_found() {
        assert_eq!(repeated(["a", "b", "a", "b"]), Some("a"));
        assert_eq!(repeated(["a", "b"]), None);
    }
}
