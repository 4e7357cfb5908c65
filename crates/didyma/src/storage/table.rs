//! Tables of numbers in CSV files: comments, a header with the names of the columns, then a row on each line.

use crate::error::{Error, Result};
use crate::storage::cells::{Cell, cells, header, is_number};
use crate::storage::files::write_whole;
use std::collections::HashMap;
use std::path::Path;

/// Named columns of numbers, row after row.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns; empty if the file had no header.
    pub names: Vec<String>,
    /// Numbers in a row.
    pub columns: usize,
    /// The numbers.
    pub data: Vec<f64>,
}

impl Table {
    /// Reads a CSV file. Lines at its beginning that start with `#` are comments and left out; a first
    /// line without numbers is the header, in which a quoted cell is no number; with `index`, the first
    /// column only numbers the rows and is left out. Every row must have as many finite numbers.
    pub fn read(path: &Path, index: bool) -> Result<Self> {
        let text = std::fs::read_to_string(path).map_err(|source| Error::Io {
            action: "read",
            path: path.to_owned(),
            source,
        })?;
        parse(&text, index).map_err(|(line, fault)| Error::Table {
            path: path.to_owned(),
            line,
            fault: fault.into(),
        })
    }

    /// Writes a CSV file, whole or not at all.
    pub fn write(&self, path: &Path) -> Result<()> {
        write_whole(path, self.text().as_bytes())
    }

    /// The content of a CSV file; numbers have the digits that tell them apart, and no more.
    pub fn text(&self) -> String {
        let mut text = String::with_capacity(self.data.len() * 12);
        if !self.names.is_empty() {
            text.push_str(&header(self.names.iter().map(String::as_str)));
            text.push('\n');
        }
        for row in self.data.chunks_exact(self.columns) {
            for (i, number) in row.iter().enumerate() {
                if i > 0 {
                    text.push(',');
                }
                text.push_str(&digits(*number));
            }
            text.push('\n');
        }
        text
    }

    /// The content of a CSV file that begins with these lines as comments.
    pub fn text_after(&self, comments: &str) -> String {
        let comments = comments.lines().map(|line| format!("# {line}\n"));
        comments.chain([self.text()]).collect()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.data.len() / self.columns
    }

    /// The columns of these names, or the first ones if the table has no names; `None` if one is missing.
    pub fn select(&self, names: &[&str]) -> Option<Vec<f64>> {
        let places: Option<Vec<usize>> = match self.names.is_empty() {
            true => (names.len() <= self.columns).then(|| (0..names.len()).collect()),
            false => {
                // In reverse, so that of equal names the first counts.
                let all = self.names.iter().enumerate().rev();
                let all: HashMap<&str, usize> = all.map(|(i, name)| (&**name, i)).collect();
                names.iter().map(|name| all.get(name).copied()).collect()
            }
        };
        let places = places?;
        let rows = self.data.chunks_exact(self.columns);
        Some(rows.flat_map(|row| places.iter().map(|&place| row[place])).collect())
    }
}

/// A number with the digits that tell it from all others, and an exponent where zeros would be many.
pub(crate) fn digits(number: f64) -> String {
    if number == 0.0 || (1e-5..1e16).contains(&number.abs()) {
        number.to_string()
    } else {
        format!("{number:e}")
    }
}

/// Line, from 1, and what is wrong there.
type Problem = (u64, String);

fn parse(text: &str, index: bool) -> std::result::Result<Table, Problem> {
    // Programs for tables mark a file as UTF-8 by these bytes.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let comments: Vec<&str> =
        text.split_inclusive('\n').take_while(|l| l.starts_with('#')).collect();
    let rest = &text[comments.iter().map(|line| line.len()).sum()..];
    parse_rows(rest, index).map_err(|(line, problem)| (line + comments.len() as u64, problem))
}

fn parse_rows(text: &str, index: bool) -> std::result::Result<Table, Problem> {
    let mut reader = csv::ReaderBuilder::new()
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(text.as_bytes());
    let mut table = Table { names: Vec::new(), columns: 0, data: Vec::new() };
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).map_err(|error| {
        let line = error.position().map_or(0, csv::Position::line);
        (line, format!("it is no CSV ({error})"))
    })? {
        let line = record.position().map_or(0, csv::Position::line);
        let fields: Vec<&str> = record.iter().skip(usize::from(index)).collect();
        if table.columns == 0 {
            table.columns = fields.len();
            // Nothing but empty lines is before it.
            let (first, below) = text.split_at(reader.position().byte() as usize);
            if let Some(names) = names(first, below, index).map_err(|why| (line, why))? {
                table.columns = names.len();
                table.names = names;
                continue;
            }
        }
        if fields.len() != table.columns {
            let (found, expected) = (fields.len(), table.columns);
            let why =
                format!("{found} columns where the first line has {expected}: repair or remove it");
            return Err((line, why));
        }
        for (i, field) in fields.iter().enumerate() {
            table
                .data
                .push(number(field).map_err(|why| (line, format!("column {}: {why}", i + 1)))?);
        }
    }
    match table.data.is_empty() {
        true => Err((1, "the file has no rows of numbers: give one that has".to_owned())),
        false => Ok(table),
    }
}

