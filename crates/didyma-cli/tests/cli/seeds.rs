//! `didyma infer --seeds`: the runs are those made alone, however they were interrupted.

use super::crashes::{long, start, wait_for};
use super::{Folder, didyma, done, expect_same, json, number, refused, text, tiny};
use didyma::run::{CHECKPOINT, SEEDS};
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Most of the time goes into scores, once a round.
const SHORT: [&str; 4] = ["--set", "rounds=1", "--set", "simulations=60"];

fn kill(child: &mut std::process::Child) {
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
}

#[test]
fn the_runs_of_several_seeds_are_those_made_alone() {
    let folder = Folder::new("seeds");
    let (all, alone) = (folder.file("all"), folder.file("alone"));
    let rounds = ["--set", "rounds=2", "--members", "2"];
    let many = ["--seed", "5", "--seeds", "3", "--threads", "2"];
    let found = json(&tiny("two-moons", &all, &[&rounds[..], &many].concat()));
    done(&tiny("two-moons", &alone, &[&rounds[..], &["--seed", "6", "--threads", "1"]].concat()));
    let one = format!("{all}/seed-6");
    expect_same(&one, &alone, "seed 6");
    let summary = |dir: &str| json(&["show", dir])["config"].clone();
    assert_eq!(summary(&one), summary(&alone));
    expect_means(&found);
    assert_eq!(json(&["show", &all]), found);
    let shown = done(&["show", &all]);
    assert!(shown.contains("\nwarning of seeds 5, 6, 7: a classifier tells"), "{shown}");
    // Ordinary runs: they can be read one by one, or on one page.
    done(&["sample", &one, "-n", "3"]);
    let page = done(&["report", &all]);
    assert!(page.contains("report.html") && Path::new(&all).join("report.html").exists());
    refused(
        &["sample", &all],
        &["holds the runs of several seeds", "give one of them, as", "seed-5"],
    );
    // What is lost is made again, and nothing else.
    std::fs::remove_dir_all(&one).expect("it is ours");
    std::fs::remove_file(format!("{all}/seed-7/posterior.csv")).expect("it is ours");
    let shown = done(&["show", &all]);
    assert!(shown.contains("2 of 3 runs finished") && shown.contains("not begun"), "{shown}");
    assert!(shown.contains("     NLOG     apart  simulations"), "{shown}");
    let scores = &found["runs"][0]["rounds"][1];
    let c2st = ["c2st", "c2st_error"].map(|key| format!("{:.3}", number(&scores[key])));
    assert!(shown.contains(&format!("    5     {}  ", c2st.join(" ± "))), "{shown}");
    let output = didyma(&["resume", &all]);
    let told = text(&output.stderr);
    assert!(output.status.success() && told.contains("1 of 3 done before"), "{told}");
    assert!(told.contains("seed 6: round  2/2:") && !told.contains("seed 7: round"), "{told}");
    expect_same(&one, &alone, "seed 6, again");
    assert!(Path::new(&format!("{all}/seed-7/posterior.csv")).exists());
}

/// The means are those of the runs.
fn expect_means(found: &Value) {
    assert_eq!((&found["finished"], &found["finished_runs"]), (&true.into(), &3.into()));
    let runs = found["runs"].as_array().expect("a list");
    let seeds: Vec<_> = runs.iter().map(|run| run["seed"].as_u64()).collect();
    assert_eq!(seeds, [Some(5), Some(6), Some(7)]);
    for name in ["c2st", "disagreement"] {
        let each: Vec<f64> = runs.iter().map(|run| number(&run["rounds"][1][name])).collect();
        let mean = each.iter().sum::<f64>() / 3.0;
        let sd = (each.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / 2.0).sqrt();
        let told = &found["means"][name];
        // Sums of three numbers below 1, in another order at most.
        assert!((number(&told["mean"]) - mean).abs() < 1e-15, "{name}: {told}");
        assert!((number(&told["sd"]) - sd).abs() < 1e-15, "{name}: {told}");
    }
    assert_eq!(number(&found["means"]["simulations"]["mean"]), 240.0);
    let theta = &found["parameters"][0];
    let means = runs.iter().map(|run| number(&run["parameters"][0]["mean"]));
    assert!((number(&theta["mean"]) - means.sum::<f64>() / 3.0).abs() < 1e-15, "{theta}");
}

