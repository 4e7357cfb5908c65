//! Directories that came from somebody else: nothing is written through a link, and nothing waits for a pipe.

#![cfg(unix)]

use super::crashes::start;
use super::own::SETTINGS;
use super::{Folder, done, expect_same, finished, refused, text};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::{Command, Output};
use std::time::{Duration, Instant};

/// Puts a link in the place of a file, to a copy of it outside of the run; returns where that is.
fn link(folder: &Folder, run: &str, name: &str) -> String {
    let (place, outside) = (Path::new(run).join(name), folder.file(&format!("outside {name}")));
    let content = std::fs::read(&place).unwrap_or_else(|_| b"mine".to_vec());
    let _ = std::fs::remove_file(&place);
    std::fs::write(&outside, content).expect("it can be written");
    symlink(&outside, &place).expect("a link");
    outside
}

/// Neither the file that a link leads to nor the files beside it are changed by a command.
fn unchanged(folder: &Folder, run: &str, name: &str, command: &dyn Fn()) {
    let outside = link(folder, run, name);
    let (place, before) = (Path::new(run).join(name), std::fs::read(&outside).expect("a file"));
    let beside = std::fs::read_dir(&folder.0).expect("a folder").count();
    command();
    assert!(std::fs::read(&outside).expect("it is there") == before, "{name}");
    assert_eq!(std::fs::read_dir(&folder.0).expect("a folder").count(), beside, "{name}");
    let content = std::fs::read(&outside).expect("it is there");
    let _ = std::fs::remove_file(&place);
    if content != b"mine" {
        std::fs::write(&place, content).expect("it can be written");
    }
}

#[test]
fn a_run_writes_through_no_link() {
    let folder = Folder::new("received-links");
    let run = folder.run("run");
    let written = [
        "lock",
        "run.db",
        "run.db-wal",
        "run.db-shm",
        "run.db-journal",
        "round-3.safetensors",
        "posterior.npz",
        "posterior.csv",
        "summary.json",
    ];
    for name in written {
        let told = [name, "is a link, and not a file of the run: remove it"];
        unchanged(&folder, &run, name, &|| refused(&["resume", &run], &told));
    }
    unchanged(&folder, &run, "report.html", &|| {
        refused(&["report", &run], &["report.html", "is a link, and not a file of the run: "]);
        // A run is not lost because a page about it cannot be written.
        done(&["resume", &run]);
    });
    // What a process that was killed leaves may have been changed as well.
    for name in [&written[5..], &["report.html"]].concat() {
        unchanged(&folder, &run, &format!("{name}.part"), &|| drop(done(&["resume", &run])));
    }
    // A link of one's own to the whole directory is none in it.
    let own = folder.file("own");
    symlink(&run, &own).expect("a link");
    done(&["resume", &own]);
    expect_same(&own, finished().to_str().expect("a plain path"), "by a link");
}

/// Links to nothing: what is written would appear there.
/// A run of a seed that leads elsewhere is not begun there.
#[test]
fn seeds_write_through_no_link() {
    let folder = Folder::new("received-seeds");
    let (sweep, victim) = (folder.file("sweep"), folder.file("victim"));
    let task = folder.write("q.toml", &format!("[simulator]\ntask = \"mg1\"\n{SETTINGS}"));
    done(&["infer", &task, "--seeds", "2", "--out", &sweep]);
    let second = Path::new(&sweep).join("seed-6");
    std::fs::remove_dir_all(&second).expect("it is there");
    std::fs::create_dir(&victim).expect("it can be made");
    symlink(&victim, &second).expect("it can be made");
    refused(&["resume", &sweep], &["seed-6", "a link"]);
    assert_eq!(std::fs::read_dir(&victim).expect("it is there").count(), 0);
}

