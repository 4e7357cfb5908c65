//! `didyma calibrate`: what a finished run's probabilities are worth, by its own simulations or by new ones.

use super::{Folder, command, didyma, done, expect_same, json, number, refused, text, tiny};
use serde_json::Value;
use std::path::Path;

fn stored(run: &str) -> Value {
    let bytes = std::fs::read(Path::new(run).join("calibration.json")).expect("it is there");
    serde_json::from_slice(&bytes).expect("JSON")
}

/// The problem of the cluster's examples, whose program takes so many seconds for a simulation.
fn program(folder: &Folder, seconds: &str) -> String {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster");
    let read = |name: &str| std::fs::read_to_string(examples.join(name)).expect("it is there");
    let slow = format!(
        "def simulate(theta, seed):\n    print(file=open('made', 'a'))\n    __import__('time').sleep({seconds})\n"
    );
    let worker = read("worker.py").replace("def simulate(theta, seed):\n", &slow);
    folder.write("worker.py", &worker);
    folder.write("problem.toml", &read("problem.toml"))
}

#[test]
fn a_table_and_json_say_the_same_and_the_verdict_follows() {
    let folder = Folder::new("calibrate");
    let run = folder.run("run");
    let table = done(&["calibrate", &run]);
    for part in [
        "held-out simulations of rounds",
        "places by",
        "theta1",
        "density",
        "distance",
        "moments: p =",
        "verdict: ",
    ] {
        assert!(table.contains(part), "{part}: {table}");
    }
    let found = json(&["calibrate", &run, "--simulations", "60"]);
    assert_eq!(
        (&found["calibration"]["evidence"], &found["new_simulations"]),
        (&"new".into(), &60.into())
    );
    assert!((0.0..=1.0).contains(&number(&found["calibration"]["local"]["p_value"])));
    assert_eq!(stored(&run)["calibration"], found["calibration"]);
    assert_eq!(json(&["show", &run])["verdict"], found["verdict"]);
    let summary = std::fs::read(Path::new(&run).join("summary.json")).expect("it is there");
    let summary: Value = serde_json::from_slice(&summary).expect("JSON");
    assert_eq!(summary["verdict"], found["verdict"]);
    // Lost, it is made again of the simulations that are stored; by request those of the run are asked.
    std::fs::remove_file(Path::new(&run).join("calibration.json")).expect("it was there");
    assert_eq!(json(&["calibrate", &run])["calibration"], found["calibration"]);
    let own = json(&["calibrate", &run, "--held-out", "--no-local"]);
    assert_eq!(own["calibration"]["evidence"], serde_json::json!({"held_out": [2, 3]}));
    // Nothing else of the run has changed.
    expect_same(&run, super::finished().to_str().expect("a plain path"), "calibrate");
}

/// A run that trained next to nothing is far from the truth: its verdict is an exit code for those who ask for it.
#[test]
fn a_strict_call_fails_where_the_posterior_is_not_to_be_trusted() {
    let folder = Folder::new("calibrate-strict");
    let run = folder.file("run");
    done(&tiny("gaussian-linear", &run, &["--set", "train.steps=1"]));
    let strict = didyma(&["calibrate", &run, "--simulations", "400", "--no-local", "--strict"]);
    let told = text(&strict.stdout);
    let expected = if told.contains("verdict: do not trust") { 1 } else { 0 };
    assert_eq!(strict.status.code(), Some(expected), "{told}");
    assert_eq!(expected, 1, "{told}");
    assert!(didyma(&["calibrate", &run, "--no-local"]).status.success());
}