/// The names in a first line, or none if it is a row of numbers; `below` is the text after it.
///
/// A name may look like a number: then it is quoted, as [`header`] writes it. Quoted numbers are names only above a line
/// that is not quoted throughout, since some programs quote every number.
fn names(
    first: &str,
    below: &str,
    index: bool,
) -> std::result::Result<Option<Vec<String>>, String> {
    let line = |text| cells(text, &[',']).into_iter().skip(usize::from(index)).collect::<Vec<_>>();
    let first: Vec<Cell> = line(first.trim());
    let below = below.trim_start().lines().next();
    let bare = first.iter().any(|cell| is_number(&cell.text) && !cell.quoted);
    let above = !bare && below.is_some_and(|below| line(below).iter().any(|cell| !cell.quoted));
    let is_name = |cell: &&Cell| !is_number(&cell.text) || (above && cell.quoted);
    match first.iter().filter(is_name).count() {
        0 => Ok(None),
        all if all == first.len() => {
            Ok(Some(first.into_iter().map(|cell| cell.text.into_owned()).collect()))
        }
        _ => Err("names and numbers: give a header of names, or a row of numbers".to_owned()),
    }
}

fn number(field: &str) -> std::result::Result<f64, String> {
    match field.parse::<f64>() {
        Ok(number) if number.is_finite() => Ok(number),
        Ok(number) => Err(format!("{number} is not finite: remove that row")),
        Err(_) => Err(format!("\"{field}\" is no number: repair or remove that row")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_and_indices_are_told_from_numbers() {
        let table = parse("a,b\n1,2.5\n-3e1,4\n", false).unwrap();
        assert_eq!(
            (table.names.len(), table.rows(), &table.data[..]),
            (2, 2, &[1.0, 2.5, -30.0, 4.0][..])
        );
        assert_eq!(table.select(&["b"]), Some(vec![2.5, 4.0]));
        assert_eq!(table.select(&["c"]), None);
        let table = parse("0, 1, 2\n1, 3, 4\n", true).unwrap();
        assert_eq!(
            (table.names.len(), table.columns, &table.data[..]),
            (0, 2, &[1.0, 2.0, 3.0, 4.0][..])
        );
        assert_eq!(table.select(&["any"]), Some(vec![1.0, 3.0]));
        assert_eq!(parse(&table.text(), false).unwrap(), table);
    }

    #[test]
    fn comments_lead_the_file_and_are_left_out_again() {
        let table = Table { names: vec!["a".into(), "b".into()], columns: 2, data: vec![1.0, 2.5] };
        let text = table.text_after("first, 1\nsecond");
        assert_eq!(text, "# first, 1\n# second\na,b\n1,2.5\n");
        assert_eq!(parse(&text, false).unwrap(), table);
        assert_eq!(parse("#\r\n#\"\r\n1,2.5\r\n", false).unwrap().data, table.data);
        let (line, problem) = parse("# first\na,b\n1,2\n3\n", false).unwrap_err();
        assert!(line == 4 && problem.contains("1 columns"), "{line} {problem}");
        assert!(parse("# nothing else", false).is_err());
    }

    #[test]
    fn quoted_cells_of_a_header_are_names() {
        let names =
            |text: &str| parse(text, false).map(|table| (table.names.join("|"), table.data));
        let header = |names: &str, data: &[_]| Ok((names.to_owned(), data.to_vec()));
        assert_eq!(names("\"1\",\"nan\"\n3,4\n"), header("1|nan", &[3.0, 4.0]));
        assert_eq!(names("a, \"inf\"\r\n\r\n3,4\r\n"), header("a|inf", &[3.0, 4.0]));
        assert_eq!(names("\"a,b\",\"say \"\"x\"\"\"\n3,4\n"), header("a,b|say \"x\"", &[3.0, 4.0]));
        assert_eq!(names("# note\n\"#a\"\n3\n"), header("#a", &[3.0]));
        assert_eq!(names("\u{feff}# note\na\n3\n"), header("a", &[3.0]));
        // Programs that quote everything quote numbers too.
        assert_eq!(names("\"1\",\"2\"\n\"3\",\"4\"\n"), header("", &[1.0, 2.0, 3.0, 4.0]));
        assert_eq!(names("\"1\",\"2\"\n"), header("", &[1.0, 2.0]));
        assert_eq!(names("\"1\",2\n3,4\n"), header("", &[1.0, 2.0, 3.0, 4.0]));
        assert_eq!(parse("\"\",\"a\"\n1,2\n", true).unwrap().names, ["a"]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(300))]

        /// Whatever the names are, a table is read as it was written.
        #[test]
        fn tables_are_read_back(
            names in prop::collection::vec("(nan|-?inf|1e5|0|#|[-a-z0-9,;\"#=.θ'/\\\\]{1,6})", 1..5),
            comments in "(\n|[a-z#,\"]{0,9})",
        ) {
            let columns = names.len();
            let data = (0..3 * columns).map(|i| i as _).collect();
            let table = Table { names, columns, data };
            let text = table.text_after(&comments);
            prop_assert_eq!(parse(&text, false), Ok(table), "{}", text);
        }
    }

    #[test]
    fn bad_files_are_refused_with_the_line() {
        for (text, line, part) in [
            ("", 1, "no rows"),
            ("a,b\n", 1, "no rows"),
            ("a,b\n1,2\n1,2,3\n", 3, "3 columns where the first line has 2"),
            ("1,2\n1,NaN\n", 2, "column 2: NaN is not finite"),
            ("3,x4\n1,2\n", 1, "names and numbers"),
            ("a,b\n1,x\n", 2, "column 2: \"x\" is no number"),
            ("a,b\n1,\n", 2, "is no number"),
        ] {
            let (found, problem) = parse(text, false).unwrap_err();
            assert!(found == line && problem.contains(part), "{text:?}: {found} {problem}");
        }
    }
}
