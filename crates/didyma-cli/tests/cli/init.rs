//! `didyma init`: what it writes parses and works, in each language that is here.

use super::{Folder, didyma, done, json, number, refused, text};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Language, worker, the program it needs, how to compile it, and its command.
type Language = (&'static str, &'static str, &'static str, &'static str, &'static str);

const LANGUAGES: [Language; 6] = [
    ("python", "worker.py", "python3", "", "python3 worker.py"),
    ("r", "worker.R", "Rscript", "", "Rscript --vanilla worker.R"),
    ("julia", "worker.jl", "julia", "", "julia --startup-file=no worker.jl"),
    ("c", "worker.c", "cc", "cc -O2 -o worker worker.c -lm", "./worker"),
    ("rust", "worker.rs", "rustc", "rustc -O worker.rs", "./worker"),
    ("shell", "worker.sh", "awk", "", "sh worker.sh"),
];

/// A folder of `didyma init` whose worker can be started; none without the language.
fn ready(folder: &Folder, (language, _, program, compile, _): Language) -> Option<String> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if !std::env::split_paths(&path).any(|folder| folder.join(program).is_file()) {
        eprintln!("skipped: {program} is not here, so that the worker in {language} was not run");
        return None;
    }
    let dir = folder.file(language);
    let told = done(&["init", &dir, "--language", language]);
    assert!(told.contains(compile) && told.contains(&format!("didyma check {dir}")), "{told}");
    if !compile.is_empty() {
        let compiled = Command::new("sh").args(["-c", compile]).current_dir(&dir).status();
        assert!(compiled.expect("sh is there").success(), "{compile}");
    }
    Some(dir)
}

#[test]
fn a_folder_is_made_once() {
    let folder = Folder::new("init");
    for (language, worker, _, compile, command) in LANGUAGES {
        let dir = folder.file(language);
        let told = done(&["init", &dir, "--language", language]);
        assert!(told.contains(&format!("didyma infer {dir}/problem.toml")), "{told}");
        assert!(told.contains(compile), "{told}");
        let read = |name: &str| {
            std::fs::read_to_string(Path::new(&dir).join(name)).expect("it was written")
        };
        let words: Vec<&str> = command.split(' ').collect();
        let problem = read("problem.toml");
        assert!(problem.contains(&format!("name = \"{language}\"")), "{problem}");
        assert!(problem.contains(&format!("command = {}", json!(words)).replace(',', ", ")));
        assert!(problem.contains(worker) && !problem.contains('@'), "{problem}");
        assert!(read(worker).contains("simulate"));
        assert_eq!(std::fs::read_dir(&dir).expect("it is there").count(), 2);
        refused(&["init", &dir], &[&dir, "not empty", "nothing was changed"]);
        assert_eq!(read("problem.toml"), problem);
        // The file is read before anything is simulated: its parameters and priors are as meant.
        let run = folder.file(&format!("{language}-run"));
        done(&["propose", &run, &dir]);
        let proposed = std::fs::read_to_string(Path::new(&run).join("proposal-1.csv"));
        assert!(proposed.expect("it was written").contains("amplitude,rate"));
    }
    let empty = folder.file("empty");
    std::fs::create_dir(&empty).expect("it can be made");
    done(&["init", &empty]);
    assert!(Path::new(&empty).join("worker.py").is_file());
}

#[test]
fn bad_names_are_refused() {
    let folder = Folder::new("init-names");
    for name in ["bad name", ".hidden", "-dash", "a\nb", "quote\"", "..", &"x".repeat(65)] {
        refused(&["init", "--", &folder.file(name)], &["cannot be the name of a problem"]);
    }
    refused(&["init", &folder.file("mg1")], &["mg1", "built-in task"]);
    refused(&["init", &folder.file("a"), "--language", "cobol"], &["cobol", "python, r, julia"]);
    let file = folder.write("file", "mine");
    refused(&["init", &file], &["is a file"]);
    refused(&["init", &folder.file("file/below")], &["file"]);
    assert_eq!(std::fs::read_to_string(file).expect("it is there"), "mine");
    assert_eq!(std::fs::read_dir(&folder.0).expect("it is there").count(), 1);
}

#[test]
fn a_language_that_is_missing_is_told() {
    let folder = Folder::new("init-missing");
    let mut command = Command::new(env!("CARGO_BIN_EXE_didyma"));
    let args = ["init", &folder.file("problem"), "--language", "r"];
    let output = command.args(args).env("PATH", &folder.0).output().expect("the binary was built");
    assert!(output.status.success());
    assert!(text(&output.stderr).contains("note: Rscript is not on the PATH"));
}

/// A worker under way.
struct Worker {
    child: Child,
    requests: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Worker {
    fn start(dir: &str, command: &str) -> Self {
        let words: Vec<&str> = command.split(' ').collect();
        let program = match words[0].strip_prefix("./") {
            Some(name) => Path::new(dir).join(name),
            None => words[0].into(),
        };
        let mut command = Command::new(program);
        command.args(&words[1..]).current_dir(dir).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let requests = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().expect("it is piped"));
        Self { child, requests, answers }
    }