#[test]
fn shards_of_new_simulations_end_with_the_same_calibration() {
    let folder = Folder::new("calibrate-shards");
    let (here, there) = (folder.run("here"), folder.run("there"));
    let expected = json(&["calibrate", &here, "--simulations", "60", "--no-local"]);
    let told = done(&["calibrate", &there, "--simulations", "60", "--propose"]);
    assert!(told.contains("60 parameters") && told.contains("--shard 1/N"), "{told}");
    let proposal = folder.file("there/proposal-4.csv");
    for part in ["1", "2"] {
        let (shard, out) = (format!("{part}/2"), folder.file(&format!("shard-{part}.db")));
        done(&["simulate", "two-moons", "--proposal", &proposal, "--shard", &shard, "--out", &out]);
    }
    let shards = [folder.file("shard-1.db"), folder.file("shard-2.db")];
    let merged = json(&["calibrate", &there, "--no-local", "--merge", &shards[0], &shards[1]]);
    assert_eq!(merged["calibration"], expected["calibration"]);
    // A copy of the run is the same one, which lacks the proposal.
    let remedy = "--simulations 60 --propose`";
    refused(
        &["calibrate", &here, "--merge", &shards[0]],
        &["proposal-4.csv, which is missing", remedy],
    );
}

#[test]
fn conformal_levels_are_given_only_where_they_are_asked_for() {
    let folder = Folder::new("calibrate-conformal");
    let run = folder.run("run");
    refused(
        &["calibrate", &run, "--conformal"],
        &["0 new simulations of the 20", "--simulations N"],
    );
    let told = done(&["calibrate", &run, "--conformal", "--simulations", "60", "--no-local"]);
    assert!(told.contains("95 % of cases lie in the region of level"), "{told}");
    assert!(told.contains("99 %: needs 99 simulations"), "{told}");
    assert!(stored(&run)["calibration"]["conformal"]["levels"][4]["level"].is_null());
    // Of the same posterior: a calibration by other simulations leaves them as they are.
    let again = json(&["calibrate", &run, "--simulations", "60", "--no-local"]);
    assert!(again["calibration"]["conformal"]["levels"][4]["level"].is_null());
    assert_eq!(again["calibration"]["conformal"]["rows"], 60);
}

#[test]
fn bad_input_is_told_in_a_sentence() {
    let folder = Folder::new("calibrate-bad");
    let run = folder.run("run");
    let before = stored(&run);
    refused(&["calibrate", &folder.file("nothing")], &["holds no run"]);
    refused(&["calibrate", &run, "--simulations", "0"], &["a whole number between 20 and"]);
    refused(&["calibrate", &run, "--simulations", "-3"], &["a whole number between 20 and"]);
    refused(&["calibrate", &run, "--simulations", "19"], &["a whole number between 20 and"]);
    refused(&["calibrate", &run, "--propose"], &["--simulations"]);
    refused(
        &["calibrate", &run, "--simulations", "20", "--workers", "2"],
        &["--workers is for programs"],
    );
    let unfinished = folder.file("unfinished");
    done(&["propose", &unfinished, "two-moons"]);
    refused(&["calibrate", &unfinished], &["is not finished (0 of", "run `didyma resume", "first"]);
    assert_eq!(stored(&run), before);
}

/// Ctrl-C leaves all simulations so far, and the same command makes the rest.
#[cfg(unix)]
#[test]
fn an_interrupted_calibration_continues() {
    use nix::sys::signal::{Signal, kill};
    if std::process::Command::new("python3").arg("--version").output().is_err() {
        eprintln!("skipped: Python is not here");
        return;
    }
    let folder = Folder::new("calibrate-interrupted");
    let problem = program(&folder, "0");
    let run = folder.file("run");
    done(&tiny(&problem, &run, &[]));
    program(&folder, "0.05");
    let made = folder.write("made", "");
    let args = ["calibrate", &run, "--simulations", "200", "--no-local", "--workers", "2"];
    let mut command = command(&args);
    command.stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("the binary was built");
    while std::fs::read(&made).expect("it is there").len() < 10 {
        assert_eq!(child.try_wait().expect("it is ours"), None, "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGINT).expect("it runs");
    let ended = child.wait_with_output().expect("it ends");
    let told = text(&ended.stderr);
    assert_eq!(ended.status.code(), Some(130), "{told}");
    assert!(told.contains("the same command goes on"), "{told}");
    program(&folder, "0");
    let found = json(&args);
    assert_eq!(found["new_simulations"], 200);
    let whole = folder.file("whole");
    done(&tiny(&problem, &whole, &[]));
    let expected = json(&["calibrate", &whole, "--simulations", "200", "--no-local"]);
    assert_eq!(found["calibration"], expected["calibration"]);
}
