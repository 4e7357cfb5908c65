//! The command line as a user meets it: output, help, and what happens to bad input.

mod bench;
mod calibrate;
mod cluster;
mod crashes;
mod damage;
mod device;
mod disk;
mod estimators;
mod init;
mod levels;
mod names;
mod own;
mod problems;
mod reading;
mod received;
mod repeated;
mod report;
mod reproduce;
mod runs;
mod seeds;
mod watch;

use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// Settings of a run that takes about a second.
const TINY: [&str; 16] = [
    "--method",
    "tgrr",
    "--rounds",
    "3",
    "--simulations",
    "120",
    "--set",
    "train.steps=60",
    "--set",
    "flow.layers=2",
    "--set",
    "flow.units=8",
    "--set",
    "samples=300",
    "--members",
    "1",
];

/// Arguments of a tiny run, of one flow by TGRR unless they say otherwise.
fn tiny<'a>(task: &'a str, out: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let method = if more.contains(&"--method") { 2 } else { 0 };
    // What is tested of bytes and threads is told of the CPU.
    let device: &[&str] = if more.contains(&"--device") { &[] } else { &["--device", "cpu"] };
    let members = TINY.len() - if more.contains(&"--members") { 2 } else { 0 };
    [&["infer", task, "--out", out], &TINY[method..members], device, more].concat()
}

/// A finished tiny run of two-moons that tests may copy, but not change.
fn finished() -> &'static Path {
    static RUN: OnceLock<PathBuf> = OnceLock::new();
    RUN.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("finished-run");
        let _ = std::fs::remove_dir_all(&dir);
        done(&tiny("two-moons", dir.to_str().expect("a plain path"), &[]));
        dir
    })
}

/// A folder that goes when the test ends.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("didyma-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a temporary folder");
        Self(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().expect("a plain path").to_owned()
    }

    fn write(&self, name: &str, content: &str) -> String {
        let path = self.file(name);
        std::fs::write(&path, content).expect("the folder can be written");
        path
    }

    /// A copy of the finished run.
    fn run(&self, name: &str) -> String {
        let to = self.file(name);
        std::fs::create_dir_all(&to).expect("the folder can be written");
        for entry in std::fs::read_dir(finished()).expect("the run is there") {
            let from = entry.expect("an entry").path();
            let name = from.file_name().expect("a file");
            std::fs::copy(&from, Path::new(&to).join(name)).expect("a copy");
        }
        to
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The files of a run that may depend on nothing but its settings, with their content.
fn results(dir: &str) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).expect("it is there");
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("a plain name"));
    let mut names: Vec<String> =
        names.filter(|n| n.starts_with("round-") || n.starts_with("posterior.")).collect();
    names.sort();
    let read = |name: &String| std::fs::read(Path::new(dir).join(name)).expect("it is there");
    names.into_iter().map(|name| (name.clone(), read(&name))).collect()
}

/// Both runs ended with the same bytes.
fn expect_same(found: &str, expected: &str, what: &str) {
    let (new, old) = (results(found), results(expected));
    let names = |files: &[(String, Vec<u8>)]| files.iter().map(|f| f.0.clone()).collect::<Vec<_>>();
    assert_eq!(names(&new), names(&old), "{what}");
    assert!(new.len() >= 3, "{what}: a model and two files of samples at least");
    for ((name, new), (_, old)) in new.into_iter().zip(old) {
        assert!(new == old, "{what}: {name} differs");
    }
    let parts = std::fs::read_dir(found).expect("it is there").filter_map(Result::ok);
    let part = parts.map(|entry| entry.path()).find(|p| p.extension().is_some_and(|e| e == "part"));
    assert_eq!(part, None, "{what}: something unfinished is left");
}

fn didyma(args: &[&str]) -> Output {
    command(args).output().expect("the binary was built")
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    command.args(args).env_remove("DIDYMA_KERNELS");
    command
}

/// The standard output of a command that succeeds.
fn done(args: &[&str]) -> String {
    let output = didyma(args);
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    text(&output.stdout)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

fn json(args: &[&str]) -> Value {
    let output = didyma(&[args, &["--json"]].concat());
    assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

/// Exit code 2 and a sentence with these parts.
fn refused(args: &[&str], parts: &[&str]) {
    let output = didyma(args);
    let message = text(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {message}");
    assert!(parts.iter().all(|part| message.contains(part)), "{args:?}: {message}");
    assert!(!message.contains("panicked"), "{message}");
}
