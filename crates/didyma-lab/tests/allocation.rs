//! Nothing allocates inside a training step.

#![allow(clippy::unwrap_used, unsafe_code)]

use didyma::estimator::{Method, Plan, Settings};
use didyma::rng::{Purpose, Streams};
use didyma::score::{Output, ScoreConfig, ScoreModel};
use didyma::training::{AdamConfig, Engine, Noise, ScoreEngine};
use didyma_lab::{POOL, SHAPES, Steps, plans};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

struct Counting;

static ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// One test: of two, the allocations of one, or of the harness that tells of its end, would count as the other's.
#[test]
fn a_step_allocates_nothing() {
    step_of_a_flow();
    step_of_a_score_network();
}

/// After plans as large have been seen, neither planning nor a step allocates, on any thread.
fn step_of_a_flow() {
    let streams = Streams::new(1);
    for threads in [1, 3] {
        let mut engine = SHAPES[0].engine(&streams, threads).unwrap();
        let mut plans = plans(streams, Method::Tgrr, 8).unwrap();
        plans[0].group(3, (0..1000).map(|i| 9 * i)).own(0.1).log_mean_exp(0.5);
        plans.sort_by_key(|plan| std::cmp::Reverse(plan.pairs()));
        let mut steps = Steps::new(streams, Settings::paper(Method::Tgrr), POOL).unwrap();
        let mut own = Plan::default();
        (0..300).for_each(|_| steps.plan_next(&mut own).unwrap());
        let mut run = |engine: &mut dyn Engine, plans: &[Plan]| {
            for plan in plans {
                steps.plan_next(&mut own).unwrap();
                engine.step(&own, 1e-4).unwrap();
                engine.step(plan, 1e-4).unwrap();
                engine.evaluate(plan).unwrap();
            }
            engine.take_loss().unwrap()
        };
        run(&mut *engine, &plans);
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run(&mut *engine, &plans);
        assert_eq!(ALLOCATIONS.load(Ordering::Relaxed) - before, 0, "with {threads} threads");
    }
}

/// The same of a score network.
fn step_of_a_score_network() {
    let streams = Streams::new(1);
    let data = SHAPES[0].data(&streams).unwrap();
    let (theta_dim, x_dim) = (data.theta().columns(), data.x().columns());
    let plans = [300, 100, 64, 7].map(|rows| {
        let mut plan = Plan::default();
        (0..rows).for_each(|row| plan.push_own(row, 1.0 / f64::from(rows)));
        plan
    });
    for (output, threads) in [(Output::Energy, 1), (Output::Energy, 3), (Output::Direct, 3)] {
        let config = ScoreConfig { units: 20, output, ..ScoreConfig::new(theta_dim, x_dim) };
        let model = ScoreModel::new(config).unwrap();
        let params = model.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
        let noise = Noise { streams, round: 1, repeats: 2, fixed: false };
        let adam = AdamConfig::default();
        let mut engine = ScoreEngine::new(model, params, &data, adam, noise, threads).unwrap();
        let mut run = || {
            for plan in &plans {
                engine.step(plan, 1e-4).unwrap();
                engine.evaluate(plan).unwrap();
            }
            engine.take_loss().unwrap()
        };
        run();
        let before = ALLOCATIONS.load(Ordering::Relaxed);
        run();
        let made = ALLOCATIONS.load(Ordering::Relaxed) - before;
        assert_eq!(made, 0, "{output:?} with {threads} threads");
    }
}
