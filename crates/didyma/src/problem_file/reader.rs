//! TOML read field by field, so that every message has the line, the field and the remedy.

use super::fields::names_in;
use crate::error::{Error, Result};
use crate::names::{Use, fault, readable};
use serde_json::{Number, Value};
use std::ops::Range;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// A file, to find lines in.
#[derive(Clone, Copy)]
pub(super) struct Document<'a> {
    pub path: &'a Path,
    pub text: &'a str,
    /// The bytes where its lines end: it is asked for the line of every setting.
    pub ends: &'a [usize],
}

/// A table in it.
#[derive(Clone)]
pub(super) struct Fields<'a> {
    document: Document<'a>,
    table: &'a DeTable<'a>,
    /// Its name, with those of the tables around it.
    name: String,
    span: Range<usize>,
}

/// A value in it.
pub(super) struct Node<'a> {
    document: Document<'a>,
    value: &'a DeValue<'a>,
    /// The name of its field, with those of the tables around it.
    pub field: String,
    span: Range<usize>,
}

impl<'a> Document<'a> {
    /// The line of a byte, from 1.
    pub(super) fn line(&self, byte: usize) -> usize {
        1 + self.ends.partition_point(|end| *end < byte)
    }

    pub(super) fn error(
        &self,
        at: &Range<usize>,
        field: &str,
        problem: impl Into<String>,
    ) -> Error {
        let (path, line) = (self.path.to_owned(), self.line(at.start));
        // Both quote the file, which may be somebody else's.
        let (field, fault) = (readable(field).into_owned(), readable(&problem.into()).into_owned());
        Error::ProblemFile { path, line, field, fault }
    }

    /// The outermost table of a parsed text.
    pub(super) fn fields(self, table: &'a DeTable<'a>) -> Fields<'a> {
        Fields { document: self, table, name: String::new(), span: 0..0 }
    }
}

impl<'a> Fields<'a> {
    /// The names in the table, in the order of the file.
    pub(super) fn names(&self) -> impl Iterator<Item = &'a str> + use<'a> {
        self.table.keys().map(|key| key.get_ref().as_ref())
    }

    /// All fields with their values, in the order of the file.
    pub(super) fn entries(&self) -> impl Iterator<Item = (&'a str, Node<'a>)> {
        self.table.iter().map(|(key, value)| {
            // The span of a table in brackets is that of its header, which may be elsewhere: its key tells the line.
            let span = match value.get_ref() {
                DeValue::Table(_) => key.span(),
                _ => value.span(),
            };
            let (document, value, name) = (self.document, value.get_ref(), key.get_ref().as_ref());
            (name, Node { document, value, field: self.path(name), span })
        })
    }

    /// The value of a field, if it is there.
    pub(super) fn get(&self, name: &str) -> Option<Node<'a>> {
        self.names()
            .position(|known| known == name)
            .and_then(|i| self.entries().nth(i))
            .map(|(_, node)| node)
    }

    /// The value of a field that has to be there.
    pub(super) fn need(&self, name: &str, remedy: &str) -> Result<Node<'a>> {
        self.get(name).ok_or_else(|| self.error(&self.path(name), format!("is missing: {remedy}")))
    }

    /// The table of a field; without it, an empty place to look into.
    pub(super) fn table(&self, name: &str) -> Result<Option<Self>> {
        self.get(name).map(|node| node.table()).transpose()
    }

    /// Refuses every field whose name is not in the list of fields.
    pub(super) fn only_known(&self) -> Result<()> {
        let known = names_in(&self.name);
        self.only(&known)
    }

    /// Refuses every field with another name than these.
    pub(super) fn only(&self, known: &[&str]) -> Result<()> {
        for key in self.table.keys() {
            let name = key.get_ref().as_ref();
            if known.contains(&name) {
                continue;
            }
            let near = |known: &&&str| strsim::osa_distance(known, name);
            let similar = known.iter().min_by_key(near).filter(|k| near(k) <= name.len() / 3 + 1);
            let remedy = match similar {
                Some(similar) => format!("did you mean {similar}?"),
                None => format!("there are {}", known.join(", ")),
            };
            let problem = format!("is no field of a problem: {remedy}");
            return Err(self.document.error(&key.span(), &self.path(name), problem));
        }
        Ok(())
    }

    /// An error about a field of the table, at the table's line.
    pub(super) fn error(&self, field: &str, problem: impl Into<String>) -> Error {
        self.document.error(&self.span, field, problem)
    }

    /// The full name of a field.
    pub(super) fn path(&self, name: &str) -> String {
        if self.name.is_empty() { name.to_owned() } else { format!("{}.{name}", self.name) }
    }
}

impl<'a> Node<'a> {
    pub(super) fn error(&self, problem: impl Into<String>) -> Error {
        self.document.error(&self.span, &self.field, problem)
    }

    /// The line of the value, from 1.
    pub(super) fn line(&self) -> usize {
        self.document.line(self.span.start)
    }

    fn wrong(&self, expected: &str) -> Error {
        self.error(format!("is {}: give {expected}", kind(self.value)))
    }

