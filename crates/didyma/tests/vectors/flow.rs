//! Densities of whole flows by another implementation (nflows 0.14 in float64, tail bound 3), for several tests.

use didyma::{FlowConfig, SplineFlow};

/// A pair with log q(θ | x).
pub struct Case {
    pub theta: Vec<f64>,
    pub x: Vec<f64>,
    pub log_q: f64,
}

impl Case {
    /// The flow that the numbers are of.
    pub fn flow(&self) -> SplineFlow {
        let config = FlowConfig { bound: 3.0, ..FlowConfig::new(self.theta.len(), self.x.len()) };
        SplineFlow::new(config).unwrap()
    }
}

/// A parameter by its place, in nflows' own order.
pub fn param(n: usize) -> f64 {
    0.2 * (0.7 * n as f64 + 0.3).sin()
}

/// All pairs, those of a shape side by side.
pub fn cases() -> [Case; 6] {
    let tenths = |n: i32| (1..=n).map(|j| f64::from(j) / 10.0).collect::<Vec<_>>();
    let falling = |n: i32| (0..n).map(|j| 0.5 - 0.25 * f64::from(j)).collect::<Vec<_>>();
    [
        (vec![0.3, -0.6], tenths(2), -6.20376013),
        (vec![-0.5, -0.3], falling(2), -7.18567667),
        (vec![0.3, -0.6, 0.9], tenths(5), -13.56231159),
        (vec![-0.5, -0.3, -0.1], falling(5), -14.18928103),
        (vec![0.3, -0.6, 0.9, -1.2], tenths(9), -14.20115387),
        (vec![-0.5, -0.3, -0.1, 0.1], falling(9), -19.04529113),
    ]
    .map(|(theta, x, log_q)| Case { theta, x, log_q })
}
