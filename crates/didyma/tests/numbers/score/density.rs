//! Samples and densities of networks.

use super::model;
use didyma::rng::{Purpose, Streams};
use didyma::score::{Output, ScoreConfig, ScoreModel};
use didyma::{Error, Rows};
use rand_distr::{Distribution, StandardNormal};

fn normal(count: usize) -> Vec<f32> {
    let mut rng = Streams::new(8).stream(Purpose::Posterior, 0, 0);
    StandardNormal.sample_iter(&mut rng).take(count).collect()
}

fn log_normal(row: &[f32]) -> f64 {
    row.iter().map(|&b| -0.5 * (f64::from(b).powi(2) + std::f64::consts::TAU.ln())).sum()
}

fn params(model: &ScoreModel) -> Vec<f32> {
    model.initial_params(&mut Streams::new(7).stream(Purpose::Weights, 0, 0))
}

/// log q(z) of a carried draw is log N(base) − log |dz/dbase|. An untrained network leaves y nearly as it is, so z = 12 base
/// or so, and the way back shrinks the rounding of z to f32 to ε |base|, which moves log N by ε base² < 1e-5. What is left is
/// the error of the steps, below 1e-4 for so smooth a score. In f32 a network of values near 1 has derivatives off by some
/// 10 ε, and log |dz/dbase| is D of them integrated over log r, a range of 10.6: 3 · 10.6 · 10 ε = 4e-5, and 1e-3 is ample.
#[test]
fn log_density_undoes_transport() {
    for (output, scaled, dim) in [
        (Output::Direct, true, 3),
        (Output::Direct, false, 1),
        (Output::Energy, true, 2),
        (Output::Energy, false, 3),
    ] {
        let model = model(dim, 2, output, scaled);
        let single = params(&model);
        let double: Vec<f64> = single.iter().map(|&p| f64::from(p)).collect();
        let (base, x) = (normal(100 * dim), [0.4, -1.2]);
        let rows = |z| Rows::new("z", z, dim).unwrap();
        let x_row = Rows::new("x", &x, 2).unwrap();
        let (z, log_det) = model.transport(&double, &x, &base).unwrap();
        let log_q = model.log_density(&double, rows(&z), x_row).unwrap();
        let in_single = model.log_density(&single, rows(&z), x_row).unwrap();
        for (i, base) in base.chunks_exact(dim).enumerate() {
            let expected = log_normal(base) - log_det[i];
            assert!((log_q[i] - expected).abs() < 1e-4, "{output:?}: {} {expected}", log_q[i]);
            assert!(
                (in_single[i] - expected).abs() < 1e-3,
                "{output:?}: {} {expected}",
                in_single[i]
            );
        }
        assert_eq!(model.sample(&double, &x, &base).unwrap(), z, "the trace changes no sample");
    }
}

/// One x for all rows, the same x for each, and different ones: each row depends on its own x alone.
#[test]
fn every_row_has_its_own_x() {
    let model = model(2, 2, Output::Energy, true);
    let params = params(&model);
    let z = normal(2 * 150);
    let x = normal(2 * 150);
    let rows = |name, data| Rows::new(name, data, 2).unwrap();
    let own = model.log_density(&params, rows("z", &z), rows("x", &x)).unwrap();
    for i in [0, 63, 64, 149] {
        let one = rows("x", &x[2 * i..][..2]);
        let shared = model.log_density(&params, rows("z", &z), one).unwrap();
        assert_eq!(shared[i], own[i], "the same arithmetic");
        assert_ne!(shared[(i + 1) % 150], own[(i + 1) % 150]);
    }
}

/// q integrates to 1. Untrained it is a smooth bump of standard deviation 10 or so, and the sum over a grid with a fine
/// step is exact up to the tails beyond ±100 and the differential equation's error, below 1e-4 for so smooth a score.
#[test]
fn the_density_integrates_to_one() {
    for output in [Output::Direct, Output::Energy] {
        let model = model(1, 1, output, true);
        let params = params(&model);
        let grid: Vec<f32> = (-500..=500).map(|i| 0.2 * i as f32).collect();
        let z = Rows::new("z", &grid, 1).unwrap();
        let log_q = model.log_density(&params, z, Rows::new("x", &[0.3], 1).unwrap()).unwrap();
        let total = 0.2 * log_q.iter().map(|l| l.exp()).sum::<f64>();
        assert!((total - 1.0).abs() < 1e-4, "{output:?}: {total}");
    }
}

#[test]
fn bad_rows_are_refused() {
    let model = ScoreModel::new(ScoreConfig { units: 8, ..ScoreConfig::new(2, 1) }).unwrap();
    let params = params(&model);
    assert!(matches!(model.sample(&params, &[0.0; 2], &[0.0; 4]), Err(Error::Shape { .. })));
    assert!(matches!(model.sample(&params, &[0.0], &[0.0; 3]), Err(Error::Shape { .. })));
    assert!(matches!(model.sample(&params, &[f32::NAN], &[0.0; 2]), Err(Error::NotFinite { .. })));
    assert!(matches!(model.sample(&params[1..], &[0.0], &[0.0; 2]), Err(Error::Shape { .. })));
    assert!(model.sample(&params, &[0.0], &[]).unwrap().is_empty());
    let z = Rows::new("z", &[0.0; 6], 2).unwrap();
    let x = Rows::new("x", &[0.0; 2], 1).unwrap();
    assert!(matches!(model.log_density(&params, z, x), Err(Error::Shape { .. })));
}
