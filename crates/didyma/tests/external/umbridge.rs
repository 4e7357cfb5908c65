//! A UM-Bridge server, as far as it matters here.

use super::{Bench, expect, run, streams, theta};
use didyma::Rows;
use didyma::simulator::program::Call;
use didyma::simulator::simulate;
use serde_json::{Map, Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

/// What the server does with a request to evaluate: a status and a body.
type Model = dyn Fn(&Value, usize) -> (u16, String) + Send + Sync;

/// Serves until the test ends; the model is told how many requests came before.
fn serve(model: impl Fn(&Value, usize) -> (u16, String) + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (model, count): (Arc<Model>, _) = (Arc::new(model), Arc::new(AtomicUsize::new(0)));
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (model, count) = (model.clone(), count.clone());
            std::thread::spawn(move || talk(&stream, &*model, &count));
        }
    });
    url
}

fn talk(stream: &TcpStream, model: &Model, count: &AtomicUsize) -> Option<()> {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut line, mut length) = (String::new(), 0);
        reader.read_line(&mut line).ok().filter(|&bytes| bytes > 0)?;
        let path = line.split(' ').nth(1)?.to_owned();
        while line.trim() != "" {
            line.clear();
            reader.read_line(&mut line).ok()?;
            if let Some((_, value)) = line.to_lowercase().split_once("content-length:") {
                length = value.trim().parse().ok()?;
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).ok()?;
        let asked: Value = serde_json::from_slice(&body).ok()?;
        assert_eq!(asked["name"], "forward");
        let (status, text) = match &*path {
            "/InputSizes" => (200, json!({"inputSizes": [1, 1]}).to_string()),
            "/OutputSizes" => (200, json!({"outputSizes": [2]}).to_string()),
            "/Evaluate" => model(&asked, count.fetch_add(1, Ordering::SeqCst)),
            other => panic!("{other}"),
        };
        let head = format!("HTTP/1.1 {status} Whatever\r\nContent-Length: {}\r\n\r\n", text.len());
        (&*stream).write_all((head + &text).as_bytes()).ok()?;
    }
}

fn row(asked: &Value) -> usize {
    assert_eq!(asked["input"][1], json!([0.5]));
    asked["input"][0][0].as_f64().unwrap() as usize
}

fn good(asked: &Value) -> (u16, String) {
    let seed = asked["config"]["luck"].as_u64().unwrap();
    (200, json!({"output": [[2 * row(asked), seed % 1000]]}).to_string())
}

fn bench(url: String, retries: u32) -> Bench {
    let config = Map::from_iter([("mesh".to_owned(), json!(3))]);
    let (model, seed) = ("forward".to_owned(), "luck".to_owned());
    Bench::new(|_| Call::UmBridge { url, model, config, seed, retries }).workers(3)
}

#[test]
fn evaluates() {
    let url = serve(|asked, _| {
        assert_eq!(asked["config"]["mesh"], 3);
        good(asked)
    });
    expect(&bench(url + "/", 0).run(40), &[]);
}

#[test]
fn errors_are_the_models() {
    let url = serve(|asked, _| match row(asked) {
        1 => (500, "it ran aground\n".to_owned()),
        2 => (500, String::new()),
        3 => (400, json!({"error": {"type": "InvalidInput", "message": "too deep"}}).to_string()),
        4 => (200, "{\"output\": [[nan, 1]]}".to_owned()),
        5 => (200, "{\"output\": [[1, -inf]]}".to_owned()),
        6 => (200, "{\"output\": [[1, 2, 3]]}".to_owned()),
        7 => (200, "x".repeat(3_000_000)),
        8 => (200, "<html>".to_owned()),
        9 => (200, "{\"output\": [[1], [2]]}".to_owned()),
        10 => (200, "{\"output\": [[]]}".to_owned()),
        _ => good(asked),
    });
    let found = bench(url, 5).run(12);
    expect(
        &found,
        &[
            (1, &["the model answered with status 500: it ran aground"]),
            (2, &["the model answered with status 500: no text"]),
            (3, &["the model reports InvalidInput: too deep"]),
            (4, &["summary 1 is NaN"]),
            (5, &["summary 2 is -inf"]),
            (
                6,
                &[
                    "output of the model's answer has sizes [3], but the model has announced [2]: repair",
                ],
            ),
            (7, &["the model's answer is longer than 1048"]),
            (8, &["the model's answer is no JSON"]),
            (9, &["has sizes [1,1], but the model has announced [2]"]),
            (10, &["has sizes [0], but the model has announced [2]"]),
        ],
    );
}

