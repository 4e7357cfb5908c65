//! `didyma show`, `sample`, `evaluate`, `log-density` and `settings`.

use super::{Folder, didyma, done, finished, json, number, refused, text};
use serde_json::Value;

fn run() -> &'static str {
    finished().to_str().expect("a plain path")
}

/// Rows of a table on the terminal.
fn rows(csv: &str) -> Vec<Vec<f64>> {
    let row = |line: &str| line.split(',').map(|v| v.parse().expect("a number")).collect();
    csv.lines().skip(1).map(row).collect()
}

#[test]
fn a_run_is_shown() {
    let shown = done(&["show", run()]);
    for part in [
        "two-moons by tgrr, seed 1: 3 of 3 rounds, 360 simulations",
        "round  3/3",
        "theta2",
        "uniform -1 to 1",
        "posterior.csv",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    let found = json(&["show", run()]);
    let lines = found["parameters"].as_array().expect("a list");
    assert_eq!((lines.len(), &lines[0]["name"]), (2, &"theta1".into()));
    for line in lines {
        let quantiles: Vec<f64> =
            line["quantiles"].as_array().expect("a list").iter().map(number).collect();
        assert!(quantiles.is_sorted() && quantiles.iter().all(|q| q.abs() < 1.0), "{line}");
        let (mean, sd) = (number(&line["mean"]), number(&line["sd"]));
        assert!(mean.abs() < 1.0 && sd > 0.0 && sd < 1.0, "{line}");
    }
    // Three rounds of 120 simulations do not find the crescents, and it is told.
    let warnings = found["warnings"].as_array().expect("a list");
    assert_eq!((&found["finished"], warnings.len()), (&true.into(), 1));
    assert!(warnings[0].as_str().is_some_and(|w| w.contains("reference")), "{warnings:?}");
}

#[test]
fn samples_can_be_drawn_and_have_a_density() {
    let folder = Folder::new("draws");
    let (a, b) = (folder.file("a.csv"), folder.file("density.csv"));
    done(&["sample", run(), "-n", "700", "--seed", "3", "--threads", "1", "--out", &a]);
    let csv = std::fs::read_to_string(&a).expect("it was written");
    assert_eq!(csv, done(&["sample", run(), "-n", "700", "--seed", "3", "--threads", "2"]));
    assert_ne!(csv, done(&["sample", run(), "-n", "700", "--seed", "4"]));
    // A net: one of 512 samples in every interval of probability, whatever the number of threads.
    let spread = ["sample", run(), "-n", "700", "--seed", "3", "--points", "sobol", "--threads"];
    let even = done(&[&spread[..], &["1"]].concat());
    assert!(even != csv && even == done(&[&spread[..], &["2"]].concat()));
    refused(&["sample", run(), "--points", "even"], &["--points", "random", "sobol"]);
    let samples = rows(&csv);
    assert!(samples.len() == 700 && samples.iter().flatten().all(|t| t.abs() < 1.0));
    let told = done(&["log-density", run(), "--theta", &a, "--out", &b]);
    assert!(told.contains("700 rows"), "{told}");
    let found = rows(&std::fs::read_to_string(&b).expect("it was written"));
    assert!(found.iter().all(|row| row.len() == 3 && row[2].is_finite()));
    // Columns are found by their names, and columns of other things are left aside.
    let named = folder.write("named.csv", "x,theta2,theta1\n7,0.5,0.25\n7,-1.5,0\n7,0,1\n");
    let output = didyma(&["log-density", run(), "--theta", &named]);
    let csv = text(&output.stdout);
    assert!(csv.starts_with("theta1,theta2,log_density\n0.25,0.5,"), "{csv}");
    let densities: Vec<f64> = rows(&csv).iter().map(|row| row[2]).collect();
    assert!(densities[0].is_finite());
    assert_eq!(densities[1..], [f64::NEG_INFINITY; 2], "outside, and on the bound: {csv}");
    let note = text(&output.stderr);
    assert!(note.contains("2 rows lie outside the prior"), "{note}");
}

#[test]
fn other_observations_are_checked() {
    let folder = Folder::new("observations");
    let near = folder.write("near.csv", "0.0,0.1\n");
    let far = folder.write("far.csv", "x1,x2\n50,0\n");
    let output = didyma(&["sample", run(), "-n", "50", "--x", &near]);
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
    assert_ne!(text(&output.stdout), done(&["sample", run(), "-n", "50"]));
    // Its former name.
    let former = done(&["sample", run(), "-n", "50", "--observation", &near]);
    assert_eq!(text(&output.stdout), former);
    let output = didyma(&["sample", run(), "-n", "50", "--x", &far]);
    let told = text(&output.stderr);
    assert!(
        output.status.success() && told.contains("warning: of this observation x1 is 50"),
        "{told}"
    );
    assert_eq!(rows(&text(&output.stdout)).len(), 50);
    let long = folder.write("long.csv", "1,2,3\n");
    let nan = folder.write("nan.csv", "1,NaN\n");
    let other = folder.write("other.csv", "a,b\n0.0,0.1\n");
    // Columns go by their names, wherever they stand.
    let named = folder.write("named.csv", "theta1,x2,x1\n9,0.1,0.0\n");
    let by_place = done(&["sample", run(), "-n", "50", "--x", &near]);
    assert_eq!(done(&["sample", run(), "-n", "50", "--x", &named]), by_place);
    let missing = folder.file("missing.csv");
    for (file, parts) in [
        (&long, &["long.csv", "3 numbers on a line", "2 are needed: x1, x2"][..]),
        (&other, &["other.csv", "needs the columns x1, x2"]),
        (&nan, &["nan.csv", "line 1", "not finite"]),
        (&missing, &["missing.csv", "could not read"]),
    ] {
        refused(&["sample", run(), "--x", file], parts);
    }
}

#[test]
fn many_observations_are_drawn_at_and_paired_with_parameters() {
    let folder = Folder::new("many");
    let many = folder.write("many.csv", "x1,x2\n0.0,0.1\n0.2,-0.1\n0.0,0.1\n");
    let csv = done(&["sample", run(), "-n", "30", "--x", &many]);
    assert!(csv.starts_with("observation,theta1,theta2\n1,"), "{csv}");
    let found = rows(&csv);
    let numbers: Vec<f64> = found.iter().map(|row| row[0]).collect();
    assert_eq!(numbers, [[1.0; 30], [2.0; 30], [3.0; 30]].concat());
    let draws: Vec<&[f64]> = found.iter().map(|row| &row[1..]).collect();
    assert_ne!(draws[..30], draws[60..], "equal observations have draws of their own");
    // Of the first observation they are those that it has alone.
    let one = folder.write("one.csv", "0.0,0.1\n");
    assert_eq!(rows(&done(&["sample", run(), "-n", "30", "--x", &one])), draws[..30]);
    let out = folder.file("draws.csv");
    let told = done(&["sample", run(), "-n", "30", "--x", &many, "--out", &out]);
    assert!(told.contains("90 samples of 3 observations written to"), "{told}");

    let pairs =
        folder.write("pairs.csv", "theta1,theta2,x1,x2\n0.5,0.25,0.0,0.1\n0.5,0.25,0.2,-0.1\n");
    let density = |theta: &str, x: &str| -> Vec<f64> {
        let csv = done(&["log-density", run(), "--theta", theta, "--x", x]);
        rows(&csv).iter().map(|row| row[2]).collect()
    };
    let (paired, shared) = (density(&pairs, &pairs), density(&pairs, &one));
    assert!(paired[0] == shared[0] && paired[0] != paired[1] && shared[0] == shared[1]);
    refused(
        &["log-density", run(), "--theta", &pairs, "--x", &many],
        &["--x: 3 rows, where --theta has 2: give one row"],
    );
    let far = folder.write("far.csv", "0.0,0.1\n0.0,70\n0.0,80\n");
    let output = didyma(&["sample", run(), "-n", "5", "--x", &far]);
    let told = text(&output.stderr);
    assert!(told.contains("warning: 2 of 3 observations are outside of all simulations"), "{told}");
    assert!(told.contains("of observation 2, the first of them, x2 is 70,"), "{told}");
}

#[test]
fn a_posterior_is_evaluated() {
    let folder = Folder::new("evaluate");
    let own = json(&["evaluate", run()]);
    assert_eq!((&own["task"], &own["rounds"]), (&"two-moons".into(), &3.into()));
    let shown = json(&["show", run()]);
    // The same seed, samples and reference as in the run: the same scores.
    for key in ["c2st", "c2st_error", "mmd2", "lmd", "nlog"] {
        assert_eq!(own[key], shown["rounds"][2][key], "{key}");
    }
    let reference = folder.file("reference.csv");
    done(&["sample", run(), "-n", "400", "--seed", "5", "--out", &reference]);
    let found = json(&["evaluate", run(), "--reference", &reference]);
    // The posterior against itself, 400 against 400: a standard error of about 0.5/√800 = 0.018.
    assert!((number(&found["c2st"]) - 0.5).abs() < 0.09, "{found}");
    let told = done(&["evaluate", run(), "--reference", &reference]);
    let c2st = ["c2st", "c2st_error"].map(|key| format!("{:.4}", number(&found[key])));
    for part in ["reference.csv", &c2st.join(" ± "), "(over 4 classifier seeds)"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let few = folder.write("few.csv", "0.1,0.2\n");
    refused(&["evaluate", run(), "--reference", &few], &["reference has 1 rows"]);
    let wrong = folder.write("wrong.csv", "a,b\n0.1,0.2\n");
    refused(&["evaluate", run(), "--reference", &wrong], &["--reference", "theta1, theta2"]);
    refused(&["log-density", run(), "--theta", &wrong], &["--theta", "theta1, theta2"]);
    refused(&["log-density", run(), "--theta", &folder.file("no.csv")], &["no.csv"]);
    refused(&["sample", run(), "--out", &folder.file("no/x.csv")], &["does not exist"]);
    refused(&["sample", run(), "-n", "0"], &["between 1 and"]);
}

#[test]
fn settings_are_listed_as_they_would_be() {
    let value = |list: &Value, key: &str| {
        let lines = list["settings"].as_array().expect("a list");
        let line = lines.iter().find(|line| line["key"] == key).unwrap_or_else(|| panic!("{key}"));
        line["value"].as_str().expect("text").to_owned()
    };
    let paper =
        json(&["settings", "--profile", "paper", "--method", "atomic", "--set", "train.batch=50"]);
    assert_eq!(value(&paper, "rounds"), "20");
    assert_eq!(value(&paper, "estimator.method"), "atomic");
    assert_eq!(value(&paper, "train.batch"), "50");
    assert_eq!(value(&paper, "train.clip"), "none");
    assert!(done(&["settings"]).contains("coordinates.space         unbounded"));
    refused(&["settings", "--set", "nope=1"], &["nope"]);
    // What the run says of itself is what was asked for.
    let shown = json(&["show", run()]);
    assert_eq!(shown["config"]["flow"]["units"], 8);
}

#[test]
fn directories_without_a_run_are_refused() {
    let folder = Folder::new("no-run");
    let theta = folder.write("theta.csv", "0.1,0.2\n");
    let missing = folder.file("missing");
    for dir in [&missing, folder.0.to_str().expect("a plain path")] {
        for command in ["show", "watch", "resume", "sample", "evaluate"] {
            refused(&[command, dir], &["holds no run", "run.db"]);
        }
        refused(&["log-density", dir, "--theta", &theta], &["holds no run"]);
    }
    assert!(!folder.0.join("missing").exists() && !folder.0.join("lock").exists());
}
