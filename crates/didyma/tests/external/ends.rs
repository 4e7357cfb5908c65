//! A program that must exit at once.

use super::{Bench, run};
use std::process::Command;
use std::time::Duration;

/// In a process of its own, since nothing can be started afterwards.
#[test]
fn all_processes_can_be_ended() {
    let this = std::env::current_exe().unwrap();
    let test = ["--exact", "ends::child", "--ignored", "--nocapture"];
    let found = Command::new(this).args(test).output().unwrap();
    let text = String::from_utf8_lossy(&found.stdout).into_owned();
    assert!(found.status.success() && text.contains("nobody is left"), "{text}");
}

#[test]
#[ignore = "it is run by the test above"]
fn child() {
    let script = r#"
subprocess.Popen(["sleep", "1000"])
for r in requests():
    time.sleep(1000)
"#;
    let bench = Bench::worker(script);
    let simulator = bench.simulator();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| run(&*simulator, 4));
        while super::someone_in(bench.folder.path()).is_none() {
            std::thread::sleep(Duration::from_millis(5));
        }
        std::thread::sleep(Duration::from_millis(300));
        didyma::simulator::program::end_all();
        bench.expect_nobody();
        let found = running.join().unwrap();
        assert!(found.failures.iter().any(|failure| failure.reason.contains("about to exit")));
    });
    println!("nobody is left");
}
