//! What programs answer, as functions of bytes alone: nothing that is read here can do harm.

use super::json::{error_text, number, numbers, read, shown};
use super::words::capped;
use crate::storage::cells::cells;
use serde_json::Value;
use std::borrow::Cow;
use std::collections::HashMap;

/// The summaries of a simulation, or why there are none.
pub type Answer = Result<Vec<f64>, String>;

/// The answers in a line of a worker, by the number of the request; an error where the line breaks the protocol.
pub fn worker_line(line: &[u8], summaries: usize) -> Result<Vec<(u64, Answer)>, String> {
    let value = read(line).map_err(|error| format!("the worker's answer is no JSON: {error}"))?;
    match &value {
        Value::Array(values) => values.iter().map(|value| worker_reply(value, summaries)).collect(),
        single => Ok(vec![worker_reply(single, summaries)?]),
    }
}

fn worker_reply(value: &Value, summaries: usize) -> Result<(u64, Answer), String> {
    let Some(reply) = value.as_object() else {
        return Err(format!("the worker's answer is {}, which is no object", shown(value)));
    };
    // Languages without integers write 7.0.
    let id = reply.get("id").and_then(number).filter(|id| *id >= 0.0 && id.fract() == 0.0);
    let Some(id) = id.filter(|id| *id < 2f64.powi(53)) else {
        return Err(format!("the worker's answer has no id: {}", shown(value)));
    };
    let answer = match (reply.get("error"), reply.get("x")) {
        (Some(error), _) if !error.is_null() => Err(error_text(error)),
        (_, Some(x)) => numbers(x, summaries, "x of the worker's answer"),
        (_, None) => Err("the worker's answer has neither x nor error".to_owned()),
    };
    Ok((id as u64, answer))
}

/// The summaries in what a program has written: JSON, or numbers with or without a line of names.
pub fn once_output(bytes: &[u8], summaries: &[String]) -> Answer {
    let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes).trim_ascii();
    match text.first() {
        None => Err("the program wrote no output".to_owned()),
        Some(b'[' | b'{') => {
            let value = read(text);
            let value =
                value.map_err(|error| format!("the program's output is no JSON: {error}"))?;
            once_json(&value, summaries)
        }
        Some(_) => {
            let text = std::str::from_utf8(text);
            once_text(text.map_err(|_| "the program's output is not UTF-8")?, summaries)
        }
    }
}

fn once_json(value: &Value, summaries: &[String]) -> Answer {
    let (count, what) = (summaries.len(), "the program's output");
    let Some(object) = value.as_object() else { return numbers(value, count, what) };
    if summaries.iter().all(|name| object.get(name).is_some_and(|value| number(value).is_some())) {
        return Ok(summaries.iter().filter_map(|name| number(&object[name])).collect());
    }
    match (object.get("error"), object.get("x")) {
        (Some(error), _) if !error.is_null() => Err(error_text(error)),
        (_, Some(x)) => numbers(x, count, "x of the program's output"),
        _ => {
            let missing =
                summaries.iter().find(|&name| object.get(name).and_then(number).is_none());
            let missing = missing.map_or("x", String::as_str);
            Err(format!("the program's output has no number {missing}, and neither x nor error"))
        }
    }
}

fn once_text(text: &str, summaries: &[String]) -> Answer {
    let lines = text.lines().map(str::trim);
    let mut lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#')).peekable();
    let first = lines.next().map_or(Vec::new(), fields);
    // Names that look like numbers are names if they are just the summaries'.
    let known = first.iter().eq(summaries) && lines.peek().is_some();
    let named = known || first.iter().any(|field| plain_number(field).is_none());
    let (names, first) = if named { (first, Vec::new()) } else { (Vec::new(), first) };
    let values: Result<Vec<f64>, String> = first
        .into_iter()
        .chain(lines.flat_map(fields))
        .map(|field| {
            let shown = capped(&field.chars().take(60).collect::<String>());
            plain_number(&field)
                .ok_or_else(|| format!("the program's output has {shown}, no number"))
        })
        .collect();
    let values = values?;
    // In reverse, so that of equal names the first counts.
    let all: HashMap<&str, usize> =
        names.iter().enumerate().rev().map(|(i, name)| (&**name, i)).collect();
    let places: Option<Vec<usize>> =
        summaries.iter().map(|name| all.get(&**name).copied()).collect();
    match places {
        Some(places) if !names.is_empty() && values.len() == names.len() => {
            Ok(places.iter().map(|&place| values[place]).collect())
        }
        None if summaries.iter().any(|known| all.contains_key(&**known)) => {
            let missing = summaries.iter().find(|known| !all.contains_key(&***known));
            let missing = missing.map_or("", String::as_str);
            Err(format!(
                "the program's output has names for its numbers, but {missing} is not among them"
            ))
        }
        _ if values.len() == summaries.len() => Ok(values),
        _ => Err(format!(
            "the program's output has {} numbers, but there are {} summaries",
            values.len(),
            summaries.len()
        )),
    }
}

