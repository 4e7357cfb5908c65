//! p̃ as a density, and inner samples made where q is.

use super::{ProposalLaw, Stocking};
use crate::density::coordinates::{Coordinates, Space};
use crate::density::flow::{FlowConfig, SplineFlow};
use crate::density::{Cpu, Dataset, Density, Ensemble};
use crate::inference::config::Config;
use crate::inference::failures::Validity;
use crate::inference::posterior::Posterior;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::estimator::{Bank, Draws, Source, Stock};
use rand::RngExt;
use std::sync::Arc;

/// Rounds of the runs here.
const SIMULATIONS: [usize; 3] = [300, 200, 500];

fn prior() -> Prior {
    Prior::uniform(["a"], [-1.0], [2.0]).unwrap()
}

fn coordinates() -> Coordinates {
    Coordinates::plain(Space::Unbounded, 1, 1)
}

/// Posteriors of two rounds, ensembles of two flows on the line that nobody trained.
fn posteriors() -> Vec<Posterior> {
    let flow = SplineFlow::new(FlowConfig { layers: 2, ..FlowConfig::new(1, 1) }).unwrap();
    let initial = |seed| -> Vec<f32> {
        flow.initial_params(&mut Streams::new(seed).stream(Purpose::Weights, 0, 0))
    };
    // Far from the identity, and from each other.
    let params = |seed| -> Vec<f32> {
        initial(seed).iter().zip(initial(seed + 9)).map(|(a, b)| 2.0 * a + b).collect()
    };
    let of = |seed| Posterior {
        prior: prior(),
        coordinates: coordinates(),
        ensemble: Ensemble::new(Density::Flow(flow.clone()), vec![params(seed), params(seed + 1)]),
        observation: vec![0.3],
        ranges: None,
        device: Arc::new(Cpu),
    };
    vec![of(1), of(3)]
}

fn config() -> Config {
    Config { prior_share: 0.25, width: 1.25, ..Config::default() }
}

/// log p̃ on a grid of z, and its step.
fn on_a_grid(law: &ProposalLaw) -> (Vec<f32>, Vec<f64>, f64) {
    let step = 0.004f32;
    let z: Vec<f32> = (-2500..=2500).map(|i| i as f32 * step).collect();
    let rows = Rows::new("z", &z, 1).unwrap();
    let log_p = law.log_density_of_all(rows, &law.log_prior(rows), 2).unwrap();
    (z.clone(), log_p, f64::from(step))
}

