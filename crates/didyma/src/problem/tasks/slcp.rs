//! SLCP: a simple likelihood with a complex posterior; four points of a Gaussian whose covariance is inferred.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// Points of a run.
const POINTS: usize = 4;
const BOUND: f64 = 3.0;

pub(super) fn task() -> Result<Task> {
    Ok(Task {
        name: "slcp".into(),
        about: "simple likelihood, complex posterior with four modes".into(),
        problem: Problem::new(
            Prior::uniform(
                ["theta1", "theta2", "theta3", "theta4", "theta5"],
                [-BOUND; 5],
                [BOUND; 5],
            )?,
            from_fn(5, 2 * POINTS, slcp),
            vec![1.380, -3.761, -0.571, -3.403, 0.499, -2.723, 0.459, -3.111],
        )?,
        truth: Some(vec![0.7, -2.9, -1.0, -0.9, 0.6]),
        // Standard deviations at the truth, θ₃² and θ₄².
        scale: Some([1.0, 0.81].repeat(POINTS)),
        labels: words(["θ₁", "θ₂", "θ₃", "θ₄", "θ₅"]),
        summaries: words(["x11", "x12", "x21", "x22", "x31", "x32", "x41", "x42"]),
        support: None,
        reference: Reference::Chain { flips: &[2, 3] },
        density: Density::Unnormalised(log_posterior),
    })
}

/// Four draws of a Gaussian with mean (θ₁, θ₂), standard deviations θ₃² and θ₄², and correlation tanh θ₅.
pub fn slcp(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    let (s1, s2, rho) = (theta[2] * theta[2], theta[3] * theta[3], theta[4].tanh());
    for point in x.chunks_exact_mut(2) {
        let (z1, z2): (f64, f64) = (StandardNormal.sample(rng), StandardNormal.sample(rng));
        point[0] = theta[0] + s1 * z1;
        point[1] = theta[1] + s2 * (rho * z1 + (1.0 - rho * rho).sqrt() * z2);
    }
}

/// The log-likelihood, which with a flat prior is the log-posterior up to a constant.
fn log_posterior(x: &[f64], theta: &[f64]) -> f64 {
    if theta.iter().any(|theta| theta.abs() >= BOUND) {
        return f64::NEG_INFINITY;
    }
    let (s1, s2) = (theta[2] * theta[2], theta[3] * theta[3]);
    // 1 − tanh² without the loss of digits near ±1.
    let (rho, left) = (theta[4].tanh(), theta[4].cosh().powi(-2));
    let log_norm = (TAU * s1 * s2).ln() + 0.5 * left.ln();
    let one = |point: &[f64]| {
        let (a, b) = ((point[0] - theta[0]) / s1, (point[1] - theta[1]) / s2);
        -0.5 * (a * a - 2.0 * rho * a * b + b * b) / left - log_norm
    };
    x.chunks_exact(2).map(one).sum()
}
