//! Runs that are killed, stopped or shared: what is on the disk stays, and the end is the same bytes.

use super::{Folder, TINY, didyma, done, expect_same, refused, text, tiny};
use didyma::SimulatedRow;
use didyma::run::{CHECKPOINT, RunDir};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const TASK: &str = "lotka-volterra";
/// About half of the time goes into simulating and training, the rest into scores.
const SETTINGS: [&str; 4] = ["--set", "simulations=400", "--set", "train.steps=150"];

pub(super) fn start(args: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    command.args(args).env_remove("DIDYMA_KERNELS");
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the binary was built")
}

/// Ends the process as a loss of power would: it hears nothing of it.
pub(super) fn kill_after(args: &[&str], delay: Duration) {
    let mut child = start(args);
    std::thread::sleep(delay);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
}

/// Numbers in [0, 1), the same every time (splitmix64).
pub(super) struct Numbers(pub(super) u64);

impl Numbers {
    pub(super) fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The simulations on the disk, and how far the run has come in words; none if it had not begun.
fn stored(dir: &str) -> (Vec<SimulatedRow>, String) {
    let Ok(run) = RunDir::read(Path::new(dir)) else { return (Vec::new(), "nothing".to_owned()) };
    let rows = run.rows().expect("the database is whole");
    let training = run.training().expect("the checkpoint is whole").map_or(String::new(), |t| {
        let done = if t.is_done() { ", done" } else { "" };
        format!(", training of round {} after epoch {}{done}", t.round, t.members[0].epoch)
    });
    let results = run.file("posterior.csv").exists();
    let rounds = run.reports().expect("the database is whole").len();
    let words = format!("{} rows{training}, {rounds} rounds, results: {results}", rows.len());
    (rows, words)
}

/// Goes on with a run, or begins it again if it was killed before it had begun.
fn go_on(dir: &str, begin: &[&str]) -> Vec<String> {
    match RunDir::read(Path::new(dir)) {
        Ok(_) => vec!["resume".to_owned(), dir.to_owned()],
        Err(_) => {
            if Path::new(dir).exists() {
                let told = text(&didyma(&["resume", dir]).stderr);
                assert!(
                    told.contains("holds no run") || told.contains("before it began"),
                    "{told}"
                );
            }
            begin.iter().map(|&arg| arg.to_owned()).collect()
        }
    }
}

/// DIDYMA_KILLS is how many; they are spread over the time that the run takes.
#[test]
fn killed_at_any_moment_a_run_ends_with_the_same_bytes_and_loses_no_simulation() {
    let kills: u32 = std::env::var("DIDYMA_KILLS").map_or(6, |n| n.parse().expect("a number"));
    kill_and_go_on("kills", kills.div_ceil(2), &SETTINGS);
    let members = ["--members", "2", "--set", "train.steps=75"];
    kill_and_go_on("kills-members", kills.div_ceil(2), &[&SETTINGS[..], &members].concat());
}

fn kill_and_go_on(name: &str, kills: u32, settings: &[&str]) {
    let folder = Folder::new(name);
    let whole = folder.file("whole");
    let clock = Instant::now();
    done(&tiny(TASK, &whole, settings));
    let duration = clock.elapsed().as_secs_f64();
    eprintln!("uninterrupted: {duration:.3} s");
    let mut numbers = Numbers(1);
    for kill in 0..kills {
        let dir = folder.file(&kill.to_string());
        let begin = tiny(TASK, &dir, settings);
        let delay = duration * (f64::from(kill) + numbers.next()) / f64::from(kills);
        kill_after(&begin, Duration::from_secs_f64(delay));
        let (mut before, words) = stored(&dir);
        eprintln!("kill {kill} after {delay:.3} s: {words}");
        // Every other time going on is killed as well.
        if kill % 2 == 1 {
            let delay = numbers.next() * duration / 2.0;
            let again = go_on(&dir, &begin);
            kill_after(
                &again.iter().map(String::as_str).collect::<Vec<_>>(),
                Duration::from_secs_f64(delay),
            );
            let (after, words) = stored(&dir);
            eprintln!("    and after {delay:.3} s more: {words}");
            expect_kept(&before, &after);
            before = after;
            // The models of finished rounds are enough to go on.
            let _ = std::fs::remove_file(Path::new(&dir).join(CHECKPOINT));
        }
        let again = go_on(&dir, &begin);
        done(&again.iter().map(String::as_str).collect::<Vec<_>>());
        expect_kept(&before, &stored(&dir).0);
        expect_same(&dir, &whole, &format!("kill {kill}"));
        std::fs::remove_dir_all(&dir).expect("it is ours");
    }
}

#[test]
fn a_run_has_its_members_for_life() {
    let folder = Folder::new("members");
    let dir = folder.file("run");
    for members in ["0", "-1", "2.5", "65"] {
        let wanted = "give a whole number of members between 1 and 64";
        refused(&tiny("two-moons", &dir, &["--members", members]), &["--members", wanted]);
    }
    let settings = ["--set", "ensemble.members=0"];
    refused(&tiny("two-moons", &dir, &settings), &["members is 0", "between 1 and 64"]);
    assert!(!Path::new(&dir).exists());
    done(&tiny("two-moons", &dir, &["--members", "2", "--set", "rounds=1"]));
    for [flag, value] in [["--members", "3"], ["--set", "train.rate=1e-4"]] {
        let kept = format!("{flag}: a run keeps the settings that it began with");
        refused(&["resume", &dir, flag, value], &[&kept]);
    }
    let shown = done(&["show", &dir]);
    assert!(shown.contains(", members 0."), "{shown}");
}

fn expect_kept(before: &[SimulatedRow], after: &[SimulatedRow]) {
    let lost = before.iter().find(|row| !after.contains(row));
    assert!(lost.is_none(), "lost or changed: {lost:?}");
}

/// A task, its settings, and when to kill its run.
type Moment<'a> = (&'a str, &'a [&'a str], &'a dyn Fn(&str) -> bool);

