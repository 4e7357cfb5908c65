//! Noise on training summaries: an observation that the model cannot give, and one that it can.

use super::samples;
use didyma::config::{Algorithm, Config};
use didyma::math::mean_and_deviation;
use didyma::{Marginal, Method, Prior, Problem, State, from_fn, infer_from};
use rand_distr::{Distribution, StandardNormal};

/// Three measurements of each of two parameters.
const MEASURED: [f64; 6] = [0.5, 0.7, 0.3, -0.8, -0.6, -1.0];
/// Standard deviation of a measurement; that of the parameters is 1.
const NOISE: f64 = 0.5;
/// Five standard deviations √1.25 of a measurement under the prior.
const MOVED: f64 = 5.6;
/// The posterior of the first parameter: precision 1 + 3 / 0.25, mean 12/13 of the measurements' mean.
const MEAN: f64 = 6.0 / 13.0;
const SD: f64 = 0.277_35;

/// How far the mean of the first parameter is from that of the right posterior, in its standard deviations, and how many of
/// these its own are.
fn of_first(mut config: Config, moved: f64, noise: f64) -> (f64, f64) {
    let normal = Marginal::Normal { mean: 0.0, sd: 1.0 };
    let prior = Prior::new([("a", normal), ("b", normal)]).unwrap();
    let simulator = from_fn(2, 6, |theta, rng, x| {
        for (i, x) in x.iter_mut().enumerate() {
            let z: f64 = StandardNormal.sample(rng);
            *x = theta[i / 3] + NOISE * z;
        }
    });
    let mut x_o = MEASURED;
    x_o[0] += moved;
    let problem = Problem::new(prior, simulator, x_o).unwrap();
    config.train.noise = noise;
    let found = infer_from(&problem, None, &config, 2, State::default(), &mut ()).unwrap();
    let theta = samples(&found.posterior.unwrap(), 4000);
    let first: Vec<f64> = theta.iter().step_by(2).copied().collect();
    let (mean, sd) = mean_and_deviation(&first);
    ((mean - MEAN) / SD, sd / SD)
}

/// One round of npe, or three of tgrr, of one flow.
fn config(method: Algorithm, seed: u64) -> Config {
    let mut config = Config::new(didyma::Profile::Default, method);
    let npe = method == Algorithm::Npe;
    (config.rounds, config.simulations) = if npe { (1, 3000) } else { (3, 1000) };
    (config.ensemble.members, config.seed) = (1, seed);
    config.train.steps = Some(3000);
    config
}

/// Without noise the wrong measurement counts for a third, and moves the mean by 12/13 · 5.6/3 = 1.72, or 6.2 standard
/// deviations; a flow that never saw the like goes less far, or farther. With noise it should count for little: the other
/// two measurements have the mean 8/9 · 0.5, 0.06 standard deviations from the right one, and the width 1.2. Half of what
/// the model's own posterior moves is allowed to a flow that is trained for seconds.
#[test]
fn a_wrong_measurement_moves_a_posterior_trained_with_noise_less() {
    let mut config = config(Algorithm::Npe, 1);
    config.train.steps = Some(1500);
    let [plain, noisy] = [0.0, 0.25].map(|noise| of_first(config.clone(), MOVED, noise).0);
    eprintln!("moved by {plain:.2} without noise, by {noisy:.2} with it");
    assert!(plain > 4.0 && noisy.abs() < 3.1, "{plain} {noisy}");
}

/// The table of the effect: every row by several seeds.
#[test]
#[ignore = "takes minutes: prints the table of docs/trust.md"]
fn table() {
    println!("| method | measurement | train.noise | mean moved (sd) | width (sd) |");
    println!("|---|---|---:|---:|---:|");
    for (name, method) in [("npe", Algorithm::Npe), ("tgrr", Algorithm::Corrected(Method::Tgrr))] {
        for (kind, moved) in [("right", 0.0), ("wrong", MOVED)] {
            for noise in [0.0, 0.25] {
                let found: Vec<(f64, f64)> =
                    (1..=4).map(|seed| of_first(config(method, seed), moved, noise)).collect();
                let (shifts, widths): (Vec<f64>, Vec<f64>) = found.into_iter().unzip();
                let text = |values: &[f64]| {
                    let (mean, sd) = mean_and_deviation(values);
                    format!("{mean:.2} ± {sd:.2}")
                };
                println!("| {name} | {kind} | {noise} | {} | {} |", text(&shifts), text(&widths));
            }
        }
    }
}
