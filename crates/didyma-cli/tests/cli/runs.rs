//! `didyma infer`: what it leaves, for every method, and what it refuses.

use super::{Folder, didyma, done, expect_same, finished, json, number, refused, text, tiny};
use serde_json::Value;
use std::path::Path;

fn keys(object: &Value) -> Vec<&str> {
    object.as_object().expect("an object").keys().map(String::as_str).collect()
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
}

/// What is promised of round i + 1 of a tiny run.
fn expect_round(round: &Value, i: usize) {
    let promised = [
        "round",
        "simulations",
        "failures",
        "epochs",
        "steps",
        "stop_reason",
        "seconds_simulate",
        "seconds_train",
        "train_loss",
        "validation_loss",
        "c2st",
        "c2st_error",
        "mmd2",
        "lmd",
        "nlog",
        "outside_prior",
    ];
    let found = keys(round);
    assert!(promised.iter().all(|key| found.contains(key)), "{found:?}");
    assert_eq!(round["round"], i + 1);
    assert_eq!((&round["simulations"], &round["failures"]), (&120.into(), &0.into()));
    assert_eq!(number(&round["outside_prior"]), 0.0, "{round}");
    let c2st = number(&round["c2st"]);
    assert!((0.4..=1.0).contains(&c2st), "{round}");
    for key in ["c2st_error", "mmd2", "lmd", "nlog", "train_loss", "validation_loss"] {
        assert!(round[key].is_number(), "{key}: {round}");
    }
    // Whole epochs until there are 60 steps, or fewer; four times that in the last round.
    let (epochs, steps) = (number(&round["epochs"]) as u64, number(&round["steps"]) as u64);
    let cycles = if i == 2 { 4 } else { 1 };
    assert!(epochs > 0 && steps % epochs == 0, "{round}");
    assert!(steps < cycles * (60 + steps / epochs), "{round}");
}

#[test]
fn the_summary_has_what_is_promised() {
    let summary: Value = serde_json::from_str(&read(finished(), "summary.json")).expect("JSON");
    let promised = [
        "version",
        "task",
        "method",
        "profile",
        "seed",
        "rounds",
        "seconds_total",
        "peak_rss_mb",
        "pairs_per_second",
    ];
    let found = keys(&summary);
    assert!(promised.iter().all(|key| found.contains(key)), "{found:?}");
    let rounds = summary["rounds"].as_array().expect("a list");
    assert_eq!(rounds.len(), 3);
    for (i, round) in rounds.iter().enumerate() {
        expect_round(round, i);
    }
    assert!(number(&summary["pairs_per_second"]) > 0.0 && number(&summary["seconds_total"]) > 0.0);
    assert_eq!((&summary["task"], &summary["method"]), (&"two-moons".into(), &"tgrr".into()));
}

#[test]
fn samples_begin_with_the_configuration_and_other_commands_read_them() {
    let folder = Folder::new("samples");
    let csv = read(finished(), "posterior.csv");
    let comments: Vec<&str> = csv.lines().take_while(|line| line.starts_with('#')).collect();
    for part in
        ["# didyma 0", "# task = two-moons", "# seed = 1", "# flow.units = 8", "# samples = 300"]
    {
        assert!(comments.iter().any(|line| line.starts_with(part)), "{part}: {comments:?}");
    }
    assert_eq!(csv.lines().nth(comments.len()), Some("theta1,theta2"));
    assert_eq!(csv.lines().count(), comments.len() + 1 + 300);
    let (samples, reference) = (finished().join("posterior.csv"), folder.file("reference.csv"));
    done(&["reference", "two-moons", "-n", "300", "--out", &reference]);
    let samples = samples.to_str().expect("a plain path");
    let found = json(&["metrics", &reference, samples, "--task", "two-moons"]);
    assert!(number(&found["c2st"]) >= 0.4 && found["lmd"].is_number(), "{found}");
    let npz = std::fs::read(finished().join("posterior.npz")).expect("it is there");
    assert!(npz.starts_with(b"PK\x03\x04"));
    let told = String::from_utf8_lossy(&npz).into_owned();
    assert!(told.contains("theta1.npy") && told.contains("\"task\":\"two-moons\""));
}