    /// Waits for the answer before anything else is asked, so that it has to be flushed.
    fn ask(&mut self, request: &Value) -> Value {
        let requests = self.requests.as_mut().expect("it is open");
        writeln!(requests, "{request}").expect("it listens");
        self.answer()
    }

    fn answer(&mut self) -> Value {
        let mut line = String::new();
        self.answers.read_line(&mut line).expect("it answers in UTF-8");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{line}: {error}"))
    }

    fn x(&mut self, id: u64, seed: u64, theta: [f64; 2]) -> Vec<f64> {
        let answer = self.ask(&json!({"id": id, "seed": seed, "theta": theta}));
        assert_eq!(answer["id"], id, "{answer}");
        let x: Vec<f64> = answer["x"].as_array().expect("numbers").iter().map(number).collect();
        assert_eq!(x.len(), 5, "{answer}");
        x
    }
}

/// Seeds of 53 bits.
fn seed(i: u64) -> u64 {
    (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11
}

#[test]
fn workers_keep_to_the_protocol() {
    let folder = Folder::new("workers");
    for language in LANGUAGES {
        let Some(dir) = ready(&folder, language) else { continue };
        let mut worker = Worker::start(&dir, language.4);
        let theta = |i: u64| [0.5 + i as f64 / 10.0, 1e-6 * 7f64.powi(i as i32 % 8)];
        let first: Vec<Vec<f64>> = (0..20).map(|i| worker.x(i + 7, seed(i), theta(i))).collect();
        for (i, x) in (0..).zip(&first) {
            assert_eq!(&worker.x(i, seed(i), theta(i)), x, "{language:?}: the same seed");
        }
        // Seeds that differ only in their lowest or highest bits.
        let seeds = [(1 << 53) - 1, (1 << 53) - 2, (1 << 52) - 1, (1 << 31) - 1, 0];
        let all: Vec<f64> = seeds.iter().map(|&s| worker.x(1 << 52, s, [1.0, 1.0])[0]).collect();
        assert!((0..5).all(|i| all[..i].iter().all(|x| *x != all[i])), "{language:?}: {all:?}");
        for theta in [json!(["x", 1]), json!([null, 1]), json!([1]), json!([1, 2, 3])] {
            let answer = worker.ask(&json!({"id": 3, "seed": 1, "theta": theta}));
            assert!(answer["id"] == 3 && answer["error"].is_string(), "{language:?}: {answer}");
        }
        // A batch is answered one by one.
        let request = |i: u64| json!({"id": i, "seed": seed(i), "theta": theta(i)});
        assert_eq!(worker.ask(&json!([request(0), request(1)]))["id"], 0);
        assert_eq!(worker.answer()["id"], 1);
        drop(worker.requests.take());
        assert!(worker.child.wait().expect("it ends").success(), "{language:?}");
    }
}

/// 400 answers have 2,000 errors: their mean has a standard error of 0.1/√2000, their standard deviation of 0.1/√4000.
#[test]
fn workers_simulate_what_they_say() {
    let folder = Folder::new("workers-law");
    for language in LANGUAGES {
        let Some(dir) = ready(&folder, language) else { continue };
        let rows = folder.file(&format!("{}.csv", language.0));
        let args = ["simulate", &dir, "-n", "400", "--theta", "2,0.7", "--out", &rows];
        let report = json(&args);
        assert_eq!((&report["simulations"], &report["failures"]), (&json!(400), &json!(0)));
        let csv = std::fs::read_to_string(&rows).expect("it was written");
        let row = |line: &str| {
            let values: Vec<f64> =
                line.split(',').map(|value| value.parse().expect("a number")).collect();
            let expected = [0.0, 0.5, 1.0, 2.0, 4.0].map(|t: f64| 2.0 * (-0.7 * t).exp());
            values[2..].iter().zip(expected).map(|(x, mean)| x - mean).collect::<Vec<_>>()
        };
        let errors: Vec<f64> = csv.lines().skip(1).flat_map(row).collect();
        let n = errors.len() as f64;
        let mean = errors.iter().sum::<f64>() / n;
        let sd = (errors.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / n).sqrt();
        assert!(errors.len() == 2000 && mean.abs() < 4.0 * 0.1 / n.sqrt(), "{language:?}: {mean}");
        assert!((sd - 0.1).abs() < 4.0 * 0.1 / (2.0 * n).sqrt(), "{language:?}: {sd}");
        // By any number of workers, and two in a line.
        let problem = Path::new(&dir).join("problem.toml");
        let batches = std::fs::read_to_string(&problem).expect("it was written");
        std::fs::write(&problem, batches.replace("# batch = 1 ", "batch = 2 "))
            .expect("it is ours");
        let again = folder.file("again.csv");
        let args = ["simulate", &dir, "-n", "400", "--theta", "2,0.7", "--workers", "1", "--out"];
        assert!(didyma(&[&args[..], &[&again]].concat()).status.success());
        assert_eq!(std::fs::read_to_string(&again).expect("it was written"), csv, "{language:?}");
    }
}