/// Moments that are too short for chance: within the simulations of a round, and while results are written.
#[test]
fn killed_while_it_simulates_or_exports_a_run_ends_with_the_same_bytes() {
    let folder = Folder::new("moments");
    let slow = ["--set", "rounds=2", "--set", "simulations=800", "--set", "train.steps=10"];
    let within = |dir: &str| {
        let run = RunDir::read(Path::new(dir));
        let rows = run.and_then(|run| run.rows()).map_or(0, |rows| rows.len());
        (801..1600).contains(&rows)
    };
    let large = ["--set", "rounds=1", "--set", "samples=300000"];
    let exporting = |dir: &str| {
        let exists = |name| Path::new(dir).join(name).exists();
        exists("posterior.npz") || exists("posterior.npz.part")
    };
    let moments: [Moment; 2] =
        [("hodgkin-huxley", &slow, &within), ("two-moons", &large, &exporting)];
    for (task, settings, moment) in moments {
        let (whole, dir) = (folder.file(&format!("{task}-whole")), folder.file(task));
        done(&tiny(task, &whole, settings));
        let mut child = start(&tiny(task, &dir, settings));
        while !moment(&dir) && child.try_wait().expect("it is ours").is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        child.kill().expect("it is ours");
        child.wait().expect("it is ours");
        let (before, words) = stored(&dir);
        eprintln!("{task}: {words}");
        done(&["resume", &dir]);
        expect_kept(&before, &stored(&dir).0);
        expect_same(&dir, &whole, task);
    }
}

/// Waits until a file of the run is there.
pub(super) fn wait_for(dir: &str, name: &str, child: &mut Child) {
    let path = Path::new(dir).join(name);
    while !path.exists() {
        let ended = child.try_wait().expect("it is ours");
        assert!(ended.is_none(), "it ended before {name} was there: {ended:?}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// A run that would take minutes: tests stop it.
pub(super) fn long(out: &str) -> Vec<&str> {
    tiny(
        TASK,
        out,
        &[
            "--set",
            "train.steps=100000000",
            "--set",
            "train.epochs=1000000",
            "--set",
            "train.patience=1000000",
        ],
    )
}

#[test]
fn one_process_works_on_a_run_and_others_may_look() {
    let folder = Folder::new("shared");
    let dir = folder.file("run");
    let mut child = start(&long(&dir));
    wait_for(&dir, CHECKPOINT, &mut child);
    let number = format!("another process (number {}) works on {dir}", child.id());
    refused(&["resume", &dir], &[&number, "wait for it, or end it first"]);
    refused(&[&["infer", TASK, "--out", &dir], &TINY[..]].concat(), &["already holds a run"]);
    let shown = done(&["show", &dir]);
    assert!(
        shown.contains("0 of 3 rounds") && shown.contains("running; to look on: didyma watch"),
        "{shown}"
    );
    refused(&["sample", &dir], &["no posterior yet", "didyma resume"]);
    child.kill().expect("it is ours");
    child.wait().expect("it is ours");
}

#[cfg(unix)]
#[test]
fn signals_stop_a_run_cleanly() {
    let folder = Folder::new("signals");
    let whole = folder.file("whole");
    done(&tiny(TASK, &whole, &SETTINGS));
    for (signal, after) in [("-INT", CHECKPOINT), ("-TERM", "round-1.safetensors")] {
        let dir = folder.file(signal);
        let mut child = start(&tiny(TASK, &dir, &[&SETTINGS[..], &["--json"]].concat()));
        wait_for(&dir, after, &mut child);
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()));
        let output = child.wait_with_output().expect("it is ours");
        let told = text(&output.stderr);
        let how = format!("To go on: didyma resume \"{dir}\"");
        assert!(told.contains("stopping at the next safe point") && told.contains(&how), "{told}");
        assert_eq!(output.status.code(), Some(130));
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("one object");
        assert_eq!(found["finished"], false, "{found}");
        // What is told of the run agrees with what another process sees.
        let rounds = found["rounds"].as_array().expect("a list").len();
        assert_eq!(found["parameters"].as_array().map(Vec::is_empty), Some(rounds == 0), "{found}");
        let shown = done(&["show", &dir]);
        assert!(shown.contains(&format!("{rounds} of 3 rounds")), "{shown}");
        done(&["resume", &dir, "--threads", "1"]);
        expect_same(&dir, &whole, signal);
    }
}
