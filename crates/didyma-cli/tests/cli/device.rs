//! `--device` and `didyma devices`. Where there is no GPU, what is said of it; where there is one, that it is found.

use super::{Folder, didyma, refused, text, tiny};
use std::path::Path;

/// Whether `didyma devices` found a GPU that can be used.
fn has_gpu() -> bool {
    let output = didyma(&["devices", "--json"]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one JSON object");
    assert!(json["cpu"]["cores"].as_u64() > Some(0), "{json}");
    let found = json["cuda"].as_array().expect("a list");
    assert_eq!(found.is_empty(), json["cuda_unavailable"].is_string(), "a GPU, or why not: {json}");
    found.first().is_some_and(|gpu| gpu["problem"].is_null())
}

#[test]
fn devices_lists_the_cpu_and_gpus_or_why_there_is_none() {
    let output = didyma(&["devices"]);
    assert!(output.status.success());
    let said = text(&output.stdout);
    assert!(said.starts_with("cpu    CPU ("), "{said}");
    let expected = if has_gpu() { "multiprocessors" } else { "cuda   none: " };
    assert!(said.contains(expected), "{said}");
}

#[test]
fn a_device_that_is_not_there_is_refused_before_anything_is_made() {
    let names = ["--device", "auto", "cpu", "cuda"];
    refused(&["infer", "two-moons", "--device", "gpu"], &names);
    refused(&["bench", "step", "--device", "tpu"], &names);
    let folder = Folder::new("device");
    let out = &folder.file("run");
    let score = ["infer", "two-moons", "--method", "snse", "--device", "cuda", "--out", out];
    refused(&score, &["--device is cuda", "snse", "--device cpu"]);
    if has_gpu() {
        eprintln!("skipped: the sentences of a machine without a GPU");
    } else {
        let infer = ["infer", "two-moons", "--device", "cuda", "--out", out];
        refused(&infer, &["--device is cuda, but ", "--device cpu"]);
        refused(
            &["bench", "step", "--device", "cuda"],
            &["--device is cuda, but ", "--device cpu"],
        );
    }
    assert!(!Path::new(out).exists(), "nothing was begun");
}

#[test]
fn a_run_says_where_it_computes_and_may_go_on_elsewhere() {
    let folder = Folder::new("device-resume");
    let out = &folder.file("run");
    let begun = didyma(&tiny("gaussian-linear", out, &["--device", "auto"]));
    assert!(begun.status.success(), "{}", text(&begun.stderr));
    let device = if has_gpu() { " on NVIDIA" } else { " on CPU (" };
    assert!(text(&begun.stderr).contains(device), "{}", text(&begun.stderr));
    let again = didyma(&["resume", out, "--device", "cpu"]);
    assert!(again.status.success(), "{}", text(&again.stderr));
}