#[test]
fn killed_at_any_moment_all_runs_go_on_and_one_that_is_damaged_stops_no_other() {
    let folder = Folder::new("seeds-killed");
    let (whole, dir) = (folder.file("whole"), folder.file("run"));
    let settings = [&SHORT[..], &["--seeds", "2"]].concat();
    done(&tiny("two-moons", &whole, &settings));
    let mut child = start(&tiny("two-moons", &dir, &settings));
    wait_for(&dir, SEEDS, &mut child);
    kill(&mut child);
    let mut child = start(&["resume", &dir, "--threads", "1"]);
    wait_for(&format!("{dir}/seed-1"), CHECKPOINT, &mut child);
    kill(&mut child);
    let second = format!("{dir}/seed-2");
    let _ = std::fs::remove_dir_all(&second);
    std::fs::create_dir(&second).expect("it is ours");
    std::fs::write(format!("{second}/run.db"), "nonsense ".repeat(500)).expect("it is ours");
    let output = didyma(&["resume", &dir]);
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    assert!(told.contains("error: seed 2: ") && told.contains("run.db"), "{told}");
    assert!(text(&output.stdout).contains("1 of 2 runs finished"), "{told}");
    expect_same(&format!("{dir}/seed-1"), &format!("{whole}/seed-1"), "beside a damaged run");
    std::fs::remove_dir_all(&second).expect("it is ours");
    done(&["resume", &dir]);
    expect_same(&second, &format!("{whole}/seed-2"), "after all");
    let untouched = didyma(&["resume", &dir]);
    assert!(untouched.status.success() && text(&untouched.stderr).contains("2 of 2 done before"));
}

#[cfg(unix)]
#[test]
fn ctrl_c_stops_all_runs_cleanly() {
    let folder = Folder::new("seeds-stopped");
    let dir = folder.file("run");
    let long = [long(&dir), vec!["--seeds", "3", "--threads", "2", "--json"]].concat();
    let mut child = start(&long);
    for seed in ["seed-1", "seed-2"] {
        wait_for(&format!("{dir}/{seed}"), CHECKPOINT, &mut child);
    }
    let shown = done(&["show", &dir]);
    assert!(shown.contains("0 of 3 rounds, running") && shown.ends_with("running\n"), "{shown}");
    refused(&["resume", &dir], &[&format!("another process (number {})", child.id())]);
    let sent = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(sent.is_ok_and(|status| status.success()));
    let output = child.wait_with_output().expect("it is ours");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(130), "{told}");
    assert!(told.contains("stopping at the next safe point"), "{told}");
    assert!(told.contains(&format!("To go on: didyma resume \"{dir}\"")), "{told}");
    let found: Value = serde_json::from_slice(&output.stdout).expect("one object");
    assert_eq!((&found["finished"], &found["runs"][2]["seed"]), (&false.into(), &3.into()));
    assert!(!Path::new(&dir).join("seed-3").exists(), "it should not have begun");
    let shown = done(&["show", &dir]);
    assert!(shown.contains("not begun") && shown.contains("to go on: didyma resume"), "{shown}");
}

#[test]
fn what_several_seeds_cannot_be_is_told() {
    let folder = Folder::new("seeds-refused");
    let dir = folder.file("run");
    for seeds in ["0", "1001", "-1", "many"] {
        let more = ["--seeds", seeds];
        refused(&tiny("two-moons", &dir, &more), &["--seeds", "between 1 and 1000"]);
    }
    let last = u64::MAX.to_string();
    refused(&tiny("two-moons", &dir, &["--seeds", "2", "--seed", &last]), &["seed", &last]);
    assert!(!Path::new(&dir).exists());
    let other = folder.write("other.txt", "");
    refused(&tiny("two-moons", &folder.file(""), &["--seeds", "2"]), &["files of something else"]);
    refused(&tiny("two-moons", &other, &["--seeds", "2"]), &["is a file"]);
    for command in ["resume", "show"] {
        refused(&[command, &folder.file("")], &["holds no run"]);
    }
    let damaged = folder.file("damaged");
    std::fs::create_dir(&damaged).expect("it is ours");
    std::fs::write(format!("{damaged}/{SEEDS}"), "{}").expect("it is ours");
    for command in ["resume", "show", "sample", "report"] {
        refused(&[command, &damaged], &["seeds.json cannot be used", "one by one"]);
    }
}
