//! Workers that answer, rightly or not.

use super::{Bench, expect, python, run, streams, strings};
use didyma::simulator::program::{Call, Program};
use serde_json::{Value, json};

#[test]
fn numbers_that_are_none() {
    let script = r#"
bad = {1: "[NaN, 1]", 2: "[0, nan]", 3: "[Infinity, 1]", 4: "[1, -Infinity]", 5: "[null, 1]", 6: "[1, -inf]", 7: "[1e999, 0]"}
for r in requests():
    if row(r) in bad:
        print('{"id": %d, "x": %s}' % (r["id"], bad[row(r)]), flush=True)
    else:
        answer(r)
"#;
    let found = Bench::worker(script).run_all(10);
    expect(
        &found,
        &[
            (1, &["summary 1 is NaN"]),
            (2, &["summary 2 is NaN"]),
            (3, &["summary 1 is inf"]),
            (4, &["summary 2 is -inf"]),
            (5, &["summary 1 is NaN"]),
            (6, &["summary 2 is -inf"]),
            (7, &["summary 1 is inf"]),
        ],
    );
}

#[test]
fn bad_answers_that_are_not_the_end_of_a_process() {
    let script = r#"
with open("starts", "a") as file:
    file.write("x")
bad = {1: {"x": [1]}, 2: {"x": [1, 2, 3]}, 3: {"x": [1, "two"]}, 4: {}, 5: {"x": None}, 6: {"error": "too\ncold " * 2000}}
for r in requests():
    if row(r) in bad:
        print(json.dumps({"id": r["id"], **bad[row(r)]}), flush=True)
    else:
        answer(r)
"#;
    let bench = Bench::worker(script).workers(1);
    let found = bench.run(9);
    expect(
        &found,
        &[
            (1, &["x of the worker's answer has 1 numbers, but there are 2 summaries"]),
            (2, &["has 3 numbers, but there are 2 summaries"]),
            (3, &["number 2 of x of the worker's answer is \"two\", which is no number"]),
            (4, &["the worker's answer has neither x nor error"]),
            (5, &["has 1 numbers, but there are 2 summaries"]),
            (6, &["too\ncold too\ncold"]),
        ],
    );
    assert!(found.failures[5].reason.len() < 4200);
    assert_eq!(bench.read("starts"), "x");
}

#[test]
fn answers_that_break_the_protocol() {
    let script = r#"
for r in requests():
    if row(r) == 1:
        print('{"id": 12345, "x": [1, 2]}', flush=True)
    elif row(r) == 3:
        print('{"id": %d, "x": [1, 2}' % r["id"], flush=True)
    elif row(r) == 5:
        sys.stdout.buffer.write(b'{"id": %d, "x": "\xff"}\n' % r["id"])
        sys.stdout.buffer.flush()
    elif row(r) == 7:
        print('[{"id": %d, "x": [1, 2]}, 7]' % r["id"], flush=True)
    elif row(r) == 9:
        print('{"x": [1, 2]}', flush=True)
    elif row(r) == 11:
        print('{"id": 0, "x": [1, 2]}', flush=True)
    else:
        answer(r)
"#;
    let found = Bench::worker(script).run_all(14);
    expect(
        &found,
        &[
            (1, &["the worker answered 12345, which was not asked"]),
            (
                3,
                &[
                    "the worker's answer is no JSON: ",
                    "its last words:\n{\"id\": ",
                    "\"x\": [1, 2}",
                ],
            ),
            (5, &["the worker's answer is no JSON: it is not UTF-8", "\u{fffd}"]),
            (7, &["the worker's answer is 7, which is no object"]),
            (9, &["the worker's answer has no id"]),
            (11, &["the worker answered 0, which was not asked"]),
        ],
    );
}

#[test]
fn half_a_line_and_one_without_an_end() {
    let script = r#"
for r in requests():
    if row(r) == 2:
        sys.stdout.write('{"id": %d, "x": [4, ' % r["id"])
        sys.exit(0)
    if row(r) == 4:
        sys.stdout.write(json.dumps({"id": r["id"], "x": [8, r["seed"] % 1000]}))
        sys.exit(0)
    answer(r)
"#;
    let parts: &[&str] =
        &["the worker ended with exit code 0\nits last words:\n{\"id\": ", "\"x\": [4, "];
    expect(&Bench::worker(script).run_all(7), &[(2, parts)]);
}

#[test]
fn answers_twice_and_chats() {
    let script = r#"
open("starts", "a").write("x")
print("Welcome to SuperSim 3.1\n")
before = None
for r in requests():
    if before:
        answer(before, x=[0, 0])
    sys.stdout.buffer.write(b"   step 1\r step 2 \xff\r\n")
    answer(r)
    answer(r, x=[0, 0])
    before = r
"#;
    expect(&Bench::worker(script).run_all(12), &[]);
    let bench = Bench::worker(script).workers(1);
    expect(&bench.run(12), &[]);
    assert_eq!(bench.read("starts"), "x");
}

#[test]
fn any_order_and_arrays() {
    let script = r#"
for line in sys.stdin:
    found = [{"id": r["id"], "x": [2 * r["theta"][0], r["seed"] % 1000]} for r in reversed(json.loads(line))]
    half = len(found) // 2
    print(json.dumps(found[:half]), json.dumps(found[half:]), sep="\n", flush=True)
"#;
    expect(&Bench::worker(script).batch(5).run(23), &[]);
}

