//! Programs whose children keep what is ours, and a process that has nothing left.

use super::once::once;
use super::{Bench, expect, streams, strings, theta};
use didyma::Rows;
use didyma::simulator::program::Call;
use didyma::simulator::{Progress, simulate};
use std::ops::ControlFlow;
use std::process::Command;

/// Runs a test of this file in a process of its own, after words of a shell.
fn apart(before: &str, test: &str) {
    let this = std::env::current_exe().unwrap();
    let script = format!("{before}; exec \"$0\" --exact resources::{test} --ignored --nocapture");
    let found = Command::new("sh").args(["-c", &script]).arg(this).output().unwrap();
    let text =
        [found.stdout, found.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(found.status.success() && text[0].contains("in order"), "{}\n{}", text[0], text[1]);
}

fn count(of: &str) -> usize {
    std::fs::read_dir(format!("/proc/self/{of}")).unwrap().count()
}

#[test]
fn children_that_detach_cost_nothing() {
    apart("ulimit -n 40", "detached");
}

/// Children that keep the pipes of their program open hold two descriptors and two threads for as long as they live.
#[test]
#[ignore = "it is run by the test above"]
fn detached() {
    let script = "
a, b, seed = float(sys.argv[1]), float(sys.argv[2]), int(sys.argv[3])
import subprocess
subprocess.Popen(['sleep', '7'], start_new_session=True)
print(2 * a, seed % 1000)
";
    let bench = once(script, &["{a}", "{b}", "{seed}"]).workers(4);
    let simulator = bench.simulator();
    let before = (count("fd"), count("task"));
    expect(&super::run(&*simulator, 12), &[]);
    let clock = std::time::Instant::now();
    while (count("fd"), count("task")) != before {
        let now = (count("fd"), count("task"));
        assert!(clock.elapsed() < std::time::Duration::from_secs(2), "{before:?}, {now:?}");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert!(
        super::someone_in(bench.folder.path()).is_some(),
        "the children have ended by themselves"
    );
    println!("in order");
}

#[test]
fn a_lack_of_descriptors_is_no_failure_of_a_simulation() {
    apart("ulimit -n 40", "without_descriptors");
}

#[test]
#[ignore = "it is run by the test above"]
fn without_descriptors() {
    let once = || Bench::new(|_| Call::Once { command: strings(["echo", "{a}", "{b}"]) });
    let worker = || Bench::worker("for r in requests(): answer(r)");
    for bench in [once(), worker()] {
        let bench = bench.workers(1);
        let simulator = bench.simulator();
        let (theta, streams) = (theta(6), streams());
        let rows = Rows::new("theta", &theta, 2).unwrap();
        let mut files = Vec::new();
        let mut observe = |progress: Progress| {
            assert_eq!(progress.failed, 0, "{:?}", progress.failures);
            ControlFlow::Continue(())
        };
        while let Ok(file) = std::fs::File::open("/dev/null") {
            files.push(file);
        }
        let error = simulate(&*simulator, rows, &streams, 0, 1, &mut observe).unwrap_err();
        assert_eq!(
            error.to_string(),
            "could not start a program for a simulation (Too many open files (os error 24)): raise the limit on open files, \
             or take fewer workers, then go on; it has not failed"
        );
        // Once there are some again, all is well.
        files.clear();
        let found = simulate(&*simulator, rows, &streams, 0, 1, &mut observe);
        assert_eq!(found.unwrap().done, 6);
    }
    println!("in order");
}
