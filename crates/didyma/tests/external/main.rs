//! Programs outside of this process as simulators: whatever they do, every simulation ends, rows are right, and nothing is
//! left behind.

#![allow(clippy::unwrap_used)]
#![cfg(unix)]

mod ahead;
mod ends;
mod hostile;
mod interrupts;
mod mg1;
mod once;
mod parsers;
mod protocol;
mod resources;
mod rounds;
mod umbridge;

use didyma::Rows;
use didyma::rng::{Purpose, SimulationStreams, Streams};
use didyma::simulator::program::{Call, Program};
use didyma::simulator::{Progress, Simulations, Simulator, simulate};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// What all workers of these tests begin with: requests one by one, and answers.
const PRELUDE: &str = r#"
import json, os, signal, subprocess, sys, time

def requests():
    for line in sys.stdin:
        asked = json.loads(line)
        yield from asked if isinstance(asked, list) else [asked]

def answer(request, **other):
    x = [2 * request["theta"][0], request["seed"] % 1000]
    print(json.dumps({"id": request["id"], "x": x, **other}), flush=True)

def row(request):
    return int(request["theta"][0])
"#;

fn streams() -> SimulationStreams {
    Streams::new(9).simulations(Purpose::Simulation, 0)
}

/// The interpreter itself: what is found by name may be a script that takes longer to start than all else.
fn python() -> String {
    static PYTHON: OnceLock<String> = OnceLock::new();
    let find = || {
        let asked = ["-c", "import sys; print(sys.executable)"];
        let found = std::process::Command::new("python3").args(asked).output().unwrap();
        String::from_utf8(found.stdout).unwrap().trim().to_owned()
    };
    PYTHON.get_or_init(find).clone()
}

fn strings<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// A directory with a program in it, and how the program is called.
struct Bench {
    folder: TempDir,
    program: Program,
}

impl Bench {
    fn new(call: impl FnOnce(&Path) -> Call) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let program = Program {
            call: call(folder.path()),
            folder: folder.path().to_owned(),
            workers: Some(2),
            time_limit: 20.0,
            start_limit: 20.0,
            launcher: Vec::new(),
        };
        Self { folder, program }
    }

    /// A worker whose script goes on after the prelude.
    fn worker(script: &str) -> Self {
        Self::new(|folder| {
            let path = folder.join("worker.py");
            std::fs::write(&path, format!("{PRELUDE}{script}")).unwrap();
            let command = vec![python(), "-S".to_owned(), path.display().to_string()];
            Call::Worker { command, batch: 1, stream: false }
        })
    }

    fn limits(mut self, time: f64, start: f64) -> Self {
        (self.program.time_limit, self.program.start_limit) = (time, start);
        self
    }

    fn workers(mut self, count: usize) -> Self {
        self.program.workers = Some(count);
        self
    }

    fn batch(mut self, size: usize) -> Self {
        if let Call::Worker { batch, .. } = &mut self.program.call {
            *batch = size;
        }
        self
    }

    fn simulator(&self) -> Box<dyn Simulator> {
        self.program.simulator(strings(["a", "b"]), strings(["double", "luck"])).unwrap()
    }

    /// Simulates rows 0, 1, …, and looks that nothing is left behind.
    fn run(&self, count: usize) -> Simulations {
        let simulator = self.simulator();
        let found = run(&*simulator, count);
        drop(simulator);
        self.expect_nobody();
        found
    }

    /// The same for several numbers of workers and sizes of batches, with the same rows and failures.
    fn run_all(mut self, count: usize) -> Simulations {
        let first = self.run(count);
        for (workers, batch) in [(1, 1), (5, 1), (2, 4)] {
            self = self.workers(workers).batch(batch);
            let found = self.run(count);
            assert_eq!(bits(&found), bits(&first), "{workers} workers, batches of {batch}");
            let rows =
                |found: &Simulations| found.failures.iter().map(|f| f.row).collect::<Vec<_>>();
            assert_eq!(rows(&found), rows(&first), "{workers} workers, batches of {batch}");
        }
        first
    }

    /// No process works in the directory any more: neither the program nor what it has started.
    fn expect_nobody(&self) {
        let clock = Instant::now();
        while let Some(process) = someone_in(self.folder.path()) {
            // What was killed needs a moment to be gone.
            assert!(clock.elapsed() < Duration::from_secs(3), "{process:?} is left");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// A file that the program has written.
    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.folder.path().join(name)).unwrap_or_default()
    }
}

fn someone_in(folder: &Path) -> Option<PathBuf> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path());
    let here = |path: &PathBuf| std::fs::read_link(path.join("cwd")).is_ok_and(|cwd| cwd == folder);
    processes.into_iter().find(here)
}

/// Row i is (i, ½).
fn theta(count: usize) -> Vec<f64> {
    (0..count).flat_map(|i| [i as f64, 0.5]).collect()
}

fn run(simulator: &dyn Simulator, count: usize) -> Simulations {
    let theta = theta(count);
    let rows = Rows::new("theta", &theta, 2).unwrap();
    let go_on = &mut |_: Progress| ControlFlow::Continue(());
    let found = simulate(simulator, rows, &streams(), 0, 2, go_on).unwrap();
    assert_eq!(found.done, count);
    found
}

fn bits(found: &Simulations) -> Vec<u64> {
    found.x.iter().map(|x| x.to_bits()).collect()
}

/// The rows named have failed with a reason that has these parts; all others are right.
fn expect(found: &Simulations, failed: &[(usize, &[&str])]) {
    let reasons: Vec<_> = found.failures.iter().map(|f| (f.row, f.reason.as_str())).collect();
    assert_eq!(reasons.len(), failed.len(), "{reasons:?}");
    for ((row, reason), (expected, parts)) in reasons.iter().zip(failed) {
        assert_eq!(row, expected, "{reasons:?}");
        parts.iter().for_each(|part| assert!(reason.contains(part), "{part} is not in: {reason}"));
    }
    for (row, x) in found.x.chunks_exact(2).enumerate() {
        if failed.iter().all(|(other, _)| *other != row) {
            let seed = streams().stream(row as u64).seed();
            assert_eq!(x, [2.0 * row as f64, (seed % 1000) as f64], "row {row}");
        }
    }
}