#[test]
fn asks_again_when_the_server_is_busy() {
    let busy = |asked: &Value, count: usize| match count % 3 {
        2 => good(asked),
        i => ([503, 429][i], "busy".to_owned()),
    };
    expect(&bench(serve(busy), 9).workers(1).run(3), &[]);
    let found = bench(serve(|_, _| (503, "busy".to_owned())), 1).run(1);
    expect(&found, &[(0, &["the model answered with status 503: busy"])]);
}

#[test]
fn nobody_is_there() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let found = bench(format!("http://{address}"), 1).run(1);
    expect(&found, &[(0, &["no answer from http://127.0.0.1", "/InputSizes", "refused"])]);
    // One that comes late.
    let late = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        let listener = TcpListener::bind(address).unwrap();
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || {
                talk(&stream, &|asked, _| good(asked), &AtomicUsize::new(0))
            });
        }
    });
    expect(&bench(format!("http://{address}"), 6).run(4), &[]);
    drop(late);
}

/// A user does not wait for a server that is not there.
#[test]
fn pauses_can_be_interrupted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let simulator = bench(format!("http://{address}"), 100).simulator();
    let (theta, clock) = (theta(3), Instant::now());
    let rows = Rows::new("theta", &theta, 2).unwrap();
    let observe =
        &mut |_: didyma::simulator::Progress| match clock.elapsed() > Duration::from_millis(800) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
    let found = simulate(&*simulator, rows, &streams(), 0, 2, observe).unwrap();
    // The pause then under way is of 0.8 s.
    assert!(clock.elapsed() < Duration::from_millis(1300), "{:?}", clock.elapsed());
    assert_eq!((found.done, found.failures.len()), (0, 0));
}

#[test]
fn sizes_must_agree() {
    let url = serve(|asked, _| good(asked));
    let program = bench(url, 0).program;
    let names = |count: usize| (0..count).map(|i| format!("n{i}")).collect::<Vec<_>>();
    for (parameters, summaries, part) in [
        (3, 2, "inputSizes [1, 1], but there are 3 parameters"),
        (2, 3, "outputSizes [2], but there are 3 summaries"),
    ] {
        let simulator = program.simulator(names(parameters), names(summaries)).unwrap();
        let mut x = vec![0.0; summaries];
        let told = simulator.simulate(&vec![0.5; parameters], &mut streams().stream(0), &mut x);
        let told = told.unwrap_err().to_string();
        assert!(told.contains(part), "{told}");
    }
    let mut program = program;
    if let Call::UmBridge { url, .. } = &mut program.call {
        *url = "https://localhost".to_owned();
    }
    let told = program.simulator(names(1), names(1)).err().unwrap().to_string();
    assert!(told.contains("url is https://localhost, but it must be like http://"), "{told}");
}

fn hangs(asked: &Value) -> (u16, String) {
    if row(asked) >= 10 {
        std::thread::sleep(Duration::from_secs(1000));
    }
    good(asked)
}

#[test]
fn waits_for_so_long() {
    let bench = bench(serve(|asked, _| hangs(asked)), 5).limits(0.7, 0.0);
    expect(&bench.run(11), &[(10, &["no answer within 0.7 s"])]);
}

#[test]
fn can_be_interrupted() {
    let bench = bench(serve(|asked, _| hangs(asked)), 0).limits(600.0, 0.0);
    let simulator = bench.simulator();
    let (theta, clock) = (theta(20), Instant::now());
    let rows = Rows::new("theta", &theta, 2).unwrap();
    let observe =
        &mut |_: didyma::simulator::Progress| match clock.elapsed() > Duration::from_millis(800) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
    let found = simulate(&*simulator, rows, &streams(), 0, 2, observe).unwrap();
    assert!(clock.elapsed() < Duration::from_millis(1800));
    assert_eq!((found.done, found.failures.len()), (10, 0));
    expect(&run(&*simulator, 10), &[]);
}
