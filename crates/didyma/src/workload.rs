//! Synthetic training work with the shape of the paper's tasks and methods, for benchmarks.
//!
//! Data are standard normal and the flow starts untrained: the time of a step does not depend on either.

use crate::dataset::Dataset;
use crate::error::Result;
use crate::estimator::{Plan, Term};
use crate::flow::{FlowConfig, SplineFlow};
use crate::rng::{Purpose, Stream, Streams};
use crate::rows::Rows;
use crate::train::{AdamConfig, CpuEngine};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Rows of the synthetic dataset: ten rounds of 1,000 simulations.
pub const POOL: u32 = 10_000;
/// Outer samples of a step.
pub const BATCH: usize = 100;
/// M₀, base level, top level and α of the paper's TGRR.
const M0: usize = 8;
const BASE: i32 = 2;
const TOP: i32 = 4;
const ALPHA: f64 = 1.673;
/// Atoms of the paper's nested and atomic baselines.
const ATOMS: usize = 100;

/// A task, as far as its sizes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Its name on the command line.
    pub name: &'static str,
    /// D, the number of parameters.
    pub theta_dim: usize,
    /// C, the number of summaries.
    pub x_dim: usize,
}

/// The paper's tasks.
pub const SHAPES: [Shape; 4] = [
    Shape { name: "two-moons", theta_dim: 2, x_dim: 2 },
    Shape { name: "lotka-volterra", theta_dim: 4, x_dim: 9 },
    Shape { name: "mg1", theta_dim: 3, x_dim: 5 },
    Shape { name: "hodgkin-huxley", theta_dim: 8, x_dim: 7 },
];

/// A training method, as far as the shape of its groups goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Truncated generalised Russian roulette: 32 inner samples, and rarely blocks of 64 and 128.
    Tgrr,
    /// 100 inner samples and the outer θ apart.
    Nested,
    /// 100 atoms, the outer θ among them.
    Atomic,
    /// The outer θ alone.
    Likelihood,
}

impl Method {
    /// All methods with their names on the command line.
    pub const ALL: [(&'static str, Self); 4] = [
        ("tgrr", Self::Tgrr),
        ("nested", Self::Nested),
        ("atomic", Self::Atomic),
        ("likelihood", Self::Likelihood),
    ];

    /// Fills `plan` with one step's groups, the largest first: so threads end at the same time.
    pub fn plan(self, rng: &mut Stream, plan: &mut Plan) {
        plan.clear();
        let each = 1.0 / BATCH as f64;
        let outer: [u32; BATCH] = std::array::from_fn(|_| rng.random_range(0..POOL));
        if self == Self::Tgrr {
            self.corrections(&outer, rng, plan);
        }
        let mut inner =
            |count: usize| -> Vec<u32> { (0..count).map(|_| rng.random_range(0..POOL)).collect() };
        for &row in &outer {
            match self {
                Self::Tgrr => plan.push(row, 0.0, each, Term::LogMeanExp, inner(M0 << BASE)),
                Self::Nested => plan.push(row, 0.0, each, Term::LogMeanExp, inner(ATOMS)),
                Self::Atomic => {
                    let atoms = [row].into_iter().chain(inner(ATOMS - 1));
                    plan.push(row, each, each, Term::LogMeanExp, atoms);
                }
                Self::Likelihood => {}
            }
        }
        if self != Self::Atomic {
            outer.iter().for_each(|&row| plan.push_own(row, each));
        }
    }

    /// Blocks above the base level: outer sample i has one at level j with probability p_j, P(L ≥ j).
    fn corrections(self, outer: &[u32], rng: &mut Stream, plan: &mut Plan) {
        let cut = (-ALPHA * f64::from(TOP + 1)).exp2();
        let tail = |level: i32| ((-ALPHA * f64::from(level)).exp2() - cut) / (1.0 - cut);
        for &row in outer {
            let u: f64 = rng.random();
            for level in (BASE + 1..=TOP).take_while(|&level| u < tail(level)) {
                let weight = 1.0 / (BATCH as f64 * tail(level));
                let atoms: Vec<u32> = (0..M0 << level).map(|_| rng.random_range(0..POOL)).collect();
                plan.push(row, 0.0, weight, Term::AntitheticDifference, atoms);
            }
        }
    }
}

impl Shape {
    /// The shape of this name.
    pub fn named(name: &str) -> Option<Self> {
        SHAPES.into_iter().find(|shape| shape.name == name)
    }

    /// The paper's flow for this task.
    pub fn flow(&self) -> Result<SplineFlow> {
        SplineFlow::new(FlowConfig::new(self.theta_dim, self.x_dim))
    }