#[test]
fn any_number_of_threads_gives_the_same_bytes() {
    let folder = Folder::new("threads");
    for threads in ["1", "2", "5"] {
        let dir = folder.file(threads);
        let found: Value = serde_json::from_str(&done(&tiny(
            "two-moons",
            &dir,
            &["--threads", threads, "--json"],
        )))
        .expect("one JSON object");
        assert_eq!((&found["finished"], &found["dir"]), (&true.into(), &dir.as_str().into()));
        expect_same(&dir, finished().to_str().expect("a plain path"), threads);
    }
}

/// One round is enough to tell that another seed and other settings are heard.
#[test]
fn another_seed_gives_other_samples() {
    let folder = Folder::new("seeds");
    let rows = |text: &str| text.lines().filter(|l| !l.starts_with('#')).collect::<String>();
    let dir = folder.file("run");
    done(&tiny("two-moons", &dir, &["--seed", "2", "--set", "rounds=1"]));
    let found = read(Path::new(&dir), "posterior.csv");
    assert!(rows(&found) != rows(&read(finished(), "posterior.csv")));
    assert!(!Path::new(&dir).join("round-2.safetensors").exists());
}

#[test]
fn every_method_and_both_profiles_run() {
    let folder = Folder::new("methods");
    let authors = "estimator.coupling=planted flow.bound=3 estimator.replacement=with \
                   train.split=pooled train.clip=5 train.patience=21 train.inner=batch";
    let authors: Vec<&str> = authors.split_whitespace().flat_map(|set| ["--set", set]).collect();
    let paper = ["--profile", "paper", "--set", "train.epochs=3"];
    let mut runs: Vec<(&str, Vec<&str>)> =
        ["tsnpe", "grr", "ru", "tru", "rr", "nested", "atomic", "npe"]
            .map(|m| (m, Vec::new()))
            .into();
    let score =
        ["--set", "score.units=16", "--set", "score.ode_steps=8", "--set", "truncation.draws=1000"];
    runs.push(("snse", score.to_vec()));
    runs.push(("snse", [&score[..], &paper].concat()));
    runs.push(("tgrr", paper.to_vec()));
    runs.push(("atomic", [&paper[..], &authors].concat()));
    for (i, (method, more)) in runs.into_iter().enumerate() {
        let dir = folder.file(&i.to_string());
        let more = [&["--method", method, "--set", "rounds=2", "--json"], &more[..]].concat();
        let found: Value =
            serde_json::from_str(&done(&tiny("two-moons", &dir, &more))).expect("JSON");
        assert_eq!((&found["method"], &found["finished"]), (&method.into(), &true.into()));
        let rounds = found["rounds"].as_array().expect("a list");
        let outside: Vec<f64> =
            rounds.iter().map(|round| number(&round["outside_prior"])).collect();
        match found["profile"].as_str() {
            Some("paper") => assert!(outside.iter().all(|share| (0.0..1.0).contains(share))),
            _ => assert_eq!(outside, [0.0, 0.0]),
        }
    }
}

