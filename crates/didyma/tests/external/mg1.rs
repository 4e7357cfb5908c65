//! A worker in another language that draws the numbers of a built-in task.

use super::{Bench, python, streams};
use didyma::Rows;
use didyma::rng::{Purpose, Streams};
use didyma::simulator::program::Call;
use didyma::simulator::{Progress, simulate};
use didyma::tasks::Task;
use std::ops::ControlFlow;

/// Bit for bit, for any number of workers and any batch.
#[test]
fn rows_are_those_of_the_built_in_queue() {
    let task = Task::named("mg1").unwrap();
    let theta = task.problem.prior().sample_rows(
        300,
        &Streams::new(2).simulations(Purpose::Parameters, 1),
        1,
    );
    let rows = Rows::new("theta", &theta, 3).unwrap();
    let go_on = &mut |_: Progress| ControlFlow::Continue(());
    let expected = simulate(task.problem.simulator(), rows, &streams(), 5, 1, go_on).unwrap();
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/mg1_worker.py").to_owned();
    for (workers, batch) in [(1, 1), (2, 1), (5, 1), (1, 8), (2, 8), (5, 8)] {
        let command = vec![python(), script.clone()];
        let bench = Bench::new(|_| Call::Worker { command, batch, stream: true }).workers(workers);
        let names = task.problem.prior().names().map(str::to_owned).collect();
        let summaries = task.summaries.iter().map(|name| (*name).to_owned()).collect();
        let simulator = bench.program.simulator(names, summaries).unwrap();
        let found = simulate(&*simulator, rows, &streams(), 5, 1, go_on).unwrap();
        assert_eq!(found.failures, [], "{workers} workers, batches of {batch}");
        assert_eq!(found.x, expected.x, "{workers} workers, batches of {batch}");
    }
}
