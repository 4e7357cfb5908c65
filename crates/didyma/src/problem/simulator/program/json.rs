//! JSON as scientific programs write it: with NaN and infinity, with `.5` and `1.`.

use super::words::capped;
use serde_json::{Number, Value};
use std::borrow::Cow;

/// Marks a text that was no text but a bare word, such as NaN.
const MARK: char = '\0';

/// Reads JSON; bare words for numbers that JSON does not have are understood by [`number`].
pub(super) fn read(bytes: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8".to_owned())?;
    serde_json::from_str(text).or_else(|first| match repaired(text) {
        Cow::Borrowed(_) => Err(first.to_string()),
        Cow::Owned(text) => serde_json::from_str(&text).map_err(|error| error.to_string()),
    })
}

/// The text with all bare words for numbers, outside of strings, as JSON has them.
fn repaired(text: &str) -> Cow<'_, str> {
    let (mut out, mut rest) = (String::new(), text);
    let mut changed = false;
    while let Some(c) = rest.chars().next() {
        let length = match c {
            '"' => string_length(rest),
            c if is_word(c) => rest.find(|c| !is_word(c)).unwrap_or(rest.len()),
            c => c.len_utf8(),
        };
        let (token, after) = rest.split_at(length);
        let better = is_word(c).then(|| as_json(token)).flatten();
        changed |= better.is_some();
        out.push_str(better.as_deref().unwrap_or(token));
        rest = after;
    }
    if changed { Cow::Owned(out) } else { Cow::Borrowed(text) }
}

fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.')
}

/// Bytes of the string with which the text begins, quotes and all.
fn string_length(text: &str) -> usize {
    let mut escaped = false;
    for (i, byte) in text.bytes().enumerate().skip(1) {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = true,
            b'"' => return i + 1,
            _ => {}
        }
    }
    text.len()
}

/// A word that stands for a number, but not in JSON.
fn as_json(word: &str) -> Option<String> {
    if serde_json::from_str::<Number>(word).is_ok() {
        return None;
    }
    match word.parse::<f64>() {
        Ok(value) if value.is_finite() => Some(format!("{value:e}")),
        // Into an escaped character of a string, which is never a bare word again.
        Ok(value) => Some(format!("\"\\u0000{value}\"")),
        Err(_) => None,
    }
}

/// A number; null is NaN.
pub(super) fn number(value: &Value) -> Option<f64> {
    match value {
        Value::Null => Some(f64::NAN),
        Value::Number(number) => number.as_f64(),
        Value::String(text) => text.strip_prefix(MARK)?.parse().ok(),
        _ => None,
    }
}

/// So many numbers; one may be without brackets. `what` is whose they are, for messages.
pub(super) fn numbers(value: &Value, count: usize, what: &str) -> Result<Vec<f64>, String> {
    let values = match value {
        Value::Array(values) => &values[..],
        single => std::slice::from_ref(single),
    };
    if values.len() != count {
        let found = values.len();
        return Err(format!("{what} has {found} numbers, but there are {count} summaries"));
    }
    let numbers = values.iter().enumerate().map(|(i, value)| {
        number(value).ok_or_else(|| {
            format!("number {} of {what} is {}, which is no number", i + 1, shown(value))
        })
    });
    numbers.collect()
}

/// The text of an error: whatever kind of value it is.
pub(super) fn error_text(value: &Value) -> String {
    match value {
        Value::String(text) => capped(text),
        other => capped(&other.to_string()),
    }
}

/// A value, cut short for a message.
pub(super) fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.len() {
        0..=60 => text,
        _ => format!("{} …", &text[..text.floor_char_boundary(60)]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<f64> {
        let value = read(text.as_bytes()).unwrap();
        value.as_array().unwrap().iter().map(|value| number(value).unwrap()).collect()
    }

    #[test]
    fn numbers_that_json_does_not_have() {
        let found = all("[NaN, nan,-nan,null]");
        assert!(found.iter().all(|value| value.is_nan()) && found.len() == 4);
        let inf = f64::INFINITY;
        assert_eq!(
            all("[Infinity,-Infinity,inf, -inf,1e999,INF]"),
            [inf, -inf, inf, -inf, inf, inf]
        );
        assert_eq!(all("[.5,1.,+2,-.25,1E5,NaN]")[..5], [0.5, 1.0, 2.0, -0.25, 1e5]);
    }

    #[test]
    fn strings_stay_as_they_are() {
        let value = read(br#"{"a \" NaN": "NaN \\", "b": [NaN, "inf"], "c": true}"#).unwrap();
        assert_eq!(value["a \" NaN"], "NaN \\");
        assert_eq!(value["b"][1], "inf");
        assert!(number(&value["b"][1]).is_none() && number(&value["b"][0]).unwrap().is_nan());
        assert_eq!(value["c"], true);
    }

    #[test]
    fn what_is_no_json_is_refused() {
        for text in ["", "{", "[1,,2]", "[nano]", "{\"id\":1}}", "[\"half", "[1", "{'id': 1}"] {
            assert!(read(text.as_bytes()).is_err(), "{text}");
        }
        assert!(read(&"[".repeat(10_000).into_bytes()).is_err());
        assert_eq!(read(b"\xff").unwrap_err(), "it is not UTF-8");
    }

    #[test]
    fn messages_name_the_number() {
        let value = read(br#"[1, "two"]"#).unwrap();
        let text = numbers(&value, 2, "x").unwrap_err();
        assert_eq!(text, "number 2 of x is \"two\", which is no number");
        assert_eq!(
            numbers(&value, 3, "x").unwrap_err(),
            "x has 2 numbers, but there are 3 summaries"
        );
    }
}