/// Arguments that are refused, and what is told.
const BAD: &[(&[&str], &[&str])] = &[
    (&["--set", "nope=1"], &["nope", "didyma settings"]),
    (&["--set", "train=1"], &["train", "didyma settings"]),
    (&["--set", "=1"], &["no setting"]),
    (&["--set", "train.batch=0"], &["train.batch is 0", "between 1 and"]),
    (&["--set", "train.batch=x"], &["train.batch cannot be x"]),
    (&["--set", "train.batch=-5"], &["train.batch cannot be -5"]),
    (&["--set", "train.batch=1.5"], &["train.batch cannot be 1.5"]),
    (&["--set", "train.batch="], &["train.batch cannot be"]),
    (&["--set", "train.batch"], &["--set", "train.batch=200"]),
    (&["--set", "train.rate=0"], &["train.rate is 0"]),
    (&["--set", "train.rate=NaN"], &["train.rate cannot be NaN"]),
    (&["--set", "train.clip=-1"], &["clip"]),
    (&["--set", "train.validation_share=1"], &["train.validation_share is 1"]),
    (&["--set", "train.split=half"], &["train.split cannot be half", "fixed, newest, pooled"]),
    (&["--set", "samples=0"], &["samples is 0"]),
    (&["--set", "flow.units=0"], &["units"]),
    (&["--set", "flow.bound=-1"], &["bound"]),
    (&["--set", "coordinates.bend=0"], &["coordinates.bend is 0"]),
    (&["--set", "coordinates.space=flat"], &["coordinates.space cannot be flat", "unbounded"]),
    (&["--method", "tgrr", "--set", "estimator.m0=0"], &["m0 is 0"]),
    (
        &["--method", "tsnpe", "--set", "proposal=posterior"],
        &["proposal is posterior", "truncated"],
    ),
    (&["--set", "truncation.share=0"], &["truncation.share is 0"]),
    (&["--method", "snse", "--set", "score.units=0"], &["units"]),
    (
        &["--method", "tgrr", "--set", "density=score"],
        &["estimator.method is tgrr", "density=score"],
    ),
    (&["--set", "coordinates.theta=newest"], &["coordinates.theta is newest", "pool"]),
    (&["--set", "coordinates.theta=pool"], &["train.start is warm", "fresh"]),
    (&["--rounds", "0"], &["rounds is 0"]),
    (&["--rounds", "-1"], &["--rounds"]),
    (&["--rounds", "many"], &["--rounds", "many"]),
    (&["--simulations", "0"], &["simulations is 0"]),
    (&["--simulations", "2"], &["simulations is 2", "between 10"]),
    (
        &["--simulations", "10", "--set", "train.validation_share=0.05"],
        &["train.validation_share is"],
    ),
    (&["--method", "best"], &["best", "tgrr"]),
    (&["--profile", "best"], &["best", "paper"]),
    (&["--seed", "-1"], &["--seed"]),
    (&["--threads", "0"], &["--threads"]),
];

#[test]
fn bad_settings_are_named_and_leave_nothing_behind() {
    let folder = Folder::new("settings");
    let dir = folder.file("deep/run");
    for &(more, parts) in BAD {
        refused(&[&["infer", "two-moons", "--out", &dir], more].concat(), parts);
        assert!(!Path::new(&folder.file("deep")).exists(), "{more:?} left something");
    }
    refused(&["infer", "three-moons", "--out", &dir], &["three-moons", "two-moons"]);
}

#[test]
fn without_a_name_a_run_takes_the_next_free_directory() {
    let folder = Folder::new("names");
    // TGRR is the default.
    for name in ["mg1-tgrr-7", "mg1-tgrr-7-2"] {
        let mut command = std::process::Command::new(env!("CARGO_BIN_EXE_didyma"));
        command.current_dir(&folder.0).args(["infer", "mg1", "--seed", "7"]);
        command.args(&super::TINY[2..]).args(["--set", "rounds=1"]);
        let output = command.output().expect("the binary was built");
        assert!(output.status.success(), "{}", text(&output.stderr));
        assert!(folder.0.join("runs").join(name).join("posterior.csv").exists(), "{name}");
    }
    let output = didyma(&["infer"]);
    assert_eq!(output.status.code(), Some(2));
}

/// A terminal that went away is no reason to stop: what is told goes nowhere, and the run goes on.
#[cfg(target_os = "linux")]
#[test]
fn nobody_needs_to_read_the_progress() {
    let folder = Folder::new("unread");
    let dir = folder.file("run");
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("Linux has it");
    let status = std::process::Command::new(env!("CARGO_BIN_EXE_didyma"))
        .args(tiny("two-moons", &dir, &[]))
        .stderr(full)
        .stdout(std::process::Stdio::null())
        .status()
        .expect("it can be run");
    assert!(status.success(), "{status}");
}
