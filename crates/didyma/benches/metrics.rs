//! The metrics on the benchmark's shapes: 2000 samples against 2000, on all cores.
//!
//! `cargo bench -p didyma --bench metrics`

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use didyma::metrics::{c2st, c2st_by_seed, mmd2, sliced_wasserstein};
use didyma::rng::{Purpose, Streams};
use didyma::{Rows, parallel};
use rand::RngExt;
use rand_distr::StandardNormal;
use std::time::Duration;

const N: usize = 2000;

fn metrics(criterion: &mut Criterion) {
    let (streams, threads) = (Streams::new(1), parallel::cores());
    let mut group = criterion.benchmark_group("metrics");
    group.sample_size(10).warm_up_time(Duration::from_millis(500));
    for dim in [2, 3, 4, 8] {
        let draw = |index, shift: f64| -> Vec<f64> {
            let mut rng = streams.stream(Purpose::Synthetic, 0, index);
            (0..N * dim).map(|_| shift + rng.sample::<f64, _>(StandardNormal)).collect()
        };
        let data = [draw(0, 0.0), draw(1, 0.5)];
        let rows = |name, i: usize| Rows::new(name, &data[i], dim).expect("whole rows");
        let (a, b) = (rows("reference", 0), rows("samples", 1));
        let id = |name| BenchmarkId::new(name, dim);
        group.bench_function(id("c2st"), |bench| {
            bench.iter(|| c2st(a, b, threads, &streams).expect("valid sets"));
        });
        group.bench_function(id("c2st_of_one_seed"), |bench| {
            bench.iter(|| c2st_by_seed(a, b, (1, 5), threads, &streams).expect("valid sets"));
        });
        group.bench_function(id("mmd2"), |bench| {
            bench.iter(|| mmd2(a, b, threads).expect("valid sets"));
        });
        group.bench_function(id("sliced_wasserstein"), |bench| {
            bench.iter(|| sliced_wasserstein(a, b, 200, threads, &streams).expect("valid sets"));
        });
    }
    group.finish();
}

criterion_group!(benches, metrics);
criterion_main!(benches);
