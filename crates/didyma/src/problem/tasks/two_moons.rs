//! Two Moons: a posterior of two crescents, known exactly.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::f64::consts::{FRAC_1_SQRT_2, PI};

/// Mean and standard deviation of the radius r.
const RADIUS: (f64, f64) = (0.1, 0.01);
/// Where the crescent's centre lies.
const CENTRE: f64 = 0.25;
/// The box of the prior is ±1.
const BOUND: f64 = 1.0;

pub(super) fn task() -> Result<Task> {
    Ok(Task {
        name: "two-moons".into(),
        about: "two crescents in two dimensions".into(),
        problem: Problem::new(
            Prior::uniform(["theta1", "theta2"], [-BOUND; 2], [BOUND; 2])?,
            from_fn(2, 2, two_moons),
            vec![0.0, 0.0],
        )?,
        truth: Some(vec![0.2475, 0.2475]),
        scale: Some(vec![1.0, 1.0]),
        labels: words(["θ₁", "θ₂"]),
        summaries: words(["x1", "x2"]),
        support: None,
        reference: Reference::Exact(sample),
        density: Density::Normalised(log_posterior_at_zero),
    })
}

/// p = (0.25 + r cos a, r sin a), a uniform on the right half circle, r ~ N(0.1, 0.01²).
fn crescent(rng: &mut SimulationStream) -> (f64, f64) {
    // A point of the disc, reflected to its right half: its direction is uniform, without sine and cosine.
    let (c, s, squared) = loop {
        let (c, s): (f64, f64) = (rng.random(), 2.0 * rng.random::<f64>() - 1.0);
        let squared = c * c + s * s;
        if squared <= 1.0 && squared > 1e-12 {
            break (c, s, squared);
        }
    };
    let z: f64 = StandardNormal.sample(rng);
    let scaled = (RADIUS.0 + RADIUS.1 * z) / squared.sqrt();
    (CENTRE + scaled * c, scaled * s)
}

/// x = (p₁ − |θ₁ + θ₂|/√2, p₂ + (θ₂ − θ₁)/√2) with p on a half circle of random radius.
pub fn two_moons(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    let (p1, p2) = crescent(rng);
    x[0] = p1 - (theta[0] + theta[1]).abs() * FRAC_1_SQRT_2;
    x[1] = p2 + (theta[1] - theta[0]) * FRAC_1_SQRT_2;
}

/// A draw of the posterior at any x_o: the simulator solved for θ. In the rotated coordinates
/// z₀ = (θ₁ + θ₂)/√2, z₁ = (θ₂ − θ₁)/√2 it says |z₀| = p₁ − x₁ and z₁ = x₂ − p₂; the sign of z₀ is free.
fn sample(observation: &[f64], rng: &mut SimulationStream, theta: &mut [f64]) {
    loop {
        let (p1, p2) = crescent(rng);
        let (q0, z1) = (p1 - observation[0], observation[1] - p2);
        let z0 = if rng.random() { q0 } else { -q0 };
        theta[0] = (z0 - z1) * FRAC_1_SQRT_2;
        theta[1] = (z0 + z1) * FRAC_1_SQRT_2;
        if q0 >= 0.0 && theta.iter().all(|t| t.abs() < BOUND) {
            return;
        }
    }
}

/// log p(x | θ) + log p(θ), up to a constant that is log p(x_o): at x_o = 0, where the box cuts nothing off and
/// each sign of z₀ is as likely, the constant is known.
fn log_posterior_at_zero(observation: &[f64], theta: &[f64]) -> f64 {
    if theta.iter().any(|t| t.abs() >= BOUND) {
        return f64::NEG_INFINITY;
    }
    let z0 = (theta[0] + theta[1]) * FRAC_1_SQRT_2;
    let z1 = (theta[1] - theta[0]) * FRAC_1_SQRT_2;
    let (u, v) = (observation[0] + z0.abs() - CENTRE, observation[1] - z1);
    if u < 0.0 {
        return f64::NEG_INFINITY;
    }
    // The radius is normal, the angle uniform on a half circle of length πρ.
    let rho = u.hypot(v);
    let z = (rho - RADIUS.0) / RADIUS.1;
    -0.5 * z * z - 0.5 * (2.0 * PI).ln() - RADIUS.1.ln() - (PI * rho).ln() - 2f64.ln()
}