/// By quadrature: the mass is 1, and the mean of draws is that of the density.
#[test]
fn the_proposal_is_a_density_and_its_draws_follow_it() {
    let (prior, coordinates, posteriors) = (prior(), coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let (z, log_p, step) = on_a_grid(&law);
    let moment = |power: i32| -> f64 {
        let terms = z.iter().zip(&log_p).map(|(z, l)| f64::from(*z).powi(power) * l.exp() * step);
        terms.sum()
    };
    assert!((moment(0) - 1.0).abs() < 2e-3, "{}", moment(0));
    let count = 40_000;
    let stream = |block| Streams::new(1).stream(Purpose::InnerPool, 3, block);
    let draws = law.draw(count, stream, 2).unwrap();
    assert_eq!(draws, law.draw(count, stream, 1).unwrap());
    for power in [1, 2] {
        let found: f64 =
            draws.iter().map(|z| f64::from(*z).powi(power)).sum::<f64>() / count as f64;
        let variance = moment(2 * power) - moment(power).powi(2);
        // Four standard errors, and what quadrature misses.
        let error = 4.0 * (variance / count as f64).sqrt() + 5e-3;
        assert!((found - moment(power)).abs() < error, "{power}: {found}, {}", moment(power));
    }
}

/// Rows of the dataset, which are as many as the draws of p̃ that all rows share.
const ROWS: usize = 4000;

/// Parameters and summaries of the rows.
fn numbers() -> Vec<f64> {
    (0..ROWS).map(|i| (0.7 * i as f64).sin()).collect()
}

/// Samples for the first 40 rows, and the dataset with them.
fn stock(law: &ProposalLaw, snapshot: &Posterior, size: usize, nets: bool) -> (Dataset, Stock) {
    let x = numbers();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let z = Rows::new("z", &narrow, 1).unwrap();
    let data = Dataset::new(z, Rows::new("x", &narrow, 1).unwrap(), &law.log_prior(z)).unwrap();
    let stocking = Stocking {
        law,
        snapshot,
        width: WIDTH,
        size,
        nets,
        streams: Streams::new(5),
        purposes: [Purpose::InnerPool, Purpose::InnerStock],
        round: 3,
        threads: 2,
    };
    let of: Vec<u32> = (0..40).collect();
    stocking.make(data, &of, Rows::new("x", &x, 1).unwrap()).unwrap()
}

/// The width of the posterior that samples are drawn from.
const WIDTH: f64 = 1.2;

/// Weighted samples of every row have the mean of p̃: of 1, and of z and z². Half of the samples are the row's own.
#[test]
fn weighted_samples_have_the_moments_of_the_proposal() {
    weighted_moments(4000, false);
}

/// The same by nets: what is even has smaller errors than these bounds.
#[test]
fn weighted_nets_have_the_moments_of_the_proposal() {
    weighted_moments(4096, true);
}

fn weighted_moments(size: usize, nets: bool) {
    let (prior, coordinates, posteriors) = (prior(), coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let (data, stock) = stock(&law, &posteriors[1], size, nets);
    let (grid, log_p, step) = on_a_grid(&law);
    let mut bank = Bank::new(stock.into());
    let (mut own, mut all) = (0.0, 0.0);
    for row in [0, 7, 39] {
        let mut draws = Draws::default();
        bank.draw(row, size, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
        own += draws.rows().iter().filter(|&&row| row as usize >= 2 * ROWS).count() as f64;
        all += size as f64;
        for power in [0, 1, 2] {
            let at = |z: f32| f64::from(z).powi(power);
            let expected: f64 = grid.iter().zip(&log_p).map(|(z, l)| at(*z) * l.exp() * step).sum();
            let terms = draws.rows().iter().zip(draws.log_weights());
            let terms: Vec<f64> =
                terms.map(|(&row, w)| w.exp() * at(data.theta().row(row as usize)[0])).collect();
            let mean = terms.iter().sum::<f64>() / size as f64;
            let variance = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / size as f64;
            // Half of the variance is that of 4000 shared draws, of which half are picked; 2e-3 is what quadrature misses.
            let error = 4.5 * (variance / size as f64 + 0.5 * variance / ROWS as f64).sqrt() + 2e-3;
            assert!(power > 0 || error < 0.1, "{error}");
            assert!((mean - expected).abs() < error, "{row} {power}: {mean}, {expected} ± {error}");
        }
    }
    // Binomial: 4 standard deviations.
    assert!((own - all / 2.0).abs() < 4.0 * (all / 4.0).sqrt(), "{own} of {all}");
}

/// Log-weights are log p̃ − log (½ p̃ + ½ q), q as wide as it was drawn: those of samples, and that of the outer θ, on which
/// the fixed point of inclusive losses rests.
#[test]
fn log_weights_are_those_of_the_densities() {
    for (size, nets) in [(30, false), (32, true)] {
        compare_log_weights(size, nets);
    }
}

fn compare_log_weights(size: usize, nets: bool) {
    let (prior, coordinates, posteriors) = (prior(), coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let (data, stock) = stock(&law, &posteriors[1], size, nets);
    let mut bank = Bank::new(stock.into());
    let mut spread = 0.0f64;
    for row in 0..40 {
        let mut draws = Draws::default();
        bank.draw(row, size, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
        let mut found = draws.log_weights().to_vec();
        found.push(bank.outer_log_weight(row));
        let all = draws.rows().iter().chain([&row]);
        let z: Vec<f32> = all.map(|&row| data.theta().row(row as usize)[0]).collect();
        let z = Rows::new("z", &z, 1).unwrap();
        let log_p = law.log_density_of_all(z, &law.log_prior(z), 1).unwrap();
        let x = [data.x().row(row as usize)[0]];
        let (x, ensemble) = (Rows::new("x", &x, 1).unwrap(), &posteriors[1].ensemble);
        let log_q = ensemble.log_density_of_groups(z, x, &[size + 1], WIDTH).unwrap();
        for ((found, log_p), log_q) in found.iter().zip(&log_p).zip(&log_q) {
            let expected = log_p - (0.5 * (log_p.exp() + log_q.exp())).ln();
            // Densities come from one pass in single precision.
            assert!((found - expected).abs() < 1e-4, "{row}: {found} {expected}");
            spread = spread.max(expected.abs());
        }
    }
    assert!(spread > 1.0, "weights that matter");
}

/// Selection by success multiplies the density of p̃, but where nearly nothing succeeds.
#[test]
fn selection_enters_the_log_weights() {
    let prior = prior();
    let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
    // Simulations succeed with probability (a + 1) / 3, and never below −0.5.
    let theta: Vec<f64> = (0..4000).map(|_| 3.0 * rng.random::<f64>() - 1.0).collect();
    let chance = |a: f64| if a < -0.5 { 0.0 } else { (a + 1.0) / 3.0 };
    let succeeded: Vec<bool> = theta.iter().map(|&a| rng.random::<f64>() < chance(a)).collect();
    let rows = Rows::new("theta", &theta, 1).unwrap();
    let validity = Validity::fit(&prior, rows, &succeeded, Streams::new(1), 3, 1).unwrap().unwrap();
    let (coordinates, posteriors) = (coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let z: Vec<f32> = [-0.95, 0.5, 1.8].iter().map(|&a| z_of(&coordinates, &prior, a)).collect();
    let z = Rows::new("z", &z, 1).unwrap();
    assert_eq!(law.log_selection(z).unwrap(), [0.0; 3]);
    let found = law.selected(Some(&validity)).log_selection(z).unwrap();
    assert_eq!(found[0], 0.0);
    for (found, a) in found[1..].iter().zip([0.5, 1.8]) {
        assert!((found - chance(a).ln()).abs() < 0.2, "{a}: {found}");
    }
}

fn z_of(coordinates: &Coordinates, prior: &Prior, a: f64) -> f32 {
    let mut z = [0.0];
    coordinates.to_z(prior, &[a], &mut z);
    z[0] as f32
}