#[test]
fn a_cluster_writes_through_no_link() {
    let folder = Folder::new("received-cluster");
    let task = folder.write("q.toml", &format!("[simulator]\ntask = \"mg1\"\n{SETTINGS}"));
    let (run, shard, outside) = (folder.file("run"), folder.file("s.db"), folder.file("outside"));
    let proposal = format!("{run}/proposal-1.csv");
    let told = "is a link, and not a file of the run: remove it";
    let forbidden = |name: &str, args: &[&str]| {
        let place = format!("{run}/{name}");
        symlink(&outside, &place).expect("a link");
        refused(args, &[&place, told]);
        assert!(!Path::new(&outside).exists(), "{name}");
        std::fs::remove_file(&place).expect("it is there");
    };
    std::fs::create_dir(&run).expect("it can be made");
    for name in ["lock", "run.db", "run.db-wal", "run.db-journal"] {
        forbidden(name, &["propose", &run, &task]);
    }
    done(&["propose", &run, &task]);
    std::fs::remove_file(&proposal).expect("it was written");
    forbidden("proposal-1.csv", &["propose", &run]);
    let made = Command::new("mkfifo").arg(&proposal).status().expect("mkfifo is there");
    assert!(made.success());
    let piped = text(&ended(&["propose", &run]).stderr);
    assert!(piped.contains("proposal-1.csv is a pipe or a device"), "{piped}");
    std::fs::remove_file(&proposal).expect("it is there");
    done(&["propose", &run]);
    done(&["simulate", &task, "--proposal", &proposal, "--shard", "1/1", "--out", &shard]);
    done(&["merge", &run, &shard]);
    forbidden("checkpoint.safetensors", &["train", &run]);
    forbidden("round-1.safetensors", &["train", &run]);
    done(&["train", &run]);
    let sweep = folder.file("sweep");
    std::fs::create_dir(&sweep).expect("it can be made");
    symlink(&outside, format!("{sweep}/lock")).expect("a link");
    refused(&["infer", "two-moons", "--seeds", "2", "--out", &sweep], &["lock", told]);
    assert!(!Path::new(&outside).exists());
}

/// What a command says, if it ends.
fn ended(args: &[&str]) -> Output {
    let (mut child, begun) = (start(args), Instant::now());
    while child.try_wait().expect("it is ours").is_none() {
        if begun.elapsed() > Duration::from_secs(30) {
            child.kill().expect("it is ours");
            panic!("{args:?} waits for ever");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait_with_output().expect("it is ours")
}

#[test]
fn nothing_waits_for_a_pipe_in_the_place_of_a_file() {
    let folder = Folder::new("received-pipes");
    let run = folder.run("run");
    let (both, resume): (&[&str], &[&str]) = (&["show", "resume"], &["resume"]);
    for (name, refusing) in [
        ("lock", both),
        ("run.db", both),
        ("run.db-wal", both),
        ("run.db-shm", both),
        ("round-3.safetensors", both),
        ("round-1.safetensors", &[]),
        ("checkpoint.safetensors", resume),
        ("summary.json", resume),
        ("posterior.csv", resume),
    ] {
        let (place, kept) = (format!("{run}/{name}"), folder.file("kept"));
        let there = std::fs::rename(&place, &kept).is_ok();
        let made = Command::new("mkfifo").arg(&place).status().expect("mkfifo is there");
        assert!(made.success());
        for command in both {
            let output = ended(&[command, &run]);
            let told = text(&output.stderr) + &text(&output.stdout);
            let expected = if refusing.contains(command) { 2 } else { 0 };
            assert_eq!(output.status.code(), Some(expected), "{command} with {name}: {told}");
            let says = told.contains(name) && told.contains("is a pipe or a device");
            // What is not read is not missed.
            let read = expected == 2 || name == "round-1.safetensors";
            assert!(says || !read, "{command} with {name}: {told}");
        }
        std::fs::remove_file(&place).expect("it is there");
        if there {
            std::fs::rename(&kept, &place).expect("it is there");
        }
    }
    expect_same(&run, finished().to_str().expect("a plain path"), "without pipes");
}
