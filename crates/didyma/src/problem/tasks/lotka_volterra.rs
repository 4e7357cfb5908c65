//! Lotka-Volterra: predators and prey as a Markov jump process.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand::RngExt;
use rand_distr::{Distribution, Exp1};

/// Numbers recorded: every 0.2 from 0 to 30.
const POINTS: usize = 151;
const STEP: f64 = 0.2;
/// Predators and prey at the start.
const START: (f64, f64) = (50.0, 100.0);
/// Events of a run at most: then the state stays as it is.
const MOST_EVENTS: u32 = 10_000;

/// The state that is recorded at a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Record {
    /// The state at that time.
    #[default]
    Exact,
    /// The state after the next event, as the authors' code has it.
    Lookahead,
}

pub(super) fn task() -> Result<Task> {
    Ok(Task {
        name: "lotka-volterra".into(),
        about: "predators and prey, a Markov jump process with four rates".into(),
        problem: Problem::new(
            Prior::uniform(
                ["log_predator_birth", "log_predator_death", "log_prey_birth", "log_predation"],
                [-5.0; 4],
                [2.0; 4],
            )?,
            from_fn(4, 9, lotka_volterra(Record::Exact)),
            vec![4.6431, 4.0170, 7.1992, 6.6024, 0.9765, 0.9237, 0.9712, 0.9078, 0.047567],
        )?,
        truth: Some(vec![0.01f64.ln(), 0.5f64.ln(), 0.0, 0.01f64.ln()]),
        scale: Some(vec![0.3294, 0.5483, 0.6285, 0.9639, 0.0091, 0.0222, 0.0107, 0.0224, 0.1823]),
        labels: words(["log c₁", "log c₂", "log c₃", "log c₄"]),
        summaries: words([
            "log_mean_x",
            "log_mean_y",
            "log_var_x",
            "log_var_y",
            "ac1_x",
            "ac2_x",
            "ac1_y",
            "ac2_y",
            "cross",
        ]),
        support: None,
        reference: Reference::Stored(include_bytes!("../../../data/lotka-volterra.f32")),
        density: Density::Unknown,
    })
}

/// Four reactions with rates exp θ: a predator is born (∝ XY), a predator dies (∝ X), prey is born (∝ Y), prey is
/// eaten (∝ XY); nine summaries of both populations.
pub fn lotka_volterra(record: Record) -> impl Fn(&[f64], &mut SimulationStream, &mut [f64]) {
    move |theta, rng, x| {
        let (mut predators, mut prey) = ([0.0; POINTS], [0.0; POINTS]);
        let rates = std::array::from_fn(|i| theta[i].exp());
        run(record, rates, rng, &mut predators, &mut prey);
        summarise(&mut predators, &mut prey, x);
    }
}

/// What an event does to predators and prey: a predator dies, prey is born, a predator is born, prey is eaten.
const CHANGES: [(f64, f64); 4] = [(-1.0, 0.0), (0.0, 1.0), (1.0, 0.0), (0.0, -1.0)];

/// Gillespie's algorithm. The kind of an event is random, so that a branch on it would be mispredicted half of the
/// time and cost more than all the arithmetic: it is counted from comparisons and looked up.
fn run(
    record: Record,
    [c1, c2, c3, c4]: [f64; 4],
    rng: &mut SimulationStream,
    predators: &mut [f64; POINTS],
    prey: &mut [f64; POINTS],
) {
    let (mut x, mut y) = START;
    let (mut time, mut point, mut next) = (0.0, 0, 0.0);
    for _ in 0..MOST_EVENTS {
        let (xy, before) = (x * y, (x, y));
        let dies = c2 * x;
        let bred = dies + c3 * y;
        let born = bred + c1 * xy;
        let total = bred + (c1 + c4) * xy;
        if total <= 0.0 {
            break;
        }
        let wait: f64 = Exp1.sample(rng);
        let place = rng.random::<f64>() * total;
        time += wait / total;
        let event =
            usize::from(place >= dies) + usize::from(place >= bred) + usize::from(place >= born);
        x += CHANGES[event].0;
        y += CHANGES[event].1;
        while time > next {
            (predators[point], prey[point]) = if record == Record::Exact { before } else { (x, y) };
            point += 1;
            if point == POINTS {
                return;
            }
            next = STEP * point as f64;
        }
    }
    predators[point..].fill(x);
    prey[point..].fill(y);
}

