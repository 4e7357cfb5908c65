//! A user who does not want to wait.

use super::{Bench, expect, run, streams, theta};
use didyma::Rows;
use didyma::simulator::program::Call;
use didyma::simulator::{Simulations, Simulator, simulate};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Breaks after some time, and says how long it took to end after that.
fn interrupted(
    simulator: &dyn Simulator,
    count: usize,
    after: Duration,
) -> (Simulations, Duration) {
    let theta = theta(count);
    let rows = Rows::new("theta", &theta, 2).unwrap();
    let (clock, mut broken) = (Instant::now(), None);
    let observe = &mut |_: didyma::simulator::Progress| match clock.elapsed() > after {
        true => {
            broken.get_or_insert(Instant::now());
            ControlFlow::Break(())
        }
        false => ControlFlow::Continue(()),
    };
    let found = simulate(simulator, rows, &streams(), 0, 2, observe).unwrap();
    (found, broken.unwrap().elapsed())
}

fn check(bench: &Bench, simulator: Box<dyn Simulator>) {
    let (found, took) = interrupted(&*simulator, 20, Duration::from_secs(2));
    assert!(took < Duration::from_secs(1), "{took:?}");
    // It hangs from row 10 on; what was done before is right, and what was under way has not failed.
    assert_eq!((found.failures.len(), found.done), (0, 10));
    assert!(found.x[20..].iter().all(|x| x.is_nan()));
    // Afterwards it is as good as new.
    expect(&run(&*simulator, 10), &[]);
    drop(simulator);
    bench.expect_nobody();
}

const HANGS: &str = r#"
signal.signal(signal.SIGTERM, signal.SIG_IGN)
for r in requests():
    while row(r) >= 10:
        time.sleep(1000)
    answer(r)
"#;

#[test]
fn workers_end_at_once() {
    let bench = Bench::worker(HANGS).limits(600.0, 600.0);
    check(&bench, bench.simulator());
}

#[test]
fn workers_with_batches_end_at_once() {
    let bench = Bench::worker(HANGS).limits(600.0, 600.0).batch(5);
    check(&bench, bench.simulator());
}

#[test]
fn programs_end_at_once() {
    let script = "trap '' TERM; if [ ${2%.0} -ge 10 ]; then sleep 1000; sleep 1000; fi; echo $((${2%.0} * 2)) $(($1 % 1000))";
    let script = script.replace('{', "{{").replace('}', "}}");
    let command = ["sh", "-c", &script, "sh", "{seed}", "{a}", "{b}"].map(str::to_owned).to_vec();
    let bench = Bench::new(|_| Call::Once { command }).limits(600.0, 600.0);
    check(&bench, bench.simulator());
}

/// A crash that makes rows be tried again, during an interrupt: they have not failed.
#[test]
fn crashes_do_not_count_once_interrupted() {
    let script = r#"
for r in requests():
    if row(r) >= 4:
        time.sleep(0.1)
        os._exit(1)
    answer(r)
"#;
    let bench = Bench::worker(script).batch(3);
    let simulator = bench.simulator();
    let (found, took) = interrupted(&*simulator, 400, Duration::from_millis(1500));
    assert!(took < Duration::from_secs(1), "{took:?}");
    assert!(found.failures.iter().all(|failure| failure.reason.contains("exit code 1")));
    assert!(found.done < 400 && found.done >= found.failures.len());
    drop(simulator);
    bench.expect_nobody();
}
