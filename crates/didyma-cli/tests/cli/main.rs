//! The command line as a user meets it: output, help, and what happens to bad input.

mod bench;
mod estimators;
mod levels;
mod problems;

use serde_json::Value;
use std::process::{Command, Output};

fn didyma(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    command.args(args).env_remove("DIDYMA_KERNELS").output().expect("the binary was built")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn json(args: &[&str]) -> Value {
    let output = didyma(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Exit code 2 and a sentence with these parts.
fn refused(args: &[&str], parts: &[&str]) {
    let output = didyma(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
    assert!(!message.contains("panicked"), "{message}");
}