    pub(super) fn table(&self) -> Result<Fields<'a>> {
        match self.value {
            DeValue::Table(table) => Ok(Fields {
                document: self.document,
                table,
                name: self.field.clone(),
                span: self.span.clone(),
            }),
            _ => {
                Err(self
                    .wrong("a table: fields in braces, or below a line with its name in brackets"))
            }
        }
    }

    pub(super) fn text(&self) -> Result<String> {
        match self.value {
            DeValue::String(text) if !text.trim().is_empty() => Ok(text.as_ref().to_owned()),
            DeValue::String(_) => Err(self.error("is empty: write something between the quotes")),
            _ => Err(self.wrong("a text in quotes")),
        }
    }

    /// A text that is good for a use.
    pub(super) fn name(&self, of: Use) -> Result<String> {
        let name = self.text()?;
        fault(&name, of).map_or(Ok(name), |fault| Err(self.error(fault)))
    }

    /// A finite number.
    pub(super) fn number(&self) -> Result<f64> {
        match number(self.value) {
            Some(number) if number.is_finite() => Ok(number),
            Some(number) => Err(self.error(format!("is {number}: give a finite number"))),
            None if matches!(self.value, DeValue::Integer(_)) => Err(self.error(
                "is a whole number of more than 64 bits: write it with a point or an exponent",
            )),
            None => Err(self.wrong("a number")),
        }
    }

    /// A whole number from 1 to this.
    pub(super) fn whole_to(&self, most: usize) -> Result<usize> {
        Ok(self.whole_up_to(1, most as u64)? as usize)
    }

    /// A whole number between these.
    pub(super) fn whole_up_to(&self, least: u64, most: u64) -> Result<u64> {
        let found = match self.value {
            DeValue::Integer(number) => u64::from_str_radix(number.as_str(), number.radix()).ok(),
            _ => return Err(self.wrong("a whole number")),
        };
        let text = || self.document.text.get(self.span.clone()).unwrap_or_default();
        found.filter(|found| (least..=most).contains(found)).ok_or_else(|| {
            self.error(format!("is {}: give a whole number between {least} and {most}", text()))
        })
    }

    pub(super) fn flag(&self) -> Result<bool> {
        match self.value {
            DeValue::Boolean(flag) => Ok(*flag),
            _ => Err(self.wrong("true or false")),
        }
    }

    /// The values of a list that is not empty.
    fn list(&self, of: &str) -> Result<Vec<Self>> {
        let DeValue::Array(values) = self.value else {
            return Err(self.wrong(&format!("{of} in brackets")));
        };
        if values.iter().next().is_none() {
            return Err(self.error(format!("is empty: give {of} between the brackets")));
        }
        let node = |(i, value): (usize, &'a toml::Spanned<DeValue<'a>>)| Self {
            document: self.document,
            value: value.get_ref(),
            field: format!("{}[{}]", self.field, i + 1),
            span: value.span(),
        };
        Ok(values.iter().enumerate().map(node).collect())
    }

    pub(super) fn numbers(&self) -> Result<Vec<f64>> {
        self.list("numbers")?.iter().map(Self::number).collect()
    }

    pub(super) fn pair(&self, of: &str) -> Result<[f64; 2]> {
        let numbers = self.numbers()?;
        numbers.try_into().map_err(|numbers: Vec<f64>| {
            self.error(format!("has {} numbers: give two, {of}", numbers.len()))
        })
    }

    /// The words of a command: a program, then arguments, which may be empty.
    pub(super) fn words(&self) -> Result<Vec<String>> {
        let word = |(i, node): (usize, &Self)| match node.value {
            DeValue::String(text) if i > 0 => Ok(text.as_ref().to_owned()),
            _ => node.text(),
        };
        self.list("texts in quotes")?.iter().enumerate().map(word).collect()
    }

    /// Heads of columns.
    pub(super) fn heads(&self) -> Result<Vec<String>> {
        self.list("texts in quotes")?.iter().map(|node| node.name(Use::Column)).collect()
    }

    /// As JSON has it.
    pub(super) fn json(&self) -> Result<Value> {
        match self.value {
            DeValue::String(text) => Ok(Value::String(text.as_ref().to_owned())),
            DeValue::Boolean(flag) => Ok(Value::Bool(*flag)),
            DeValue::Integer(n) => match i64::from_str_radix(n.as_str(), n.radix()) {
                Ok(whole) => Ok(whole.into()),
                Err(_) => Err(self.error("is too large: give a number of 64 bits")),
            },
            DeValue::Float(_) => {
                Ok(Number::from_f64(self.number()?).map_or(Value::Null, Value::Number))
            }
            DeValue::Datetime(date) => Ok(Value::String(date.to_string())),
            DeValue::Array(values) if values.iter().next().is_none() => {
                Ok(Value::Array(Vec::new()))
            }
            DeValue::Array(_) => {
                self.list("values")?.iter().map(Self::json).collect::<Result<_>>().map(Value::Array)
            }
            DeValue::Table(_) => {
                let table = self.table()?;
                let fields = table.entries();
                let fields = fields.map(|(name, node)| Ok((name.to_owned(), node.json()?)));
                fields.collect::<Result<_>>().map(Value::Object)
            }
        }
    }
}

fn number(value: &DeValue) -> Option<f64> {
    match value {
        // Every whole number is a number.
        DeValue::Integer(n) => i64::from_str_radix(n.as_str(), n.radix()).ok().map(|n| n as f64),
        DeValue::Float(number) => number.as_str().parse().ok(),
        _ => None,
    }
}

fn kind(value: &DeValue) -> &'static str {
    match value {
        DeValue::String(_) => "a text",
        DeValue::Integer(_) | DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
