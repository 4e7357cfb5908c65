//! Every SIMD kernel against its scalar definition in f64, on random sizes and numbers.
//!
//! Tolerances. A sum of n products in f32 is off by at most (n + 2) ε Σ |a b| from the exact one,
//! whatever the order (Higham 2002, eq. 3.5); the bound Σ |a b| is computed by the same kernel on
//! absolute values. Splines are compared by backward error: see `splines::spline_tolerance`.

#![allow(clippy::unwrap_used)]

mod dense;
mod splines;

use didyma::kernel::Kernels;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseResult, TestRng, TestRunner};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub const EPSILON: f64 = f32::EPSILON as f64;

/// The same panels as f32, as f64, and as absolute values in f64.
pub struct Numbers {
    pub single: Vec<f32>,
    pub double: Vec<f64>,
    pub size: Vec<f64>,
}

impl Numbers {
    pub fn random(rng: &mut ChaCha8Rng, len: usize, scale: f32) -> Self {
        Self::new((0..len).map(|_| scale * (2.0 * rng.random::<f32>() - 1.0)).collect())
    }

    pub fn new(single: Vec<f32>) -> Self {
        let double: Vec<f64> = single.iter().map(|&v| f64::from(v)).collect();
        let size = double.iter().map(|v| v.abs()).collect();
        Self { single, double, size }
    }
}

pub fn check(seeds: impl Fn(&mut ChaCha8Rng, &'static Kernels<f32>) -> TestCaseResult) {
    let config = Config { cases: 300, failure_persistence: None, ..Config::default() };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let mut runner = TestRunner::new_with_rng(config, rng);
    let run = |seed: u64| {
        Kernels::available().try_for_each(|k| seeds(&mut ChaCha8Rng::seed_from_u64(seed), k))
    };
    runner.run(&any::<u64>(), run).unwrap();
}
