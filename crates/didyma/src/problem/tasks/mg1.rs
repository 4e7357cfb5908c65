//! M/G/1: a queue with one server, of which only the times between departures are seen.

use super::{Density, Reference, Task, words};
use crate::error::Result;
use crate::problem::prior::Prior;
use crate::problem::question::Problem;
use crate::problem::simulator::from_fn;
use crate::rng::SimulationStream;
use rand::RngExt;
use rand_distr::{Distribution, Exp1};

/// Customers of a run.
const JOBS: usize = 50;

/// Logarithms of 1.0973, 2.3010, 4.2565, 7.2229 and 23.3592.
const OBSERVATION: [f64; 5] = [0.0929, 0.8333, 1.4484, 1.9773, 3.1510];

fn prior(high: [f64; 3]) -> Result<Prior> {
    Prior::uniform(["service_min", "service_range", "arrival_rate"], [0.0; 3], high)
}

pub(super) fn task() -> Result<Task> {
    Ok(Task {
        name: "mg1".into(),
        about: "a queue: quartiles of the times between departures".into(),
        problem: Problem::new(
            prior([10.0, 10.0, 1.0 / 3.0])?,
            from_fn(3, 5, mg1),
            OBSERVATION.to_vec(),
        )?,
        truth: Some(vec![1.0, 4.0, 0.2]),
        scale: Some(vec![0.1049, 0.1336, 0.1006, 0.1893, 0.2918]),
        labels: words(["θ₁", "θ₂", "θ₃"]),
        summaries: words(["log_min", "log_q25", "log_median", "log_q75", "log_max"]),
        // No time between departures is shorter than the shortest service.
        support: Some(prior([OBSERVATION[0].exp(), 10.0, 1.0 / 3.0])?),
        reference: Reference::Stored(include_bytes!("../../../data/mg1.f32")),
        density: Density::Unknown,
    })
}

/// Service times are uniform on (θ₁, θ₁ + θ₂), arrivals come at rate θ₃; x holds the logarithms of the five
/// quartiles of the times between departures.
pub fn mg1(theta: &[f64], rng: &mut SimulationStream, x: &mut [f64]) {
    // A rate of 0 would mean that nobody ever comes.
    let (least, range, pause) = (theta[0], theta[1], theta[2].max(f64::MIN_POSITIVE).recip());
    let (mut arrival, mut departure) = (0.0, 0.0f64);
    let mut between = [0.0; JOBS];
    for y in &mut between {
        let wait: f64 = Exp1.sample(rng);
        arrival += wait * pause;
        let service = least + range * rng.random::<f64>();
        *y = service + (arrival - departure).max(0.0);
        departure += *y;
    }
    log_quartiles(&mut between, x);
}

/// log of the quantiles 0, ¼, ½, ¾ and 1, interpolated linearly between neighbours: at the places 12¼, 24½ and
/// 36¾ of 0 to 49.
fn log_quartiles(values: &mut [f64; JOBS], x: &mut [f64]) {
    let (low, middle, high) = values.select_nth_unstable_by(24, f64::total_cmp);
    let middle = 0.5 * (*middle + least(high));
    let (first, q25, rest) = low.select_nth_unstable_by(12, f64::total_cmp);
    let q25 = *q25 + 0.25 * (least(rest) - *q25);
    // The upper part starts at place 25: 36 and 37 are its places 11 and 12.
    let (_, q75, last) = high.select_nth_unstable_by(11, f64::total_cmp);
    let q75 = *q75 + 0.75 * (least(last) - *q75);
    let largest = last.iter().copied().fold(0.0, f64::max);
    for (x, quantile) in x.iter_mut().zip([least(first), q25, middle, q75, largest]) {
        *x = quantile.ln();
    }
}

fn least(values: &[f64]) -> f64 {
    values.iter().copied().fold(f64::INFINITY, f64::min)
}
