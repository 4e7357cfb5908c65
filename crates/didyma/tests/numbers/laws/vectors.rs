//! Golden vectors: numbers that were made elsewhere.

use super::Case;
use didyma::training::Device;
use didyma::{Dataset, Rows};
use std::sync::Arc;

#[path = "../../vectors/estimator.rs"]
pub mod estimator;
#[path = "../../vectors/flow.rs"]
pub mod flow;

/// Within 1e-4, as the library's own kernels in f32.
pub fn golden_flows(device: &Arc<dyn Device>) {
    let narrow = |numbers: &[f64]| numbers.iter().map(|&v| v as f32).collect::<Vec<_>>();
    for pair in flow::cases().chunks_exact(2) {
        let flow = pair[0].flow();
        let params: Vec<f32> = (0..flow.params_len()).map(|n| flow::param(n) as f32).collect();
        let (mut theta, mut x) = (Vec::new(), Vec::new());
        for case in pair {
            theta.extend(narrow(&case.theta));
            x.extend(narrow(&case.x));
        }
        let rows = |name, data, case: &[f64]| Rows::new(name, data, case.len()).unwrap();
        let (theta, x) = (rows("theta", &theta, &pair[0].theta), rows("x", &x, &pair[0].x));
        let log_q = device.log_density(&flow, &params, theta, x).unwrap();
        for (found, case) in log_q.into_iter().zip(pair) {
            assert!((found - case.log_q).abs() < 1e-4, "{found} instead of {}", case.log_q);
        }
    }
}

/// Through an engine: log priors are such that log g of every row is that of the vector.
pub fn golden_estimators(device: &Arc<dyn Device>) {
    for vector in estimator::cases() {
        let rows = 1 + vector.inner.len();
        let Case { flow, params, data } = Case::small(rows);
        let x = Rows::new("x", data.x().row(0), 2).unwrap();
        let log_q = device.log_density(&flow, &params, data.theta(), x).unwrap();
        let u: Vec<f64> = (0..rows as u32).map(|row| vector.log_g(row)).collect();
        let log_prior: Vec<f64> = log_q.iter().zip(&u).map(|(q, u)| q - u).collect();
        let data = Dataset::new(data.theta(), data.x(), &log_prior).unwrap();
        let mut engine = device.engine(flow, params, &data, Default::default(), 1).unwrap();
        let found = engine.evaluate(&vector.plan).unwrap();
        // `own` multiplies log q, where the vector has log g.
        let owns: f64 = vector.plan.groups().iter().map(|group| group.own).sum();
        let expected = vector.loss - owns * (log_q[0] - u[0]);
        // log g = q − (q − u) is rounded twice, each time by half an ulp of the largest of these numbers; a term passes it on
        // with its weight.
        let largest = log_q.iter().chain(&u).fold(0.0, |top: f64, v| top.max(v.abs()));
        let terms = vector.plan.groups().iter().flat_map(|group| vector.plan.terms(group));
        let weights: f64 = terms.map(|term| term.weight.abs()).sum::<f64>() + owns;
        let tolerance = estimator::TOLERANCE * vector.loss.abs().max(1e-3)
            + 2.0 * f64::EPSILON * largest * weights;
        let error = (found - expected).abs();
        assert!(error <= tolerance, "{}: {found} instead of {expected}", vector.name);
    }
}