    /// Standard normal data.
    pub fn data(&self, streams: &Streams) -> Result<Dataset> {
        let normal = |index: u64, dim: usize| -> Vec<f32> {
            let mut rng = streams.stream(Purpose::Synthetic, 0, index);
            (0..POOL as usize * dim).map(|_| StandardNormal.sample(&mut rng)).collect()
        };
        let (theta, x) = (normal(0, self.theta_dim), normal(1, self.x_dim));
        Dataset::new(
            Rows::new("theta", &theta, self.theta_dim)?,
            Rows::new("x", &x, self.x_dim)?,
            &vec![0.0; POOL as usize],
        )
    }

    /// An engine on that flow and these data.
    pub fn engine(&self, streams: &Streams, threads: usize) -> Result<CpuEngine> {
        let flow = self.flow()?;
        let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
        CpuEngine::new(flow, params, &self.data(streams)?, AdamConfig::default(), threads)
    }

    /// Plans of `count` different steps.
    pub fn plans(&self, streams: &Streams, method: Method, count: u64) -> Vec<Plan> {
        (0..count)
            .map(|step| {
                let mut plan = Plan::default();
                method.plan(&mut streams.stream(Purpose::Plan, 0, step), &mut plan);
                plan
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::Real;

    #[test]
    fn a_tgrr_plan_has_the_papers_levels_and_weights() {
        // P(L ≥ 3) = 0.0279 and P(L ≥ 4) = 0.0067 at α = 1.673 (the paper's settings).
        let tails = [(64, 0.0279), (128, 0.0067)];
        let plans = SHAPES[0].plans(&Streams::new(5), Method::Tgrr, 400);
        for (len, tail) in tails {
            let groups = || plans.iter().flat_map(|plan| plan.groups()).filter(|g| g.len == len);
            // A binomial count of 40,000 trials: within 4 standard deviations.
            let (count, expected) = (groups().count() as f64, 40_000.0 * tail);
            assert!((count - expected).abs() < 4.0 * expected.sqrt(), "{count} {expected}");
            let weight = |g: &crate::estimator::Group| (g.weight * 100.0 * tail - 1.0).abs() < 0.01;
            assert!(groups().all(|g| weight(g) && g.term == Term::AntitheticDifference));
        }
        let base = plans[0].groups().iter().filter(|g| g.len == 32 && g.weight == 0.01).count();
        let own = plans[0].groups().iter().filter(|g| g.len == 1 && g.own == 0.01).count();
        assert_eq!((base, own), (100, 100));
    }

    #[test]
    fn flops_are_those_of_the_matrices() {
        // Lotka-Volterra: per pair and layer 4 · 50² + 58 · 50 + 2 · 50 + 4², three times; per group
        // 3 · 9 · 50, twice.
        let flow = SHAPES[1].flow().unwrap();
        let expected = 2 * 8 * (3 * 13_016 * 3_543 + 2 * 1_350 * 203);
        assert_eq!(flow.flops(3_543, 203), expected);
    }

    #[test]
    fn first_weights_have_the_bounds_of_their_layers() {
        let flow = SHAPES[1].flow().unwrap();
        let streams = Streams::new(2);
        let params: Vec<f64> = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
        for tensor in flow.tensors() {
            let values = &params[tensor.range.clone()];
            let bound = match tensor.name.split('.').nth_back(1).unwrap() {
                "initial" => 1.0 / 11f64.sqrt(),
                "context" => 1.0 / 3.0,
                "first" | "last" => 1.0 / 50f64.sqrt(),
                "second" => 1e-3,
                _ if tensor.name.ends_with("diagonal") => {
                    assert!(values.iter().all(|u| (u.softplus() + 1e-3 - 1.0).abs() < 1e-12));
                    continue;
                }
                _ => {
                    assert!(values.iter().all(|&v| v == 0.0), "{}", tensor.name);
                    continue;
                }
            };
            // A uniform variable on ±bound: the mean square is bound² / 3, with a standard error of
            // bound² √(4/45) / √n; 5 of these for some 60 tensors.
            let n = values.len() as f64;
            let mean_square = values.iter().map(|v| v * v).sum::<f64>() / n;
            let error = 5.0 * bound * bound * (4.0 / 45.0 / n).sqrt();
            assert!(values.iter().all(|v| v.abs() <= bound), "{}", tensor.name);
            assert!((mean_square - bound * bound / 3.0).abs() < error, "{}", tensor.name);
        }
    }
}
