//! Workers that crash, hang and flood.

use super::{Bench, expect};
use std::time::{Duration, Instant};

#[test]
fn exits() {
    let script = r#"
for r in requests():
    if row(r) in (2, 7):
        sys.exit("out of fuel\nafter all") if row(r) == 2 else os._exit(3)
    answer(r)
"#;
    let found = Bench::worker(script).run_all(10);
    let fuel: &[&str] =
        &["the worker ended with exit code 1\nits last words:\nout of fuel\nafter all"];
    expect(&found, &[(2, fuel), (7, &["the worker ended with exit code 3"])]);
}

#[test]
fn segfaults() {
    let script = r#"
for r in requests():
    if row(r) == 4:
        print("where am I", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    answer(r)
"#;
    let found = Bench::worker(script).run_all(8);
    expect(&found, &[(4, &["the worker was ended by signal 11 (SIGSEGV)", "\nwhere am I"])]);
}

#[test]
fn hangs() {
    let script = r#"
for r in requests():
    if row(r) == 3:
        print("thinking", file=sys.stderr, flush=True)
        time.sleep(1000)
    answer(r)
"#;
    let clock = Instant::now();
    let found = Bench::worker(script).limits(0.5, 2.0).run(8);
    expect(
        &found,
        &[(3, &["no answer within 0.5 s, and 2 s for the start\nits last words:\nthinking"])],
    );
    assert!(clock.elapsed() < Duration::from_secs(15));
}

#[test]
fn ignores_requests_to_end() {
    let script = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for r in requests():
    while row(r) == 3:
        time.sleep(1000)
    answer(r)
while True:
    time.sleep(1000)
"#;
    expect(&Bench::worker(script).limits(0.5, 2.0).run(6), &[(3, &["no answer within 0.5 s"])]);
}

#[test]
fn floods_its_output() {
    let script = r#"
line = "y" * 999 + "\n"
for r in requests():
    if row(r) == 2:
        sys.stdout.write(line * 5000)
    while row(r) == 5:
        sys.stdout.write("without an end\n")
    answer(r)
"#;
    let found = Bench::worker(script).limits(1.0, 2.0).run(7);
    expect(
        &found,
        &[(5, &["no answer within", "\nits last words:", "\nwithout an end\nwithout an end\n"])],
    );
    assert!(found.failures[0].reason.len() < 4300);
}

#[test]
fn floods_its_output_with_json() {
    let script = r#"
for r in requests():
    answer(r)
    while row(r) == 2:
        answer(r)
"#;
    // It has answered; what follows is of no interest, but it never gets to the next request.
    expect(&Bench::worker(script).limits(1.0, 2.0).workers(1).run(5), &[]);
}

#[test]
fn floods_its_errors() {
    let script = r#"
for r in requests():
    if row(r) in (2, 3):
        sys.stderr.write("warning\n" * 700000)
        sys.stderr.flush()
    if row(r) == 3:
        sys.exit(9)
    answer(r)
"#;
    let found = Bench::worker(script).run(5);
    expect(&found, &[(3, &["exit code 9", "\nits last words:", "\nwarning\nwarning"])]);
    assert!(found.failures[0].reason.len() < 4300);
}

#[test]
fn writes_a_line_of_100_mb() {
    let peak = || {
        let status = std::fs::read_to_string("/proc/self/status").unwrap();
        let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    let script = r#"
for r in requests():
    if row(r) in (1, 4):
        sys.stdout.write("{" if row(r) == 1 else "no JSON, ")
        for _ in range(100):
            sys.stdout.write("z" * 1000000)
        print()
    answer(r)
"#;
    let before = peak();
    let found = Bench::worker(script).run(6);
    expect(&found, &[(1, &["the worker's answer is too long a line", "zzz"])]);
    // In KB; other tests run beside this one, and the system's count may lag behind.
    let more = peak().saturating_sub(before);
    assert!(more < 50_000, "{more} KB");
}

#[test]
fn leaves_children_behind() {
    let script = r#"
child = subprocess.Popen(["sleep", "1000"])
for r in requests():
    if row(r) in (2, 5):
        subprocess.Popen(["sh", "-c", "trap '' TERM; sleep 1000; sleep 1000"])
    if row(r) == 2:
        sys.exit(5)
    answer(r)
"#;
    // The children hold the worker's output open, and are in the way of nobody.
    let clock = Instant::now();
    let found = Bench::worker(script).run_all(8);
    expect(&found, &[(2, &["the worker ended with exit code 5"])]);
    assert!(clock.elapsed() < Duration::from_secs(20));
}

#[test]
fn never_reads() {
    let bench = Bench::worker("time.sleep(1000)").limits(0.5, 0.5);
    let dim = 50_000;
    let names = |count: usize| (0..count).map(|i| format!("p{i}")).collect::<Vec<_>>();
    let simulator = bench.program.simulator(names(dim), names(1)).unwrap();
    let theta = vec![0.1; 2 * dim];
    let rows = didyma::Rows::new("theta", &theta, dim).unwrap();
    let go_on = &mut |_: didyma::simulator::Progress| std::ops::ControlFlow::Continue(());
    let found =
        didyma::simulator::simulate(&*simulator, rows, &super::streams(), 0, 2, go_on).unwrap();
    assert_eq!(found.failures.len(), 2);
    assert!(found.failures[0].reason.contains("no answer within 0.5 s, and 0.5 s for the start"));
    drop(simulator);
    bench.expect_nobody();
}

#[test]
fn crashes_because_of_what_was_before() {
    let script = r#"
for count, r in enumerate(requests()):
    if count == 6:
        os.kill(os.getpid(), signal.SIGSEGV)
    answer(r)
"#;
    // It is the fault of no simulation: none fails.
    expect(&Bench::worker(script).run_all(40), &[]);
}

#[test]
fn ends_after_each_answer() {
    let script = r#"
for r in requests():
    answer(r)
    sys.exit(0)
"#;
    expect(&Bench::worker(script).run_all(8), &[]);
}

#[test]
fn closes_its_output() {
    let script = r#"
for r in requests():
    if row(r) == 1:
        os.close(1)
        time.sleep(1000)
    answer(r)
"#;
    expect(&Bench::worker(script).run(4), &[(1, &["the worker closed its output"])]);
}

#[test]
fn does_not_exist() {
    let mut bench = Bench::worker("");
    let call =
        |command| didyma::simulator::program::Call::Worker { command, batch: 1, stream: false };
    let folder = bench.folder.path().display().to_string();
    bench.program.call = call(super::strings(["no-such-program", "--now"]));
    let parts: &[&str] =
        &["could not start `no-such-program` in", &folder, "No such file", "no-such-program --now"];
    expect(&bench.run(2), &[(0, parts), (1, parts)]);
    bench.program.call = call(super::strings(["./worker.py"]));
    let parts: &[&str] = &["could not start `./worker.py`", "Permission denied"];
    expect(&bench.run(1), &[(0, parts)]);
    bench.program.launcher = super::strings(["no-such-launcher"]);
    expect(
        &bench.run(1),
        &[(0, &["could not start `no-such-launcher`", "no-such-launcher ./worker.py"])],
    );
}
