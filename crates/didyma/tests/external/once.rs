//! Programs that are run for each simulation.

use super::{Bench, expect, python};
use didyma::simulator::program::Call;
use std::time::{Duration, Instant};

/// A program in Python, called with these arguments; it has `a` (a number) and `seed`.
pub(super) fn once(script: &str, arguments: &[&str]) -> Bench {
    Bench::new(|folder| {
        let path = folder.join("program.py");
        std::fs::write(&path, format!("import json, os, sys, time\n{script}")).unwrap();
        let mut command = vec![python(), "-S".to_owned(), path.display().to_string()];
        command.extend(arguments.iter().map(|&word| word.to_owned()));
        Call::Once { command }
    })
}

const ARGUMENTS: &str = "a, b, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])\n";

#[test]
fn arguments_and_numbers() {
    let script = format!("{ARGUMENTS}assert b == 0.5\nprint(2 * a, seed % 1000)");
    expect(&once(&script, &["{a}", "{b}", "{seed}"]).run(6), &[]);
}

#[test]
fn csv_with_names() {
    let script =
        format!("{ARGUMENTS}print('luck,time,double')\nprint(seed % 1000, 17, 2 * a, sep=',')");
    expect(&once(&script, &["{a}", "{b}", "{seed}"]).run(4), &[]);
}

#[test]
fn files() {
    let script = r#"
asked = json.load(open(sys.argv[1]))
assert asked["theta"] == [asked["parameters"]["a"], asked["parameters"]["b"]]
assert os.path.dirname(sys.argv[1]) == os.environ["DIDYMA_SCRATCH"]
print("working in", os.getcwd())
open("there", "a").write(os.environ["DIDYMA_SCRATCH"] + "\n")
found = {"double": 2 * asked["theta"][0], "luck": asked["seed"] % 1000}
json.dump(found, open(sys.argv[2].removeprefix("--to="), "w"))
"#;
    let bench = once(script, &["{input}", "--to={output}"]);
    expect(&bench.run(4), &[]);
    // Each had a directory of its own, and none is left.
    let text = bench.read("there");
    let folders: std::collections::BTreeSet<&str> = text.lines().collect();
    assert_eq!(folders.len(), 4);
    assert!(folders.iter().all(|folder| !std::path::Path::new(folder).exists()));
}

#[test]
fn json_and_failures() {
    let script = format!(
        r#"{ARGUMENTS}
if a == 1: print(json.dumps({{"error": "too cold"}}))
elif a == 2: sys.exit("no fuel")
elif a == 3: print("[1, 2")
elif a == 4: print(json.dumps({{"x": [1, 2, 3]}}))
elif a == 5: print("[NaN, 1]")
elif a == 6: os.kill(os.getpid(), 11)
elif a == 7: pass
elif a == 8: print("a lot " * 1000000)
elif a == 9: print("see below"); os._exit(4)
else: print(json.dumps({{"x": [2 * a, seed % 1000]}}))
"#
    );
    let found = once(&script, &["{a}", "{b}", "{seed}"]).run(12);
    expect(
        &found,
        &[
            (1, &["too cold"]),
            (2, &["the program ended with exit code 1\nits last words:\nno fuel"]),
            (3, &["the program's output is no JSON", "its last words:\n[1, 2"]),
            (4, &["x of the program's output has 3 numbers, but there are 2 summaries"]),
            (5, &["summary 1 is NaN"]),
            (6, &["the program was ended by signal 11 (SIGSEGV)"]),
            (7, &["the program wrote no output"]),
            (8, &["the program's output is longer than 1048"]),
            (9, &["the program ended with exit code 4\nits last words:\nsee below"]),
        ],
    );
}

#[test]
fn hangs_and_children() {
    let script = format!(
        r#"{ARGUMENTS}
if a == 1: time.sleep(1000)
if a == 2: os.system("sleep 1000 &")
if a == 3: os.close(1); time.sleep(1000)
print(2 * a, seed % 1000)
"#
    );
    let clock = Instant::now();
    let bench = once(&script, &["{a}", "{b}", "{seed}"]).limits(2.0, 60.0);
    expect(&bench.run(5), &[(1, &["no answer within 2 s"]), (3, &["no answer within 2 s"])]);
    assert!(clock.elapsed() < Duration::from_secs(15));
}

#[test]
fn output_that_is_no_file() {
    let script = "import socket\na = float(sys.argv[1])\nif a: os.mkfifo(sys.argv[3])\n";
    let found = once(script, &["{a}", "{b}", "{output}"]).run(2);
    expect(
        &found,
        &[(0, &["no {output} that can be read: No such file"]), (1, &["it is no file"])],
    );
}

#[test]
fn does_not_exist() {
    let command = ["no-such-program", "{a}", "{b}"].map(str::to_owned).to_vec();
    let bench = Bench::new(|_| Call::Once { command });
    expect(&bench.run(1), &[(0, &["could not start `no-such-program` in ", "No such file"])]);
}
