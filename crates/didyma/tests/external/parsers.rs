//! What programs answer, as bytes: anything can be read, and what is right is read rightly.

use didyma::simulator::program::parse::{once_output, umbridge_reply, umbridge_sizes, worker_line};
use proptest::prelude::*;

/// Bytes, but of the kind that gets far.
fn nearly_json() -> impl Strategy<Value = Vec<u8>> {
    let tokens = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "\"",
        "\\",
        "\"id\"",
        "\"x\"",
        "\"error\"",
        "\"output\"",
        "NaN",
        "-inf",
        "null",
        "1",
        "-0.5e3",
        ".5",
        "1e999",
        "\"a\"",
        " ",
        "\n",
        "\u{e9}",
        "\0",
        "a",
        ";",
        "1.0D0",
        "\"\\u0000NaN\"",
        "true",
    ]);
    let text = prop::collection::vec(tokens, 0..40).prop_map(|tokens| tokens.concat().into_bytes());
    prop_oneof![text, prop::collection::vec(any::<u8>(), 0..200)]
}

fn number() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => prop::num::f64::NORMAL,
        1 => prop::sample::select(vec![f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 0.0, -0.0]),
    ]
}

/// As Python writes it.
fn written(numbers: &[f64]) -> String {
    let one = |v: &f64| match v {
        v if v.is_nan() => "NaN".to_owned(),
        v if v.is_infinite() => if *v > 0.0 { "Infinity" } else { "-Infinity" }.to_owned(),
        v => format!("{v:?}"),
    };
    format!("[{}]", numbers.iter().map(one).collect::<Vec<_>>().join(", "))
}

fn same(found: &[f64], expected: &[f64]) -> bool {
    let equal = |(a, b): (&f64, &f64)| a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
    found.len() == expected.len() && found.iter().zip(expected).all(equal)
}

proptest! {
    #[test]
    fn nothing_panics(bytes in nearly_json(), status in prop::sample::select(vec![200u16, 400, 500, 503])) {
        let names = ["a".to_owned(), "x".to_owned()];
        let _ = worker_line(&bytes, 2);
        let _ = umbridge_sizes(status, &bytes, "output");
        if let Ok(x) = once_output(&bytes, &names) {
            prop_assert_eq!(x.len(), 2);
        }
        if let Ok(x) = umbridge_reply(status, &bytes, &[2]) {
            prop_assert!(x.len() == 2 && status == 200);
        }
    }

    #[test]
    fn answers_of_workers_come_back(x in prop::collection::vec(number(), 0..9), id in 0u64..1 << 53, error in ".*") {
        let text = serde_json::to_string(&error).unwrap();
        let line = format!("[{{\"id\": {id}, \"x\": {}}}, {{\"error\": {text}, \"id\":{id}}}]\n", written(&x));
        let found = worker_line(line.as_bytes(), x.len()).unwrap();
        prop_assert_eq!(found[0].0, id);
        prop_assert!(same(found[0].1.as_ref().unwrap(), &x));
        prop_assert!(found[1].1.is_err());
        prop_assert!(worker_line(line.as_bytes(), x.len() + 1).unwrap()[0].1.is_err() || x.len() == 1);
    }

    #[test]
    fn outputs_of_programs_come_back(x in prop::collection::vec(number(), 1..9)) {
        let names: Vec<String> = (0..x.len()).map(|i| format!("s{i}")).collect();
        let numbers = x.iter().map(|v| format!("{v:?}")).collect::<Vec<_>>();
        let reversed: Vec<String> = numbers.iter().rev().cloned().collect();
        let mut header = names.clone();
        header.reverse();
        for text in [
            written(&x),
            format!("{{\"x\": {}}}", written(&x)),
            numbers.join("\n"),
            format!("{}\n{}", header.join(","), reversed.join(",")),
        ] {
            prop_assert!(same(&once_output(text.as_bytes(), &names).unwrap(), &x), "{}", text);
        }
    }

    #[test]
    fn replies_of_servers_come_back(x in prop::collection::vec(number(), 0..9), cut in 0usize..9) {
        let (a, b) = x.split_at(cut.min(x.len()));
        let body = format!("{{\"output\": [{}, {}]}}", written(a), written(b));
        prop_assert!(same(&umbridge_reply(200, body.as_bytes(), &[a.len(), b.len()]).unwrap(), &x));
    }
}