/// What stands between commas, semicolons or blanks; between quotes they are as good as letters.
fn fields(line: &str) -> Vec<Cow<'_, str>> {
    let between = cells(line, &[',', ';']);
    if between.len() > 1 {
        return between.into_iter().map(|cell| cell.text).collect();
    }
    if line.contains('"') {
        let between = cells(line, &[' ', '\t']).into_iter();
        return between.filter(|c| c.quoted || !c.text.is_empty()).map(|c| c.text).collect();
    }
    line.split_whitespace().map(Cow::Borrowed).collect()
}

/// A number as C, Fortran or R write it.
fn plain_number(field: &str) -> Option<f64> {
    match field {
        "NA" => Some(f64::NAN),
        _ => field.parse().ok().or_else(|| field.replace(['d', 'D'], "e").parse().ok()),
    }
}

/// The answer of a UM-Bridge server to /Evaluate, whose parts must have the sizes that it has announced.
pub fn umbridge_reply(status: u16, body: &[u8], sizes: &[usize]) -> Answer {
    let reply = umbridge_body(status, body)?;
    let Some(output) = reply.get("output").and_then(Value::as_array) else {
        return Err(format!("the model's answer has no output: {}", shown(&reply)));
    };
    // A part of one number may be without brackets.
    let parts = output.iter().map(|part| match part {
        Value::Array(numbers) => &numbers[..],
        single => std::slice::from_ref(single),
    });
    let found: Vec<usize> = parts.clone().map(<[Value]>::len).collect();
    if found != sizes {
        let [found, sizes] = [&found[..], sizes].map(sizes_shown);
        return Err(format!(
            "output of the model's answer has sizes {found}, but the model has announced {sizes}: repair the model"
        ));
    }
    let flat: Vec<Value> = parts.flatten().cloned().collect();
    let count = flat.len();
    numbers(&Value::Array(flat), count, "output of the model's answer")
}

/// Sizes, cut short for a message.
fn sizes_shown(sizes: &[usize]) -> String {
    shown(&Value::from(sizes))
}

/// The sizes of a UM-Bridge model's inputs or outputs.
pub fn umbridge_sizes(status: u16, body: &[u8], key: &str) -> Result<Vec<usize>, String> {
    let reply = umbridge_body(status, body)?;
    let sizes = reply.get(key).and_then(Value::as_array);
    let sizes = sizes.and_then(|sizes| {
        sizes.iter().map(|size| size.as_u64().and_then(|size| usize::try_from(size).ok())).collect()
    });
    sizes.ok_or_else(|| format!("the model's answer has no {key}: {}", shown(&reply)))
}

