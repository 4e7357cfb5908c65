//! Samples against the density that they are of.

use super::{Case, normal};
use didyma::training::Device;
use didyma::{FlowConfig, Rows};
use std::sync::Arc;

/// ∫ q over a box, by a grid of this many points in each dimension.
fn integral(
    device: &Arc<dyn Device>,
    case: &Case,
    x: &[f32],
    points: usize,
    span: (f64, f64),
) -> f64 {
    let Case { flow, params, .. } = case;
    let (dim, step) = (flow.config().theta_dim, (span.1 - span.0) / points as f64);
    let at = |i: usize| (span.0 + (i as f64 + 0.5) * step) as f32;
    let grid: Vec<f32> = match dim {
        1 => (0..points).map(at).collect(),
        _ => (0..points * points).flat_map(|i| [at(i / points), at(i % points)]).collect(),
    };
    let theta = Rows::new("theta", &grid, dim).unwrap();
    let x = Rows::new("x", x, x.len()).unwrap();
    let log_q = device.log_density(flow, params, theta, x).unwrap();
    log_q.iter().map(|l| l.exp()).sum::<f64>() * step.powi(dim as i32)
}

/// For a normalised density q and any box A, P(θ ∈ A) = ∫_A q: the share of samples in A must agree
/// with the integral of the density on a grid, within 4 standard errors √(p (1 − p) / n) and the
/// grid's own error (its difference from a grid of half the points).
pub fn samples_agree_with_the_density(device: &Arc<dyn Device>) {
    for (dim, points) in [(1, 5000), (2, 160)] {
        let config = FlowConfig { layers: 2, units: 12, bound: 3.0, ..FlowConfig::new(dim, 2) };
        let case = Case::new(config, 1);
        let (x, n) = ([0.3f32, -0.8], 10_000);
        let base = normal(9, n * dim);
        let (theta, _) = device.transport(&case.flow, &case.params, &x, &base).unwrap();
        for span in [(-1.0, 0.5), (-6.0, 6.0)] {
            let p = integral(device, &case, &x, points, span);
            let grid_error = (p - integral(device, &case, &x, points / 2, span)).abs();
            let inside = |row: &&[f32]| row.iter().all(|&v| (span.0..span.1).contains(&v.into()));
            let share = theta.chunks_exact(dim).filter(inside).count() as f64 / n as f64;
            let tolerance = 4.0 * (p * (1.0 - p).max(0.0) / n as f64).sqrt() + grid_error + 1e-4;
            assert!(
                (share - p).abs() < tolerance,
                "{share} of the samples, density {p} ± {tolerance}"
            );
        }
    }
}
