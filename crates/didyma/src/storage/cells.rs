//! Cells of a line of CSV, as RFC 4180 has them: names are quoted where a reader could take them for something else.

use std::borrow::Cow;

/// What stands between two separators.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    /// Its content, without quotes and the blanks around it.
    pub text: Cow<'a, str>,
    /// Whether it was between quotes.
    pub quoted: bool,
}

/// Whether a cell reads as a number, `nan` and `inf` among them.
pub(crate) fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

/// A line with these names as its cells. Quoted are those with a separator, a quote or a line end in them, and those
/// that a reader would take for a number, for nothing, or, by a `#`, for a comment.
pub(crate) fn header<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(cell).collect::<Vec<_>>().join(",")
}

fn cell(name: &str) -> Cow<'_, str> {
    let plain = !name.contains([',', ';', '"', '#', '\n', '\r'])
        && !name.is_empty()
        && name.trim() == name
        && !is_number(name);
    if plain { name.into() } else { format!("\"{}\"", name.replace('"', "\"\"")).into() }
}

/// The cells of a line between any of these separators. A quote opens a quoted cell only where the cell begins.
pub(crate) fn cells<'a>(line: &'a str, separators: &[char]) -> Vec<Cell<'a>> {
    let (mut found, mut rest) = (Vec::new(), line);
    loop {
        let end = end_of_cell(rest, separators);
        found.push(content(rest[..end].trim()));
        let mut after = rest[end..].chars();
        if after.next().is_none() {
            return found;
        }
        rest = after.as_str();
    }
}

/// Bytes before the separator that ends the first cell of a line.
fn end_of_cell(line: &str, separators: &[char]) -> usize {
    let quoted = line.trim_start().starts_with('"');
    let mut inside = false;
    for (at, letter) in line.char_indices() {
        match letter {
            // Two quotes within a cell close and open it again.
            '"' if quoted => inside = !inside,
            _ if !inside && separators.contains(&letter) => return at,
            _ => {}
        }
    }
    line.len()
}

fn content(cell: &str) -> Cell<'_> {
    match cell.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')) {
        Some(inside) if inside.contains('"') => {
            Cell { text: inside.replace("\"\"", "\"").trim().to_owned().into(), quoted: true }
        }
        Some(inside) => Cell { text: inside.trim().into(), quoted: true },
        None => Cell { text: cell.into(), quoted: false },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn names_are_quoted_only_where_they_must() {
        assert_eq!(header(["a", "x(0.5)", "a b", "θ#"]), "a,x(0.5),a b,\"θ#\"");
        assert_eq!(
            header(["1", "nan", "-Inf", "#a", "a,b"]),
            "\"1\",\"nan\",\"-Inf\",\"#a\",\"a,b\""
        );
        assert_eq!(header(["say \"x\"", ""]), "\"say \"\"x\"\"\",\"\"");
    }

    #[test]
    fn cells_are_found_between_any_separators() {
        let texts = |line, separators: &[char]| {
            let cells = cells(line, separators);
            cells.iter().map(|cell| (cell.text.to_string(), cell.quoted)).collect::<Vec<_>>()
        };
        let pair = |text: &str, quoted| (text.to_owned(), quoted);
        assert_eq!(texts("a, b", &[',']), [pair("a", false), pair("b", false)]);
        assert_eq!(texts("\"a;b\" ;1", &[';', ',']), [pair("a;b", true), pair("1", false)]);
        assert_eq!(texts("\"x\ty\"\tz", &['\t']), [pair("x\ty", true), pair("z", false)]);
        assert_eq!(texts(",", &[',']), [pair("", false), pair("", false)]);
        // No closing quote, and quotes inside of a cell: as they are.
        assert_eq!(texts("\"a,b", &[',']), [pair("\"a,b", false)]);
        assert_eq!(texts("a\"b,c\"", &[',']), [pair("a\"b", false), pair("c\"", false)]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// Whatever the names are, they are read as they were written.
        #[test]
        fn headers_are_read_back(names in prop::collection::vec("[-a-z0-9,;\"#=.θ ]{0,6}", 1..6)) {
            let names: Vec<&str> = names.iter().map(|name| name.trim()).collect();
            let line = header(names.iter().copied());
            let found = cells(&line, &[',']);
            prop_assert!(found.iter().map(|cell| &*cell.text).eq(names), "{}", line);
            prop_assert!(found.iter().all(|cell| cell.quoted || !is_number(&cell.text)), "{}", line);
            prop_assert!(!line.starts_with('#'));
        }
    }
}
