//! Two Gaussian tasks of the field's benchmark, whose posteriors are known exactly.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::{Marginal, Prior};
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::TAU;

/// Dimensions of the linear task, and the variance of prior and noise in each.
const DIM: usize = 10;
const VARIANCE: f64 = 0.1;
/// Bounds of the mixture's prior, and the standard deviations of its two components.
const BOUND: f64 = 10.0;
const SPREADS: [f64; 2] = [1.0, 0.1];

fn normal(rng: &mut SimulationStream) -> f64 {
    StandardNormal.sample(rng)
}

pub(super) fn linear() -> Result<Task> {
    let marginal = Marginal::Normal { mean: 0.0, sd: VARIANCE.sqrt() };
    let truth: [f64; DIM] = [0.35, -0.21, 0.08, 0.52, -0.46, 0.13, -0.02, 0.27, -0.38, 0.19];
    Ok(Task {
        name: "gaussian-linear".into(),
        about: "a Gaussian in ten dimensions with a Gaussian prior".into(),
        problem: Problem::new(
            Prior::new((1..=DIM).map(|i| (format!("theta{i}"), marginal)))?,
            from_fn(DIM, DIM, gaussian_linear),
            vec![0.565, -0.746, -0.322, 0.543, -0.524, 0.252, -0.096, 0.221, -0.570, 0.397],
        )?,
        truth: Some(truth.to_vec()),
        scale: Some(vec![VARIANCE.sqrt(); DIM]),
        labels: words(["θ₁", "θ₂", "θ₃", "θ₄", "θ₅", "θ₆", "θ₇", "θ₈", "θ₉", "θ₁₀"]),
        summaries: words(["x1", "x2", "x3", "x4", "x5", "x6", "x7", "x8", "x9", "x10"]),
        support: None,
        reference: Reference::Exact(linear_posterior),
        density: Density::Normalised(linear_log_posterior),
    })
}

/// Prior and noise have the same variance: the posterior has half of it, and half of x as its mean.
fn linear_posterior(x: &[f64], rng: &mut SimulationStream, theta: &mut [f64]) {
    let sd = (0.5 * VARIANCE).sqrt();
    theta.iter_mut().zip(x).for_each(|(theta, x)| *theta = 0.5 * x + sd * normal(rng));
}

fn linear_log_posterior(x: &[f64], theta: &[f64]) -> f64 {
    let variance = 0.5 * VARIANCE;
    let one = |(theta, x): (&f64, &f64)| {
        -0.5 * (theta - 0.5 * x).powi(2) / variance - 0.5 * (TAU * variance).ln()
    };
    theta.iter().zip(x).map(one).sum()
}

/// x = θ + noise, in ten dimensions.
pub fn gaussian_linear(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    let sd = VARIANCE.sqrt();
    x.iter_mut().zip(theta).for_each(|(x, theta)| *x = theta + sd * normal(rng));
}

pub(super) fn mixture() -> Result<Task> {
    Ok(Task {
        name: "gaussian-mixture".into(),
        about: "one mean, two spreads: a peak inside a broad hill".into(),
        problem: Problem::new(
            Prior::uniform(["theta1", "theta2"], [-BOUND; 2], [BOUND; 2])?,
            from_fn(2, 2, gaussian_mixture),
            vec![-3.27, 3.87],
        )?,
        truth: Some(vec![-3.1, 4.0]),
        scale: Some(vec![(0.5 * (SPREADS[0].powi(2) + SPREADS[1].powi(2))).sqrt(); 2]),
        labels: words(["θ₁", "θ₂"]),
        summaries: words(["x1", "x2"]),
        support: None,
        reference: Reference::Exact(mixture_posterior),
        density: Density::Normalised(mixture_log_posterior),
    })
}

/// The likelihood is symmetric in x and θ: x plus noise, inside the box.
fn mixture_posterior(x: &[f64], rng: &mut SimulationStream, theta: &mut [f64]) {
    loop {
        let sd = SPREADS[usize::from(rng.random::<bool>())];
        theta.iter_mut().zip(x).for_each(|(theta, x)| *theta = x + sd * normal(rng));
        if theta.iter().all(|theta| theta.abs() < BOUND) {
            return;
        }
    }
}

/// Normalised as long as the box is far from x, as it is at the task's observation: the mass outside is below
/// 10⁻⁸.
fn mixture_log_posterior(x: &[f64], theta: &[f64]) -> f64 {
    if theta.iter().any(|theta| theta.abs() >= BOUND) {
        return f64::NEG_INFINITY;
    }
    let squared: f64 = theta.iter().zip(x).map(|(theta, x)| (theta - x).powi(2)).sum();
    let log = SPREADS.map(|sd| -0.5 * squared / (sd * sd) - (TAU * sd * sd).ln());
    let top = log[0].max(log[1]);
    top + (0.5 * (log[0] - top).exp() + 0.5 * (log[1] - top).exp()).ln()
}

/// x = θ + noise of a small or a large spread, by the throw of a coin.
pub fn gaussian_mixture(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    let sd = SPREADS[usize::from(rng.random::<bool>())];
    x.iter_mut().zip(theta).for_each(|(x, theta)| *x = theta + sd * normal(rng));
}
