//! `didyma bench step`, help, and the environment.

use super::{didyma, refused, text};
use std::process::Command;

#[test]
fn json_has_every_key_and_consistent_numbers() {
    let args = ["bench", "step", "--task", "two-moons", "--method", "likelihood", "--threads", "1"];
    let output = didyma(&[&args[..], &["--seconds", "0.2", "--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let keys = [
        "task",
        "method",
        "device",
        "batch",
        "seeds",
        "threads",
        "ms_per_step",
        "pairs_per_step",
        "pairs_per_second",
        "steps_per_second",
        "floor_ms",
        "parameters",
        "flops_per_step",
        "peak_gflops",
        "fraction_of_peak",
        "target",
        "planning_ms",
        "reduction_ms",
        "estimator_share",
        "peak_rss_mb",
        "kernels",
        "steps",
        "fastest_ms",
    ];
    let object = json.as_object().expect("an object");
    assert!(keys.iter().all(|&key| object.contains_key(key)) && object.len() == keys.len());
    assert_eq!(
        (json["task"].as_str(), json["method"].as_str()),
        (Some("two-moons"), Some("likelihood"))
    );
    assert_eq!((json["threads"].as_u64(), json["parameters"].as_u64()), (Some(1), Some(97_480)));
    let number = |key: &str| json[key].as_f64().expect("a number");
    assert_eq!(number("pairs_per_step"), 100.0);
    let rate = number("pairs_per_step") / number("ms_per_step") * 1e3;
    assert!((rate / number("pairs_per_second") - 1.0).abs() < 1e-9);
    let gflops = number("flops_per_step") / number("ms_per_step") / 1e6;
    assert!((gflops / number("peak_gflops") / number("fraction_of_peak") - 1.0).abs() < 1e-9);
}

#[test]
fn bad_arguments_name_themselves_and_what_is_allowed() {
    for (args, parts) in [
        (
            &["bench", "step", "--task", "three-moons"][..],
            &["--task", "two-moons", "hodgkin-huxley"][..],
        ),
        (&["bench", "step", "--method", "grr2"], &["--method", "tgrr", "likelihood"]),
        (&["bench", "step", "--threads", "0"], &["--threads", "between 1 and 1024"]),
        (&["bench", "step", "--threads", "many"], &["--threads", "many", "whole number"]),
        (&["bench", "step", "--seconds", "nan"], &["--seconds", "above 0"]),
        (&["bench", "step", "--seconds", "-1"], &["--seconds"]),
        (&["bench", "step", "--alpha", "0"], &["alpha is 0", "between 0.01 and 8"]),
        (&["bench", "step", "--alpha", "best"], &["--alpha", "a number, or paper"]),
        (&["bench", "step", "--top", "1"], &["top is 1", "base (2)"]),
        (&["bench", "step", "--m0", "0"], &["m0 is 0"]),
        (&["bench", "step", "--pool", "100"], &["level 4", "needs 128", "can give 99"]),
        (&["bench", "step", "--pool", "1"], &["--pool", "between 2"]),
        (&["bench", "step", "--method", "nested", "--atoms", "0"], &["atoms is 0"]),
        (&["bench", "step", "--coupling", "tight"], &["--coupling", "inclusive"]),
        (&["bench", "stepp"], &["stepp", "step"]),
        (&["infr"], &["infr"]),
    ] {
        refused(args, parts);
    }
}

#[test]
fn unknown_kernels_are_refused() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    let output =
        command.args(["bench", "step"]).env("DIDYMA_KERNELS", "mmx").output().expect("runs");
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{message}");
    assert!(message.contains("DIDYMA_KERNELS") && message.contains("scalar"), "{message}");
}

#[test]
fn help_teaches() {
    let help = text(&didyma(&["bench", "step", "--help"]).stdout);
    assert!(
        ["--task", "lotka-volterra", "--json", "Examples"].iter().all(|part| help.contains(part))
    );
    // No argument at all shows the help.
    let shown = didyma(&[]);
    assert!(text(&shown.stderr).contains("Usage") && shown.status.code() == Some(2));
}

/// Planning and reductions are a small part of a step. The bound is the promise, ten times what is measured.
#[test]
fn the_estimator_takes_less_than_three_percent_of_a_step() {
    let output = didyma(&["bench", "step", "--threads", "1", "--seconds", "0.5", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    let share = json["estimator_share"].as_f64().expect("a number");
    assert!(share > 0.0 && share < 0.03, "{share}");
    assert_eq!(json["target"], "the nested loss with 128 inner samples");
}
