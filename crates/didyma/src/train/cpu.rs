//! The engine on the cores of this machine.

use super::adam::AdamConfig;
use super::engine::{Engine, EngineState};
use super::optimiser::{Ledger, read, write};
use super::shared::{Job, Shared, Stage};
use super::team::Team;
use super::tiles::TILE;
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::estimator::Plan;
use crate::flow::SplineFlow;
use crate::parallel;
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
    ledger: Ledger,
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
        let ledger = Ledger::new(config)?;
        flow.check_params(&params)?;
        flow.check_pairs(data.theta(), data.x())?;
        parallel::check_threads(threads)?;
        let shared = Shared::new(flow, params, data.clone(), threads);
        let team = Team::new(threads, shared, |shared, member, stage| {
            shared.work(member, Stage::ALL[stage]);
        })
        .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { team, ledger })
    }

    /// Copies the plan, cuts it, and does what split groups need beforehand. Returns their loss.
    fn prepare(&self, plan: &Plan) -> Result<f64> {
        let shared = self.team.state();
        let mut job = write(&shared.job);
        plan.check(shared.data.len())?;
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
        shared.optimiser.loss(read(&shared.job).tiles.chunks.len())
    }

    fn update(&mut self, learning_rate: f64) -> Result<()> {
        self.run(Stage::Sum);
        let optimiser = &self.team.state().optimiser;
        optimiser.begin_step(self.ledger.next_step(learning_rate, optimiser.norm())?);
        self.run(Stage::Update);
        optimiser.publish();
        Ok(())
    }
}

impl Engine for CpuEngine {
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        AdamConfig::check_rate(learning_rate)?;
        let split = self.prepare(plan)?;
        self.run(Stage::Gradient);
        let loss = self.ledger.finite("loss", split + self.chunk_losses())?;
        self.update(learning_rate)?;
        self.ledger.add_loss(loss);
        Ok(())
    }

    fn take_loss(&mut self) -> Result<f64> {
        Ok(self.ledger.take_loss())
    }

    fn evaluate(&mut self, plan: &Plan) -> Result<f64> {
        let split = self.prepare(plan)?;
        self.run(Stage::Loss);
        self.ledger.finite("loss", split + self.chunk_losses())
    }

    fn read_params(&self, to: &mut [f32]) -> Result<()> {
        self.team.state().optimiser.read_params(to);
        Ok(())
    }

    fn read_state(&self, to: &mut EngineState) -> Result<()> {
        self.team.state().optimiser.read_state(to);
        to.steps = self.ledger.steps;
        Ok(())
    }

    fn restore(&mut self, state: &EngineState) -> Result<()> {
        let shared = self.team.state();
        for numbers in [&state.params, &state.m, &state.v] {
            shared.flow.check_params(numbers)?;
        }
        shared.optimiser.restore(state);
        self.ledger.restart(state.steps);
        Ok(())
    }
}
