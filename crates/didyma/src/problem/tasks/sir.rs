//! SIR: an epidemic in a population of a million, seen through ten samples of a thousand people.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::{Marginal, Prior};
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand_distr::{Binomial, Distribution};

/// People, and those infected at the start.
const POPULATION: f64 = 1e6;
const START: f64 = 1.0;
/// People tested each time, and the days between.
const TESTED: u64 = 1000;
const DAYS: usize = 17;
const TIMES: usize = 10;
/// Runge-Kutta steps a day.
const STEPS: usize = 4;

pub(super) fn task() -> Result<Task> {
    let log_normal = |median: f64, sd| Marginal::LogNormal { mean: median.ln(), sd };
    Ok(Task {
        name: "sir".into(),
        about: "an epidemic: contact and recovery rate from ten test series".into(),
        problem: Problem::new(
            Prior::new([
                ("contact_rate", log_normal(0.4, 0.5)),
                ("recovery_rate", log_normal(0.125, 0.2)),
            ])?,
            from_fn(2, TIMES, sir),
            vec![0.0, 0.0, 24.0, 348.0, 100.0, 14.0, 4.0, 0.0, 0.0, 0.0],
        )?,
        truth: Some(vec![0.42, 0.12]),
        // Standard deviations at the truth, or 1 where hardly anybody is infected.
        scale: Some(vec![1.0, 1.0, 5.0, 15.1, 9.2, 4.0, 1.6, 1.0, 1.0, 1.0]),
        labels: words(["β", "γ"]),
        summaries: words([
            "day0", "day17", "day34", "day51", "day68", "day85", "day102", "day119", "day136",
            "day153",
        ]),
        support: None,
        reference: Reference::Chain { flips: &[] },
        density: Density::Unnormalised(log_posterior),
    })
}

/// Share of infected people on days 0, 17, …, 153: dS = −βSI, dI = βSI − γI, by the classical Runge-Kutta scheme.
fn infected([beta, gamma]: [f64; 2]) -> [f64; TIMES] {
    let slope = |(s, i): (f64, f64)| (-beta * s * i, beta * s * i - gamma * i);
    let h = 1.0 / STEPS as f64;
    let ahead = |(s, i): (f64, f64), (ds, di): (f64, f64), h: f64| (s + h * ds, i + h * di);
    let mut state = (1.0 - START / POPULATION, START / POPULATION);
    let mut shares = [state.1; TIMES];
    for share in &mut shares[1..] {
        for _ in 0..DAYS * STEPS {
            let k1 = slope(state);
            let k2 = slope(ahead(state, k1, 0.5 * h));
            let k3 = slope(ahead(state, k2, 0.5 * h));
            let k4 = slope(ahead(state, k3, h));
            let mean = |a: f64, b: f64, c: f64, d: f64| (a + 2.0 * b + 2.0 * c + d) / 6.0;
            state = ahead(state, (mean(k1.0, k2.0, k3.0, k4.0), mean(k1.1, k2.1, k3.1, k4.1)), h);
        }
        // A scheme of finite order may leave [0, 1] by a rounding error.
        *share = state.1.clamp(0.0, 1.0);
    }
    shares
}

/// Contact rate β and recovery rate γ; x counts the infected among 1,000 people at ten times.
pub fn sir(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    for (x, share) in x.iter_mut().zip(infected([theta[0], theta[1]])) {
        // With rates of hundreds a day the scheme has no solution: the runner records the failure.
        *x = Binomial::new(TESTED, share).map_or(f64::NAN, |tests| tests.sample(rng) as f64);
    }
}

/// Prior and binomial likelihood, up to a constant.
fn log_posterior(x: &[f64], theta: &[f64]) -> f64 {
    if theta.iter().any(|&theta| theta <= 0.0 || !theta.is_finite()) {
        return f64::NEG_INFINITY;
    }
    let prior = |theta: f64, median: f64, sd: f64| {
        let z = (theta / median).ln() / sd;
        -0.5 * z * z - theta.ln()
    };
    let counts = x.iter().zip(infected([theta[0], theta[1]])).map(|(&count, share)| {
        // 0 · log 0 = 0: nobody was expected, and nobody found.
        let part = |count: f64, share: f64| if count == 0.0 { 0.0 } else { count * share.ln() };
        part(count, share) + part(TESTED as f64 - count, 1.0 - share)
    });
    prior(theta[0], 0.4, 0.5) + prior(theta[1], 0.125, 0.2) + counts.sum::<f64>()
}
