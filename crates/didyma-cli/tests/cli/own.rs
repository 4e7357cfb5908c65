//! A user's own problem, from the file to the posterior, on one machine and by shards.

use super::{Folder, command, didyma, done, json, refused, text};
#[cfg(unix)]
use nix::{
    sys::signal::{Signal, kill},
    unistd::Pid,
};
use serde_json::Value;
use std::path::Path;
use std::process::{Output, Stdio};
use std::time::{Duration, Instant};

/// Settings of a run that takes about a second.
pub(super) const SETTINGS: &str = "
[inference]
rounds = 2
simulations = 60
samples = 200
seed = 5
train.steps = 20
flow.layers = 2
flow.units = 8
";

/// The folder of the library's M/G/1 worker.
fn data() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../didyma/tests/data");
    path.canonicalize().expect("it is there").to_str().expect("a plain path").to_owned()
}

/// M/G/1 by a worker in Python that draws the numbers of the built-in task.
fn mg1(folder: &Folder) -> String {
    let worker = format!("{}/mg1_worker.py", data());
    folder.write(
        "mg1.toml",
        &format!(
            "[parameters]
service_min = {{ uniform = [0, 10] }}
service_range = {{ uniform = [0, 10] }}
arrival_rate = {{ uniform = [0, {}] }}
[observation]
x = [0.0929, 0.8333, 1.4484, 1.9773, 3.1510]
names = [\"log_min\", \"log_q25\", \"log_median\", \"log_q75\", \"log_max\"]
[simulator]
command = [\"python3\", \"{worker}\"]
stream = true
{SETTINGS}",
            1.0 / 3.0
        ),
    )
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// Samples without the comments, which name the problem.
fn samples(run: &str) -> String {
    let all = String::from_utf8(read(&format!("{run}/posterior.csv"))).expect("text");
    all.lines().filter(|line| !line.starts_with('#')).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_worker_gives_the_rows_of_the_built_in_task_for_any_number_of_workers() {
    let folder = Folder::new("own-mg1");
    let problem = mg1(&folder);
    let rows = |args: &[&str]| {
        let all = [&["simulate"], args, &["-n", "40", "--seed", "3"]].concat();
        text(&didyma(&all).stdout)
    };
    let built_in = rows(&["mg1"]);
    assert_eq!(built_in.lines().count(), 41);
    for workers in ["1", "2", "5"] {
        assert_eq!(rows(&[&problem, "--workers", workers]), built_in, "{workers} workers");
    }
}

/// The run by shards, merged in another order and twice, is that of one process, which is that of the built-in task.
#[test]
fn shards_in_any_order_make_the_same_posterior() {
    let folder = Folder::new("own-shards");
    let problem = mg1(&folder);
    let (whole, built_in, parts) =
        (folder.file("whole"), folder.file("task"), folder.file("parts"));
    done(&["infer", &problem, "--out", &whole]);
    #[rustfmt::skip]
    done(&["infer", "mg1", "--out", &built_in, "--rounds", "2", "--simulations", "60", "--seed", "5", "--set",
        "samples=200", "--set", "train.steps=20", "--set", "flow.layers=2", "--set", "flow.units=8"]);
    assert_eq!(samples(&whole), samples(&built_in));
    done(&["propose", &parts, &problem]);
    for round in ["1", "2"] {
        let proposal = format!("{parts}/proposal-{round}.csv");
        let mut shards: Vec<String> = Vec::new();
        for part in ["3/3", "1/3", "2/3"] {
            let out = folder.file(&format!("shard-{round}-{}.db", &part[..1]));
            done(&["simulate", &problem, "--proposal", &proposal, "--shard", part, "--out", &out]);
            assert!(!Path::new(&format!("{out}-wal")).exists(), "one file");
            shards.push(out);
        }
        let some = didyma(&["merge", &parts, &shards[1], &shards[0]]);
        assert!(text(&some.stdout).contains(&format!("round {round} lacks 20 of 60")));
        let told = format!("round {round} of");
        refused(&["train", &parts], &[&told, "lacks 20 of 60"]);
        let all = didyma(
            &[&["merge", &parts][..], &shards.iter().map(String::as_str).collect::<Vec<_>>()]
                .concat(),
        );
        assert!(text(&all.stdout).contains("20 new simulations, 40 known ones"), "{all:?}");
        done(&["train", &parts]);
        if round == "1" {
            done(&["propose", &parts]);
        }
    }
    for file in ["posterior.csv", "posterior.npz", "round-2.safetensors"] {
        assert!(read(&format!("{parts}/{file}")) == read(&format!("{whole}/{file}")), "{file}");
    }
    refused(&["propose", &parts], &["is finished"]);
    let found = json(&["show", &parts]);
    assert_eq!(found["finished"], true);
}

#[test]
fn shards_of_other_runs_are_refused() {
    let folder = Folder::new("own-refused");
    let task = folder.write("q.toml", &format!("[simulator]\ntask = \"mg1\"\n{SETTINGS}"));
    let (run, other, shard) = (folder.file("run"), folder.file("other"), folder.file("shard.db"));
    let proposal = format!("{run}/proposal-1.csv");
    done(&["propose", &run, &task]);
    done(&["propose", &other, &task, "--seed", "6"]);
    done(&["simulate", &task, "--proposal", &proposal, "--shard", "1/2", "--out", &shard]);
    refused(&["merge", &other, &shard], &["is a shard of another run"]);
    let again = ["simulate", &task, "--proposal", &proposal, "--shard", "2/2", "--out", &shard];
    done(&again);
    let wrong = format!("{other}/proposal-1.csv");
    refused(
        &["simulate", &task, "--proposal", &wrong, "--shard", "1/2", "--out", &shard],
        &["holds simulations of another round or run"],
    );
    // Without a proposal: the first round of a run with this seed, made before there is one.
    let before = folder.file("before.db");
    done(&["simulate", &task, "--shard", "1/1", "--out", &before]);
    done(&["merge", &run, &before]);
    let seeded = folder.file("seeded.db");
    done(&["simulate", &task, "--shard", "1/1", "--seed", "9", "--out", &seeded]);
    refused(&["merge", &run, &seeded], &["seed 9, but the run has seed 5"]);
    for (args, told) in [
        (vec!["propose", &run, &task, "--seed", "7"], "holds a run with other settings (seed"),
        (vec!["propose", &run, "-n", "7"], "-n is 7, but the rounds of"),
        (vec!["merge", &run, "nowhere.db"], "could not read nowhere.db"),
        (vec!["merge", &run, &task], "is not a Didyma run"),
        (vec!["merge", &run, &format!("{run}/run.db")], "no shard of"),
        (vec!["simulate", &task, "--shard", "3/2", "--out", "x.db"], "as 3/20"),
        (vec!["simulate", &task, "--shard", "1/2"], "--out is needed"),
        (
            vec![
                "simulate",
                "two-moons",
                "--proposal",
                &proposal,
                "--shard",
                "1/2",
                "--out",
                "x.db",
            ],
            "parameters",
        ),
    ] {
        refused(&args, &[told]);
    }
    let text = String::from_utf8(read(&proposal)).expect("text");
    let (head, last) = text.trim_end().rsplit_once('\n').expect("lines");
    for (content, told) in [
        (head.to_owned(), "it has 59 rows of 60"),
        (text.replace("# seed = 5", "# seed = 4"), "it is not the line of simulation 0"),
        (text.replace(last, "59,1,a"), "it is not the line of simulation 59"),
        ("index,seed\n".to_owned(), "it does not say its round"),
    ] {
        let damaged = folder.write("damaged.csv", &content);
        refused(
            &["simulate", &task, "--proposal", &damaged, "--shard", "1/1", "--out", "x.db"],
            &[told, "write the file anew"],
        );
    }
    std::fs::write(&proposal, text.replace(",0.", ",0.0")).expect("it can be written");
    refused(&["merge", &run, &shard], &["its numbers are not those that were written"]);
}

/// A worker that fails where its first parameter is large, and says why.
const PICKY: &str = "import sys, json, random
for line in sys.stdin:
    r = json.loads(line)
    g, (a, b) = random.Random(r['seed']), r['theta']
    if a > LIMIT:
        print(json.dumps({'id': r['id'], 'error': 'a is too large'}), flush=True)
    else:
        print(json.dumps({'id': r['id'], 'x': [a + g.gauss(0, 0.1), b]}), flush=True)
";

fn picky(folder: &Folder, limit: &str) -> String {
    folder.write("worker.py", &PICKY.replace("LIMIT", limit));
    folder.write(
        "problem.toml",
        &format!(
            "[parameters]\na = {{ uniform = [0, 1] }}\nb = {{ normal = [0, 1], low = 0 }}\n[observation]\nx = [0.4, 1]\n\
             [simulator]\ncommand = [\"python3\", \"worker.py\"]\nworkers = 2\n{SETTINGS}"
        ),
    )
}

#[test]
fn a_simulator_that_is_broken_stops_the_run_and_a_repaired_one_carries_it_on() {
    let folder = Folder::new("own-broken");
    let (problem, run) = (picky(&folder, "-1"), folder.file("run"));
    let args = ["infer", &problem, "--out", &run, "--set", "failures.in_a_row=20"];
    refused(&args, &["20", "a is too large", "--retry-failed"]);
    picky(&folder, "2");
    done(&["resume", &run, "--retry-failed"]);
    let shown = json(&["show", &run]);
    let failures = |round: usize| shown["rounds"][round]["failures"].as_u64();
    assert_eq!((failures(0), failures(1)), (Some(0), Some(0)), "{shown}");
    // Another question is refused, the same one from another folder is not.
    let moved = folder.write("other.toml", &String::from_utf8(read(&problem)).expect("text"));
    done(&["resume", &run, "--problem", &moved, "--workers", "1"]);
    let changed = String::from_utf8(read(&problem)).expect("text").replace("[0.4, 1]", "[0.5, 1]");
    let changed = folder.write("changed.toml", &changed);
    refused(&["resume", &run, "--problem", &changed], &["other observation"]);
}

/// Forty programs at once, and descriptors for fewer: that is told, and no simulation has failed by it.
#[cfg(unix)]
#[test]
fn a_lack_of_descriptors_stops_a_run_that_then_goes_on() {
    let folder = Folder::new("own-lack");
    let problem = folder.write(
        "problem.toml",
        &format!(
            "[parameters]\na = {{ uniform = [0, 1] }}\nb = {{ normal = [0, 1], low = 0 }}\n[observation]\nx = [0.4, 1]\n\
             [simulator]\nrun = [\"sh\", \"-c\", \"test -e slow && sleep 5; echo {{a}} {{b}}\"]\nworkers = 40\n{SETTINGS}"
        ),
    );
    let (slow, run) = (folder.write("slow", ""), folder.file("run"));
    let limited = "ulimit -n 64; exec \"$0\" \"$@\"";
    let mut command = std::process::Command::new("sh");
    command.args(["-c", limited, env!("CARGO_BIN_EXE_didyma"), "infer", &problem, "--out", &run]);
    let output = command.output().expect("a shell is there");
    let told = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{told}");
    let expected = "error: could not start a program for a simulation (Too many open files (os error 24)): raise the limit on \
                    open files, or take fewer workers, then go on; it has not failed";
    assert!(told.contains(expected), "{told}");
    let shown = json(&["show", &run]);
    assert_eq!(shown["simulations"], 0, "{shown}");
    std::fs::remove_file(slow).expect("it is there");
    done(&["resume", &run, "--workers", "2"]);
    let shown = json(&["show", &run]);
    assert!((0..2).all(|round| shown["rounds"][round]["failures"] == 0), "{shown}");
}

#[test]
fn a_problem_is_checked() {
    let folder = Folder::new("own-check");
    let problem = picky(&folder, "0.5");
    let page = folder.file("check.html");
    let output = didyma(&["check", &problem, "-n", "40", "--report", &page]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let told = text(&output.stdout);
    for part in [
        "2 parameters (a, b), 2 summaries",
        "× a is too large",
        "the same seed gives the same: yes",
        "▲",
    ] {
        assert!(told.contains(part), "{told}");
    }
    assert!(text(&output.stderr).contains("the first failure: a is too large"), "{output:?}");
    let html = String::from_utf8(read(&page)).expect("text");
    assert!(html.contains("Prior predictive check") && html.contains("a is too large"));
    let found = json(&["check", &problem, "-n", "40"]);
    assert_eq!((&found["repeatable"], &found["passed"]), (&Value::Bool(true), &Value::Bool(true)));
    folder.write("worker.py", "import sys\nsys.exit('no licence')\n");
    let output = didyma(&["check", &problem, "-n", "5"]);
    assert_eq!(output.status.code(), Some(1));
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(out.contains("every simulation failed") && out.contains("exit code 1"), "{out}");
    assert!(err.contains("no licence"), "{err}");
}

#[test]
fn other_commands_take_a_problem_file_too() {
    let folder = Folder::new("own-others");
    let problem = picky(&folder, "2");
    let csv = text(&didyma(&["simulate", &problem, "-n", "3", "--theta", "0.5,1"]).stdout);
    assert!(csv.starts_with("a,b,x1,x2\n") && csv.lines().count() == 4, "{csv}");
    refused(&["simulate", &problem, "-n", "3", "--theta", "truth"], &["has none"]);
    refused(&["reference", &problem], &["no reference"]);
    let out = folder.file("abc.csv");
    done(&[
        "abc",
        &problem,
        "--simulations",
        "600",
        "--particles",
        "50",
        "-n",
        "40",
        "--out",
        &out,
    ]);
    let found = json(&["metrics", &out, &out, "--task", &problem]);
    assert!(found["lmd"].is_number(), "{found}");
    let folder_itself = folder.file("");
    assert!(didyma(&["simulate", &folder_itself, "-n", "1"]).status.success(), "its problem.toml");
}

#[test]
fn fields_and_their_schema_are_listed() {
    let told = text(&didyma(&["settings", "--problem"]).stdout);
    assert!(told.contains("simulator.time_limit") && told.contains("(default: 600)"), "{told}");
    let schema: Value =
        serde_json::from_slice(&didyma(&["settings", "--problem", "--schema"]).stdout)
            .expect("JSON");
    assert_eq!(schema["properties"]["simulator"]["properties"]["batch"]["type"], "integer");
}

#[test]
fn bad_problem_files_are_told_with_their_line() {
    let folder = Folder::new("own-bad");
    let good = String::from_utf8(read(&picky(&folder, "2"))).expect("text");
    for (from, to, told) in [
        ("uniform = [0, 1]", "uniform = [1, 0]", "line 2: parameters.a.uniform"),
        ("rounds = 2", "ruonds = 2", "did you mean rounds?"),
        ("rounds = 2", "rounds = 0", "inference.rounds cannot be used: rounds is 0"),
        (
            "command = [\"python3\", \"worker.py\"]",
            "run = [\"./a\", \"{c}\"]",
            "line 7: simulator.run",
        ),
    ] {
        let path = folder.write("bad.toml", &good.replace(from, to));
        refused(&["infer", &path, "--out", &folder.file("run")], &["bad.toml, line ", told]);
        assert!(!Path::new(&folder.file("run")).exists(), "nothing has begun");
    }
    refused(&["infer", "nowhere.toml"], &["there is no such file"]);
    refused(&["infer", "three-moons"], &["give a built-in task"]);
    let task = folder.write("task.toml", "[simulator]\ntask = \"mg1\"\n");
    refused(&["infer", &task, "--workers", "2"], &["--workers is for programs"]);
    refused(&["infer", "mg1", "--launcher", "srun"], &["--launcher is for programs"]);
}

/// The launcher stands before the command, and is shown the worker as its arguments.
#[test]
fn a_launcher_wraps_the_worker() {
    let folder = Folder::new("own-launcher");
    let problem = picky(&folder, "2");
    let note = folder.file("note");
    let launcher =
        folder.write("launch.sh", &format!("#!/bin/sh\necho \"$@\" >> {note}\nexec \"$@\"\n"));
    let words = format!("sh {launcher}");
    let args = ["simulate", &problem, "-n", "3", "--workers", "1", "--launcher", &words];
    let (plain, wrapped) = (didyma(&args[..6]), didyma(&args));
    assert_eq!(text(&plain.stdout), text(&wrapped.stdout));
    assert_eq!(String::from_utf8(read(&note)).expect("text"), "python3 worker.py\n");
}

/// Starts the program, and sends it a signal once this file is there.
#[cfg(unix)]
fn signalled(args: &[&str], signal: Signal, once: &Path) -> Output {
    let child = command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let child = child.expect("the program can be started");
    let start = Instant::now();
    while !once.exists() {
        assert!(start.elapsed() < Duration::from_secs(60), "{} never came", once.display());
        std::thread::sleep(Duration::from_millis(20));
    }
    std::thread::sleep(Duration::from_millis(100));
    kill(Pid::from_raw(child.id().cast_signed()), signal).expect("it is there");
    child.wait_with_output().expect("it ends")
}

/// Whether a process runs; one that nobody has waited for yet does not.
#[cfg(unix)]
fn is_alive(process: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, state)| !state.starts_with('Z'))
}

/// Ctrl-C ends a command that has nothing to save, and the program that it has started in the middle of a simulation.
#[cfg(unix)]
#[test]
fn no_program_outlives_a_command_that_is_stopped() {
    let folder = Folder::new("own-signal");
    let problem = picky(&folder, "2");
    let note = folder.file("pid");
    let worker =
        format!("import os, time\nopen('{note}', 'w').write(str(os.getpid()))\ntime.sleep(600)\n");
    folder.write("worker.py", &worker);
    for args in [vec!["simulate", &*problem, "-n", "5"], vec!["check", &*problem, "-n", "5"]] {
        let args = [&args[..], &["--workers", "1"]].concat();
        let output = signalled(&args, Signal::SIGINT, Path::new(&note));
        assert_eq!(output.status.code(), Some(130), "{output:?}");
        let worker = String::from_utf8(read(&note)).expect("text");
        // A killed process dies when it is scheduled next.
        let start = Instant::now();
        while is_alive(&worker) {
            assert!(start.elapsed() < Duration::from_secs(10), "{worker} is still there");
            std::thread::sleep(Duration::from_millis(20));
        }
        std::fs::remove_file(&note).expect("it was written");
    }
}

/// Training that is stopped says so, and the round's proposal stays what it was, also if its file is lost.
#[cfg(unix)]
#[test]
fn training_that_is_stopped_goes_on_with_the_same_proposal() {
    let folder = Folder::new("own-train");
    let task = SETTINGS.replace(
        "train.steps = 20",
        "train.steps = 100000\ntrain.patience = 100000\ntrain.epochs = 100000",
    );
    let task = folder.write("q.toml", &format!("[simulator]\ntask = \"mg1\"\n{task}"));
    let (run, shard) = (folder.file("run"), folder.file("shard.db"));
    let proposal = format!("{run}/proposal-1.csv");
    done(&["propose", &run, &task]);
    let before = read(&proposal);
    done(&["simulate", &task, "--proposal", &proposal, "--shard", "1/1", "--out", &shard]);
    done(&["merge", &run, &shard]);
    let checkpoint = format!("{run}/checkpoint.safetensors");
    let output = signalled(&["train", &run], Signal::SIGTERM, Path::new(&checkpoint));
    assert_eq!(output.status.code(), Some(130), "{output:?}");
    assert!(text(&output.stderr).contains("To go on: didyma train"), "{output:?}");
    done(&["propose", &run]);
    assert!(read(&proposal) == before);
    std::fs::remove_file(&proposal).expect("it was written");
    refused(&["merge", &run, &shard], &["is missing: run `didyma propose"]);
    done(&["propose", &run]);
    assert!(read(&proposal) == before);
    done(&["merge", &run, &shard]);
}

/// A broken simulator stops a shard; repaired, its failures are made again, there and in the run.
#[test]
fn failures_of_a_shard_are_made_again() {
    let folder = Folder::new("own-shard-broken");
    let problem = picky(&folder, "-1");
    let (run, shard) = (folder.file("run"), folder.file("shard.db"));
    let proposal = format!("{run}/proposal-1.csv");
    done(&["propose", &run, &problem, "--set", "failures.in_a_row=20"]);
    let args = ["simulate", &problem, "--proposal", &proposal, "--shard", "1/1", "--out", &shard];
    refused(
        &args,
        &["20 simulations failed one after another", "a is too large", "--retry-failed"],
    );
    done(&["merge", &run, &shard]);
    picky(&folder, "2");
    done(&[&args[..], &["--retry-failed"]].concat());
    let merged = text(&didyma(&["merge", &run, &shard]).stdout);
    assert!(merged.contains("successes in place of failures; round 1 is complete"), "{merged}");
    // A problem with another number of summaries is another problem.
    let more = String::from_utf8(read(&problem)).expect("text").replace("[0.4, 1]", "[0.4, 1, 2]");
    let more = folder.write("more.toml", &more);
    let args = ["simulate", &more, "--proposal", &proposal, "--shard", "1/1", "--out", "x.db"];
    refused(&args, &["is for 2 summaries, but the problem has 3"]);
    let first = folder.file("first.db");
    folder.write("worker.py", &PICKY.replace("LIMIT", "2").replace("b]", "b, 0]"));
    done(&["simulate", &more, "--shard", "1/1", "--out", &first]);
    refused(&["merge", &run, &first], &["another number of summaries"]);
    done(&["train", &run]);
}
