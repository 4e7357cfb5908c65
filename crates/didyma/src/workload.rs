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