/// Log-means, log-variances, autocorrelations of lag 1 and 2, and the cross-correlation of both series.
fn summarise(predators: &mut [f64; POINTS], prey: &mut [f64; POINTS], summaries: &mut [f64]) {
    let n = POINTS as f64;
    for (i, series) in [&mut *predators, &mut *prey].into_iter().enumerate() {
        let mean = series.iter().sum::<f64>() / n;
        let variance = series.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n + 1e-4;
        let scale = variance.sqrt().recip();
        series.iter_mut().for_each(|v| *v = (*v - mean) * scale);
        summaries[i] = (mean + 1.0).ln();
        summaries[2 + i] = (variance + 1.0).ln();
        summaries[4 + 2 * i] = product(&series[1..], &series[..]);
        summaries[5 + 2 * i] = product(&series[2..], &series[..]);
    }
    summaries[8] = product(predators, prey);
}

/// Every sum of products is divided by n − 1, whatever its length.
fn product(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>() / (POINTS as f64 - 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_constant_series_has_no_correlation() {
        let mut x = [f64::NAN; 9];
        summarise(&mut [7.0; POINTS], &mut [0.0; POINTS], &mut x);
        assert_eq!((x[0], x[1]), (8f64.ln(), 0.0));
        assert!(x[4..].iter().all(|&correlation| correlation == 0.0));
        assert!((x[2] - 1e-4f64.ln_1p()).abs() < 1e-15);
    }

    /// Correlations of a short cycle, worked out by hand: ±1 alternating over 151 points.
    #[test]
    fn correlations_are_divided_by_n_minus_one() {
        let mut series: [f64; POINTS] =
            std::array::from_fn(|i| if i % 2 == 0 { 1.0 } else { -1.0 });
        let mut x = [0.0; 9];
        let mut other = series;
        summarise(&mut series, &mut other, &mut x);
        let (mean, n): (f64, f64) = (1.0 / 151.0, 151.0);
        let variance = 1.0 - mean * mean + 1e-4;
        let (even, odd) = ((1.0 - mean) / variance.sqrt(), (-1.0 - mean) / variance.sqrt());
        assert!((x[4] - 150.0 * even * odd / 150.0).abs() < 1e-12);
        assert!((x[5] - (75.0 * even * even + 74.0 * odd * odd) / 150.0).abs() < 1e-12);
        assert!((x[8] - (76.0 * even * even + 75.0 * odd * odd) / 150.0).abs() < 1e-12);
        assert!((x[2] - (variance + 1.0).ln()).abs() < 1e-14 && n == POINTS as f64);
    }

    /// With one reaction alone the outcome is certain in law: predators die like independent clocks.
    #[test]
    fn a_pure_death_process_decays_exponentially() {
        use crate::rng::{Purpose, Streams};
        let streams = Streams::new(1).simulations(Purpose::Simulation, 0);
        let (mut sums, runs) = ([0.0; 2], 4000);
        for i in 0..runs {
            let (mut predators, mut prey) = ([0.0; POINTS], [0.0; POINTS]);
            run(
                Record::Exact,
                [0.0, 0.5, 0.0, 0.0],
                &mut streams.stream(i),
                &mut predators,
                &mut prey,
            );
            assert_eq!((predators[0], prey[POINTS - 1]), (50.0, 100.0));
            sums[0] += predators[5];
            sums[1] += predators[10];
        }
        for (sum, time) in sums.into_iter().zip([1.0, 2.0]) {
            let p = (-0.5f64 * time).exp();
            // Binomial with 50 trials; four standard errors.
            let error = 4.0 * (50.0 * p * (1.0 - p) / runs as f64).sqrt();
            assert!((sum / runs as f64 - 50.0 * p).abs() < error, "{time}");
        }
    }
}
