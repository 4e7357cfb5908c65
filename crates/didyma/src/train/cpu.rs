//! The engine on the cores of this machine.

use super::adam::AdamConfig;
use super::engine::{Engine, EngineState};
use super::shared::{Data, Job, Shared, Stage, lock, read, write};
use super::team::Team;
use super::tiles::TILE;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::estimator::Plan;
use crate::flow::SplineFlow;
use std::sync::Mutex;
use std::sync::atomic::Ordering;

/// Trains a flow on all cores; the result is the same bytes for any number of threads.
///
/// ```
/// use didyma::estimator::Plan;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::train::{AdamConfig, CpuEngine, Engine};
/// use didyma::{Dataset, FlowConfig, Rows, SplineFlow};
///
/// let theta = [0.1f32, 0.9, -0.4, 0.3];
/// let x = [0.2f32, 1.0, -0.5, 0.2];
/// let data = Dataset::new(Rows::new("theta", &theta, 1)?, Rows::new("x", &x, 1)?, &[0.0; 4])?;
/// let flow = SplineFlow::new(FlowConfig::new(1, 1))?;
/// let params = flow.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
/// let mut engine = CpuEngine::new(flow, params, &data, AdamConfig::default(), 2)?;
///
/// let mut plan = Plan::default(); // maximum likelihood on all rows
/// (0..4).for_each(|row| plan.push_own(row, 0.25));
/// let before = engine.evaluate(&plan)?;
/// (0..20).try_for_each(|_| engine.step(&plan, 1e-3))?;
/// assert!(engine.evaluate(&plan)? < before);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Debug)]
pub struct CpuEngine {
    team: Team<Shared>,
    config: AdamConfig,
    steps: u64,
    losses: (f64, u64),
}

impl CpuEngine {
    /// An engine of `threads` threads for this flow, from these parameters, on this dataset.
    pub fn new(
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        config: AdamConfig,
        threads: usize,
    ) -> Result<Self> {
        config.check()?;
        flow.check_params(&params)?;
        check_data(&flow, data)?;
        if !(1..=1024).contains(&threads) {
            return Err(Error::setting("threads", threads, "between 1 and 1024"));
        }
        let shared = Shared::new(flow, params, data, threads);
        let team = Team::new(threads, shared, |shared, member, stage| {
            shared.work(member, Stage::ALL[stage]);
        })
        .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { team, config, steps: 0, losses: (0.0, 0) })
    }

    /// Copies the plan, cuts it, and does what split groups need beforehand. Returns their loss.
    fn prepare(&self, plan: &Plan) -> Result<f64> {
        let shared = self.team.state();
        let mut job = write(&shared.job);
        let rows = job.data.log_prior.len();
        if plan.groups().is_empty() {
            return Err(Error::EmptyPlan);
        }
        if let Some(row) = plan.last_row().filter(|&row| row as usize >= rows) {
            return Err(Error::NoSuchRow { row: row as usize, rows });
        }
        job.plan.copy_from(plan);
        let Job { plan, tiles, parts, .. } = &mut *job;
        tiles.cut(plan);
        while parts.len() < tiles.parts {
            parts.push(Mutex::new(Vec::with_capacity(TILE)));
        }
        let split = tiles.parts > 0;
        drop(job);
        if !split {
            return Ok(0.0);
        }
        self.run(Stage::Parts);
        Ok(shared.reduce_parts())
    }

    fn run(&self, stage: Stage) {
        self.team.state().next.store(0, Ordering::Relaxed);
        self.team.run(stage as usize);
    }

    fn chunk_losses(&self) -> f64 {
        let shared = self.team.state();
        let chunks = read(&shared.job).tiles.chunks.len();
        shared.sums[..chunks].iter().map(|sum| read(sum).loss).sum()
    }

    fn finite(&self, what: &'static str, value: f64) -> Result<f64> {
        match value.is_finite() {
            true => Ok(value),
            false => Err(Error::Diverged { what, value, step: self.steps + 1 }),
        }
    }

    fn update(&mut self, learning_rate: f64) -> Result<()> {
        self.run(Stage::Sum);
        let shared = self.team.state();
        let norm = shared.blocks.iter().map(|b| lock(b).norm_squared).sum::<f64>().sqrt();
        self.finite("gradient norm", norm)?;
        self.steps += 1;
        write(&shared.job).adam = Some(self.config.numbers(self.steps, learning_rate, norm));
        self.run(Stage::Update);
        let mut params = write(&shared.params);
        for block in &shared.blocks {
            let block = lock(block);
            params[block.start..][..block.weights.len()].copy_from_slice(&block.weights);
        }
        Ok(())
    }
}

fn check_data(flow: &SplineFlow, data: &Dataset) -> Result<()> {
    data.theta().expect_columns(flow.config().theta_dim, "theta_dim of the flow")?;
    data.x().expect_columns(flow.config().x_dim, "x_dim of the flow")
}

impl Engine for CpuEngine {
    fn load(&mut self, data: &Dataset) -> Result<()> {
        let shared = self.team.state();
        check_data(&shared.flow, data)?;
        write(&shared.job).data = Data::new(&shared.flow, data);
        Ok(())
    }

    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        // Adam moves a weight by about the rate: above 1 it can only destroy them.
        if !(0.0..=1.0).contains(&learning_rate) {
            return Err(Error::setting("learning_rate", learning_rate, "between 0 and 1"));
        }
        let split = self.prepare(plan)?;
        self.run(Stage::Gradient);
        let loss = self.finite("loss", split + self.chunk_losses())?;
        self.update(learning_rate)?;
        self.losses = (self.losses.0 + loss, self.losses.1 + 1);
        Ok(())
    }

    fn take_loss(&mut self) -> f64 {
        let (sum, steps) = std::mem::take(&mut self.losses);
        sum / steps as f64
    }

    fn evaluate(&mut self, plan: &Plan) -> Result<f64> {
        let split = self.prepare(plan)?;
        self.run(Stage::Loss);
        self.finite("loss", split + self.chunk_losses())
    }

    fn read_params(&self, to: &mut [f32]) {
        let params = read(&self.team.state().params);
        assert_eq!(to.len(), params.len(), "room for every parameter");
        to.copy_from_slice(&params);
    }

    fn read_state(&self, to: &mut EngineState) {
        let EngineState { params, m, v, steps } = to;
        [&mut *params, &mut *m, &mut *v].into_iter().for_each(Vec::clear);
        for block in &self.team.state().blocks {
            let block = lock(block);
            params.extend_from_slice(&block.weights);
            m.extend_from_slice(&block.m);
            v.extend_from_slice(&block.v);
        }
        *steps = self.steps;
    }

    fn restore(&mut self, state: &EngineState) -> Result<()> {
        let shared = self.team.state();
        for numbers in [&state.params, &state.m, &state.v] {
            shared.flow.check_params(numbers)?;
        }
        write(&shared.params).copy_from_slice(&state.params);
        for block in &shared.blocks {
            let mut block = lock(block);
            let range = block.start..block.start + block.weights.len();
            block.weights.copy_from_slice(&state.params[range.clone()]);
            block.m.copy_from_slice(&state.m[range.clone()]);
            block.v.copy_from_slice(&state.v[range]);
        }
        self.steps = state.steps;
        self.losses = (0.0, 0);
        Ok(())
    }
}
