//! The scripts of `examples/cluster`, where what they need is there.

use super::{Folder, done, expect_same, refused, text};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn examples() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/cluster");
    // Without dots, as the scripts have it: the path of the problem is written into its results.
    folder.canonicalize().expect("it is there")
}

/// Runs one of the scripts with the program under test.
fn script(name: &str, run: &str, shards: &str, args: &[&str]) -> Output {
    let mut command = Command::new("bash");
    command.arg(examples().join(name)).args(args).env_remove("DIDYMA_KERNELS");
    command.env("DIDYMA", env!("CARGO_BIN_EXE_didyma")).env("RUN", run).env("SHARDS", shards);
    command.output().expect("bash is there")
}

fn has(program: &str, says: &str) -> bool {
    let output = Command::new(program).arg("--version").output();
    let found = output.is_ok_and(|output| text(&output.stdout).contains(says));
    if !found {
        eprintln!("skipped: {says} is not here (scripts/cluster-setup installs it)");
    }
    found
}

/// The problem of the examples, inferred on one machine.
fn inferred(folder: &Folder) -> String {
    let (problem, dir) = (examples().join("problem.toml"), folder.file("inferred"));
    done(&["infer", problem.to_str().expect("a plain path"), "--out", &dir]);
    dir
}

#[test]
fn gnu_parallel_ends_with_the_same_bytes() {
    if !has("parallel", "GNU parallel") || !has("python3", "Python") {
        return;
    }
    let folder = Folder::new("parallel");
    let expected = inferred(&folder);
    let run = folder.file("a run");
    // What a driver leaves that was killed as the run began.
    std::fs::create_dir(&run).expect("it can be made");
    std::fs::write(Path::new(&run).join("run.db"), "").expect("it can be written");
    let output = script("parallel.sh", &run, "3", &[]);
    let told = text(&output.stdout) + &text(&output.stderr);
    assert!(output.status.success() && told.contains("3 of 3 rounds"), "{told}");
    expect_same(&run, &expected, "GNU parallel");
    // A finished run is only shown.
    assert!(script("parallel.sh", &run, "3", &[]).status.success());
    refused(&["propose", &run], &["is finished"]);
}

/// The program fails now and then, and the script is started until nothing is left to do.
#[test]
fn what_fails_is_made_again() {
    if !has("parallel", "GNU parallel") || !has("python3", "Python") {
        return;
    }
    let folder = Folder::new("parallel-failing");
    let expected = inferred(&folder);
    let count = folder.write("count", "");
    // Calls that end without a word, before they do anything: of each command some.
    let flaky = format!(
        "#!/bin/sh\necho >>{count}\ncase $(wc -l <{count}) in\n\
         1 | 3 | 4 | 7 | 9 | 12 | 16 | 17 | 21 | 26 | 30) exit 9 ;;\nesac\nexec {} \"$@\"\n",
        env!("CARGO_BIN_EXE_didyma")
    );
    let flaky = folder.write("flaky", &flaky);
    assert!(Command::new("chmod").args(["+x", &flaky]).status().expect("it is there").success());
    let run = folder.file("run");
    let mut tries = 0;
    let last = loop {
        let mut command = Command::new("bash");
        command.arg(examples().join("parallel.sh")).env_remove("DIDYMA_KERNELS");
        command.env("DIDYMA", &flaky).env("RUN", &run).env("SHARDS", "5");
        let output = command.output().expect("bash is there");
        tries += 1;
        if output.status.success() || tries > 30 {
            break output;
        }
    };
    assert!(last.status.success() && tries > 1, "{tries} tries: {}", text(&last.stderr));
    expect_same(&run, &expected, "with failures");
}

/// What a shard had time for is kept, and the next try goes on from there.
#[cfg(unix)]
#[test]
fn a_shard_that_is_stopped_goes_on() {
    use nix::sys::signal::{Signal, kill};
    if !has("python3", "Python") {
        return;
    }
    let folder = Folder::new("shard-stopped");
    let read = |name: &str| std::fs::read_to_string(examples().join(name)).expect("it is there");
    let slow = "def simulate(theta, seed):\n    print(file=open('made', 'a'))\n    __import__('time').sleep(0.1)\n";
    folder.write("worker.py", &read("worker.py").replace("def simulate(theta, seed):\n", slow));
    let made = folder.write("made", "");
    let problem = folder.write("problem.toml", &read("problem.toml"));
    let (run, shards) = (folder.file("run"), folder.0.to_str().expect("a plain path"));
    done(&["propose", &run, &problem]);
    let proposal = folder.file("run/proposal-1.csv");
    let args = [problem.as_str(), &proposal, "4", shards, "2"];
    let mut command = Command::new("bash");
    command.arg(examples().join("shard.sh")).args(args).env("TMPDIR", shards);
    let mut child = command.env("DIDYMA", env!("CARGO_BIN_EXE_didyma")).spawn().expect("bash");
    while std::fs::read(&made).expect("it is there").len() < 10 {
        assert_eq!(child.try_wait().expect("it is ours"), None, "it ended too early");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), Signal::SIGTERM).expect("it runs");
    assert!(!child.wait().expect("it ends").success());
    assert!(Path::new(&folder.file("part-2.db")).is_file());
    assert!(!Path::new(&folder.file("shard-2.db")).exists());
    let told = done(&["merge", &run, &folder.file("part-2.db")]);
    assert!(!told.starts_with("0 new") && !told.starts_with("50 new"), "{told}");
    let output = script("shard.sh", &run, "4", &args);
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(!Path::new(&folder.file("part-2.db")).exists());
    let merged = done(&["merge", &run, &folder.file("shard-2.db")]);
    assert!(merged.contains("lacks 150 of 200") && !merged.contains(" 0 known"), "{merged}");
}
