//! One training step at the paper's shapes, with its throughput in pairs.
//!
//! `cargo bench -p didyma-lab` runs all of them on one thread; add a filter, e.g. `-- lotka-volterra/tgrr`.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use didyma::Named;
use didyma::estimator::Method;
use didyma::rng::Streams;
use didyma_lab::{SHAPES, plans};
use std::time::Duration;

fn steps(c: &mut Criterion) {
    let streams = Streams::new(1);
    for shape in SHAPES {
        let mut group = c.benchmark_group(shape.name);
        group.sample_size(10).measurement_time(Duration::from_secs(3));
        for &(name, method) in Method::ALL {
            let plans = plans(streams, method, 16).expect("the paper's settings are valid");
            let pairs = plans.iter().map(|plan| plan.pairs()).sum::<usize>() / plans.len();
            let mut engine = shape.engine(&streams, 1).expect("the paper's shapes are valid");
            group.throughput(Throughput::Elements(pairs as u64));
            group.bench_function(BenchmarkId::from_parameter(name), |b| {
                let mut plans = plans.iter().cycle();
                b.iter(|| engine.step(plans.next().expect("a cycle does not end"), 1e-4));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, steps);
criterion_main!(benches);
