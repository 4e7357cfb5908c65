//! p̃ as a density, and inner samples made where q is.

use super::{ProposalLaw, Stocking};
use crate::density::coordinates::{Coordinates, Space};
use crate::density::flow::{FlowConfig, SplineFlow};
use crate::density::{Cpu, Dataset, Density, Ensemble};
use crate::inference::config::Config;
use crate::inference::posterior::Posterior;
use crate::problem::prior::Prior;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::estimator::{Bank, Draws, Source, Stock};
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
    let draws = law.draw(count, Streams::new(1), 3, 2).unwrap();
    assert_eq!(draws, law.draw(count, Streams::new(1), 3, 1).unwrap());
    for power in [1, 2] {
        let found: f64 =
            draws.iter().map(|z| f64::from(*z).powi(power)).sum::<f64>() / count as f64;
        let variance = moment(2 * power) - moment(power).powi(2);
        // Four standard errors, and what quadrature misses.
        let error = 4.0 * (variance / count as f64).sqrt() + 5e-3;
        assert!((found - moment(power)).abs() < error, "{power}: {found}, {}", moment(power));
    }
}

/// Stock of 40 rows, and where the samples are.
fn stock(size: usize) -> (Dataset, Stock) {
    let (prior, coordinates, posteriors) = (prior(), coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let x: Vec<f64> = (0..40).map(|i| (0.7 * f64::from(i)).sin()).collect();
    let narrow: Vec<f32> = x.iter().map(|&x| x as f32).collect();
    let z = Rows::new("z", &narrow, 1).unwrap();
    let data = Dataset::new(z, Rows::new("x", &narrow, 1).unwrap(), &law.log_prior(z)).unwrap();
    let streams = Streams::new(5);
    let snapshot = &posteriors[1];
    let stocking =
        Stocking { law: &law, snapshot, width: 1.2, size, streams, round: 3, threads: 2 };
    let of: Vec<u32> = (0..40).collect();
    stocking.make(data, &of, Rows::new("x", &x, 1).unwrap()).unwrap()
}

/// Weighted samples of every row have the mean of p̃: of 1, and of z and z². Half of the samples are the row's own.
#[test]
fn weighted_samples_have_the_moments_of_the_proposal() {
    let size = 2000;
    let (data, stock) = stock(size);
    let (prior, coordinates, posteriors) = (prior(), coordinates(), posteriors());
    let law = ProposalLaw::new(&config(), &prior, &coordinates, &SIMULATIONS, &posteriors).unwrap();
    let (grid, log_p, step) = on_a_grid(&law);
    let mut bank = Bank::new(stock.into());
    let (mut own, mut all) = (0.0, 0.0);
    for row in [0, 7, 39] {
        let mut draws = Draws::default();
        bank.draw(row, size, &mut Streams::new(1).stream(Purpose::Plan, 0, 0), &mut draws);
        own += draws.rows().iter().filter(|&&row| row >= 80).count() as f64;
        all += size as f64;
        for power in [0, 1, 2] {
            let at = |z: f32| f64::from(z).powi(power);
            let expected: f64 = grid.iter().zip(&log_p).map(|(z, l)| at(*z) * l.exp() * step).sum();
            let terms = draws.rows().iter().zip(draws.log_weights());
            let terms: Vec<f64> =
                terms.map(|(&row, w)| w.exp() * at(data.theta().row(row as usize)[0])).collect();
            let mean = terms.iter().sum::<f64>() / size as f64;
            let variance = terms.iter().map(|t| (t - mean).powi(2)).sum::<f64>() / size as f64;
            // The shared draws of p̃ are 40 only: half of the variance is theirs.
            let error = 4.5 * (variance / size as f64 + variance / 80.0).sqrt();
            assert!((mean - expected).abs() < error, "{row} {power}: {mean}, {expected} ± {error}");
        }
        let largest = draws.log_weights().iter().copied().fold(f64::MIN, f64::max);
        assert!(largest <= std::f64::consts::LN_2 + 1e-6 && bank.outer_log_weight(row) <= 0.7);
    }
    // Binomial: 4 standard deviations.
    assert!((own - all / 2.0).abs() < 4.0 * (all / 4.0).sqrt(), "{own} of {all}");
}