/// The object of a good answer, or the error of another one.
fn umbridge_body(status: u16, body: &[u8]) -> Result<Value, String> {
    let value = read(body);
    if let Some(error) = value.as_ref().ok().and_then(|value| value.get("error")) {
        let text = |key: &str| error.get(key).map(error_text);
        return Err(match (text("type"), text("message")) {
            (Some(kind), Some(message)) => format!("the model reports {kind}: {message}"),
            _ => format!("the model reports {}", error_text(error)),
        });
    }
    if status != 200 {
        let text = capped(&String::from_utf8_lossy(body));
        let text = if text.is_empty() { "no text".to_owned() } else { text };
        return Err(format!("the model answered with status {status}: {text}"));
    }
    value.map_err(|error| format!("the model's answer is no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(names: &[&str]) -> Vec<String> {
        names.iter().map(|&name| name.to_owned()).collect()
    }

    #[test]
    fn lines_of_workers() {
        let found = worker_line(br#"[{"id":7,"x":[1,2]},{"id":8.0,"error":"no"}]"#, 2).unwrap();
        assert_eq!(found, [(7, Ok(vec![1.0, 2.0])), (8, Err("no".to_owned()))]);
        assert_eq!(
            worker_line(br#"{"id":1,"x":3,"error":null}"#, 1).unwrap(),
            [(1, Ok(vec![3.0]))]
        );
        let told = |line: &str| worker_line(line.as_bytes(), 2).unwrap().remove(0).1.unwrap_err();
        assert!(told(r#"{"id":1,"x":[1]}"#).contains("has 1 numbers, but there are 2 summaries"));
        assert!(
            told(r#"{"id":1,"x":[1,"2"]}"#)
                .contains("number 2 of x of the worker's answer is \"2\"")
        );
        assert!(told(r#"{"id":1}"#).contains("neither x nor error"));
        for line in ["[1]", "{}", r#"{"id":-1,"x":[]}"#, r#"{"id":1.5}"#, r#"{"id":"1"}"#, "{"] {
            assert!(worker_line(line.as_bytes(), 2).is_err(), "{line}");
        }
    }

    #[test]
    fn outputs_of_programs() {
        let ab = names(&["a", "b"]);
        for text in [
            "[1, 2]",
            r#"{"x": [1, 2]}"#,
            r#"{"b": 2, "c": 0, "a": 1}"#,
            "1 2",
            "1\n2\n",
            "1,2",
            "# comment\n1.0D0;\t2.",
            "a,b\n1,2\n",
            "b c a\n2 0 1",
            "\"\",\"b\",\"a\"\n\"1\",2,1",
            "\u{feff}first second\n1 2",
            "\"b\" \"c d\"  \"a\"\n2 0 1",
        ] {
            assert_eq!(once_output(text.as_bytes(), &ab), Ok(vec![1.0, 2.0]), "{text}");
        }
        assert!(once_output(b"nan -Inf", &ab).unwrap()[0].is_nan());
        let odd = names(&["x(0,1)", "2"]);
        for text in ["\"2\",\"x(0,1)\"\n2,1", "\"x(0,1)\" 2\n1 2", "1 2"] {
            assert_eq!(once_output(text.as_bytes(), &odd), Ok(vec![1.0, 2.0]), "{text}");
        }
        let numbers = names(&["3", "4"]);
        assert_eq!(once_output(b"3,4\n1,2", &numbers), Ok(vec![1.0, 2.0]));
        assert_eq!(once_output(b"3,4", &numbers), Ok(vec![3.0, 4.0]));
        for (text, part) in [
            ("", "no output"),
            ("[1", "no JSON"),
            ("[1, 2, 3]", "3 numbers, but there are 2"),
            (r#"{"error": "too cold"}"#, "too cold"),
            (r#"{"a": 1}"#, "no number b"),
            ("1 2 3", "3 numbers"),
            ("a b\n1 two", "two, no number"),
            ("hello", "0 numbers"),
        ] {
            let told = once_output(text.as_bytes(), &ab).unwrap_err();
            assert!(told.contains(part), "{text}: {told}");
        }
    }

    #[test]
    fn replies_of_um_bridge() {
        let body = br#"{"output":[[1],[2,3]]}"#;
        assert_eq!(umbridge_reply(200, body, &[1, 2]), Ok(vec![1.0, 2.0, 3.0]));
        assert!(umbridge_reply(200, br#"{"output":[[nan]]}"#, &[1]).unwrap()[0].is_nan());
        assert_eq!(umbridge_reply(200, br#"{"output":[1,[2]]}"#, &[1, 1]), Ok(vec![1.0, 2.0]));
        // As many numbers as there should be, but are they in their places?
        for sizes in [&[2, 1][..], &[3], &[1, 1, 1], &[1, 2, 0], &[]] {
            let told = umbridge_reply(200, body, sizes).unwrap_err();
            assert!(told.contains("has sizes [1,2], but the model has announced ["), "{told}");
        }
        for (status, body, part) in [
            (500, "out of memory", "status 500: out of memory"),
            (500, "", "status 500: no text"),
            (
                400,
                r#"{"error":{"type":"InvalidInput","message":"cold"}}"#,
                "reports InvalidInput: cold",
            ),
            (200, r#"{"error":"cold"}"#, "reports cold"),
            (200, "<html>", "no JSON"),
            (200, "{}", "has no output"),
            (200, r#"{"output":[[1,2]]}"#, "sizes [2], but the model has announced [3]"),
        ] {
            let told = umbridge_reply(status, body.as_bytes(), &[3]).unwrap_err();
            assert!(told.contains(part), "{body}: {told}");
        }
        assert_eq!(umbridge_sizes(200, br#"{"inputSizes":[2,1]}"#, "inputSizes"), Ok(vec![2, 1]));
        assert!(umbridge_sizes(200, br#"{"inputSizes":[-2]}"#, "inputSizes").is_err());
    }
}