#[test]
fn fails_on_a_third_of_the_prior() {
    let script = r#"
for r in requests():
    if row(r) % 3 == 1:
        print(json.dumps({"id": r["id"], "error": "the solver does not converge"}), flush=True)
    else:
        answer(r)
"#;
    let parts: &[&str] = &["the solver does not converge"];
    let failed: Vec<_> = (0..60).filter(|row| row % 3 == 1).map(|row| (row, parts)).collect();
    expect(&Bench::worker(script).run_all(60), &failed);
}

/// What a worker is told, word for word.
#[test]
fn requests_are_as_documented() {
    let script = r#"
with open("requests", "a") as file:
    for line in sys.stdin:
        file.write(line)
        file.flush()
        for r in json.loads(line):
            answer(r)
"#;
    let mut bench = Bench::worker(script).workers(1).batch(2);
    if let Call::Worker { stream, .. } = &mut bench.program.call {
        *stream = true;
    }
    expect(&bench.run(3), &[]);
    let text = bench.read("requests");
    let asked: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let request = |row: u64| {
        let stream = streams().stream(row);
        let words = stream.words().map(|word| format!("{word:016x}"));
        json!({"seed": stream.seed(), "theta": [row as f64, 0.5], "stream": words})
    };
    let mut ids = Vec::new();
    let asked: Vec<Vec<Value>> =
        asked.into_iter().map(|line| without_ids(line, &mut ids)).collect();
    assert_eq!(asked, [vec![request(0), request(1)], vec![request(2)]]);
    assert!(ids.windows(2).all(|two| two[1] > two[0] + 1) && ids[2] < 1 << 12, "{ids:?}");
}

/// The requests of a line without their ids, which are nobody's business.
fn without_ids(line: Value, ids: &mut Vec<u64>) -> Vec<Value> {
    let mut requests: Vec<Value> = serde_json::from_value(line).unwrap();
    for request in &mut requests {
        ids.push(request.as_object_mut().unwrap().remove("id").unwrap().as_u64().unwrap());
    }
    requests
}

/// Nobody starts more processes than there may be, and these live on from call to call.
#[test]
fn processes_are_few_and_kept() {
    let script = r#"
with open("starts", "a") as file:
    file.write("x")
for r in requests():
    time.sleep(0.01)
    answer(r)
"#;
    let bench = Bench::worker(script).workers(2);
    let simulator = bench.simulator();
    assert_eq!(simulator.workers(), Some(2));
    (0..3).for_each(|_| expect(&run(&*simulator, 20), &[]));
    std::thread::scope(|scope| {
        (0..4).for_each(|_| {
            scope.spawn(|| {
                let (mut rng, mut x) = (streams().stream(0), [0.0; 2]);
                simulator.simulate(&[4.0, 0.5], &mut rng, &mut x).unwrap();
                assert_eq!(x[0], 8.0);
            });
        });
    });
    drop(simulator);
    assert_eq!(bench.read("starts"), "xx");
    bench.expect_nobody();
}

#[test]
fn a_launcher_and_a_relative_path() {
    let mut bench = Bench::worker("for r in requests(): answer(r)");
    bench.program.launcher = strings(["nice", "-n", "0"]);
    bench.program.call =
        Call::Worker { command: vec![python(), "worker.py".to_owned()], batch: 1, stream: false };
    expect(&bench.run(3), &[]);
    std::fs::write(
        bench.folder.path().join("run"),
        format!("#!/bin/sh\nexec {} worker.py\n", python()),
    )
    .unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(bench.folder.path().join("run"), mode).unwrap();
    bench.program.launcher = Vec::new();
    bench.program.call = Call::Worker { command: strings(["./run"]), batch: 1, stream: false };
    expect(&bench.run(3), &[]);
}

#[test]
fn settings_are_checked_and_saved() {
    let bench = Bench::worker("");
    let text = serde_json::to_string(&bench.program).unwrap();
    assert_eq!(serde_json::from_str::<Program>(&text).unwrap(), bench.program);
    assert!(text.starts_with("{\"call\":{\"worker\":{\"command\":["), "{text}");
    let refused = |change: &dyn Fn(&mut Program), part: &str| {
        let mut program = bench.program.clone();
        change(&mut program);
        let told = program.simulator(strings(["a"]), strings(["x"])).err().unwrap().to_string();
        assert!(told.contains(part), "{told}");
    };
    refused(&|p| p.time_limit = 0.0, "time_limit is 0, but it must be more than 0");
    refused(&|p| p.time_limit = f64::NAN, "time_limit is NaN");
    refused(&|p| p.start_limit = -1.0, "start_limit is -1, but it must be 0 or more");
    refused(&|p| p.workers = Some(0), "workers is 0, but it must be between 1 and 1024");
    let worker = |command, batch| Call::Worker { command, batch, stream: false };
    refused(&|p| p.call = worker(Vec::new(), 1), "command is empty");
    refused(&|p| p.call = worker(strings(["run"]), 0), "batch is 0");
    let once = |command| Call::Once { command };
    refused(
        &|p| p.call = once(strings(["run", "{a}", "{b}"])),
        "{b}, but it must be one of {a}, {seed}",
    );
    refused(&|p| p.call = once(strings(["run"])), "{a} or {input}");
}
