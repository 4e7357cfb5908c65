//! Synthetic training work with the shape of the paper's tasks, for benchmarks.
//!
//! The estimators are the real ones; data are standard normal and the flow starts untrained: the time
//! of a step does not depend on either.

use didyma::estimator::{Estimator, Method, Plan, Pool, Replacement, Settings};
use didyma::rng::{Purpose, Streams};
use didyma::training::{AdamConfig, Engine, Machine};
use didyma::{Dataset, FlowConfig, Result, Rows, SplineFlow};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Rows of the synthetic dataset: ten rounds of 1,000 simulations.
pub const POOL: u32 = 10_000;
/// Outer samples of a step.
pub const BATCH: usize = 100;

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

/// Plans of one step after another.
#[derive(Clone, Debug)]
pub struct Steps {
    estimator: Estimator,
    pool: Pool,
    rows: u32,
    streams: Streams,
    size: usize,
    batch: Vec<u32>,
    next: u64,
}

impl Steps {
    /// An estimator on the first `rows` rows of the dataset; one without a top level is capped at the highest
    /// whose block they can fill.
    pub fn new(streams: Streams, settings: Settings, rows: u32) -> Result<Self> {
        let pool = Pool::new(0..rows, Replacement::Without)?;
        let estimator = Estimator::new(settings.capped_for(&pool))?;
        let (size, batch) = (BATCH, Vec::with_capacity(BATCH));
        Ok(Self { estimator, pool, rows, streams, size, batch, next: 0 })
    }

    /// The same with so many outer samples a step.
    pub fn of_batch(self, size: usize) -> Self {
        Self { size, ..self }
    }

    /// The estimator.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// Replaces `plan` by that of the next step.
    pub fn plan_next(&mut self, plan: &mut Plan) -> Result<()> {
        let mut rng = self.streams.stream(Purpose::Plan, 0, self.next);
        self.next += 1;
        self.batch.clear();
        self.batch.extend((0..self.size).map(|_| rng.random_range(0..self.rows)));
        self.estimator.plan(&self.batch, &mut self.pool, &mut rng, plan)
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
    pub fn engine(
        &self,
        streams: &Streams,
        machine: impl Into<Machine>,
    ) -> Result<Box<dyn Engine>> {
        let Machine { threads, device, .. } = machine.into();
        let flow = self.flow()?;
        let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
        device.engine(flow, params, &self.data(streams)?, AdamConfig::default(), threads)
    }
}

/// Plans of the first `count` steps of a method at the paper's settings.
pub fn plans(streams: Streams, method: Method, count: usize) -> Result<Vec<Plan>> {
    let mut steps = Steps::new(streams, Settings::paper(method), POOL)?;
    let mut plans = vec![Plan::default(); count];
    plans.iter_mut().try_for_each(|plan| steps.plan_next(plan))?;
    Ok(plans)
}
