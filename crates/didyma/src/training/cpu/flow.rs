//! The loss of a flow: a plan's groups, reduced from the log-densities of their pairs.

use super::engine::TeamEngine;
use super::optimiser::lock;
use super::shared::{Job, Loss};
use super::tiles::{TILE, Tile};
use crate::density::Dataset;
use crate::density::flow::{Gradient, SplineFlow, Tape};
use crate::error::Result;
use crate::network::kernel::Real;
use crate::training::adam::AdamConfig;
use crate::training::estimator::{Plan, reduce};

/// Trains a flow on all cores; the result is the same bytes for any number of threads.
///
/// ```
/// use didyma::estimator::Plan;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::training::{AdamConfig, CpuEngine, Engine};
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
pub type CpuEngine = TeamEngine<FlowLoss>;

impl CpuEngine {
    /// An engine of `threads` threads for this flow, from these parameters, on this dataset.
    pub fn new(
        flow: SplineFlow,
        params: Vec<f32>,
        data: &Dataset,
        config: AdamConfig,
        threads: usize,
    ) -> Result<Self> {
        flow.check_pairs(data.theta(), data.x())?;
        Self::of(FlowLoss { flow, data: data.clone() }, params, config, threads)
    }
}

/// The loss of a flow on a dataset.
#[derive(Debug)]
pub struct FlowLoss {
    flow: SplineFlow,
    data: Dataset,
}

/// Memory of one thread.
#[derive(Debug)]
pub struct FlowMemory {
    tape: Tape<f32>,
    log_g: Vec<f64>,
    d_log_q: Vec<f64>,
    weights: Vec<f32>,
}

impl FlowLoss {
    /// Log-densities of a tile's pairs, into the tape.
    fn forward(&self, job: &Job, params: &[f32], tape: &mut Tape<f32>, tile: &Tile) {
        let plan = &job.plan;
        tape.clear();
        match tile {
            Tile::Whole(groups) => {
                for group in &plan.groups()[groups.clone()] {
                    self.gather(tape, group.context, plan.atoms(group));
                }
            }
            Tile::Part { group, atoms, .. } => {
                let group = &plan.groups()[*group];
                self.gather(tape, group.context, &plan.atoms(group)[atoms.clone()]);
            }
        }
        self.flow.forward(params, tape);
    }

    fn gather(&self, tape: &mut Tape<f32>, context: u32, atoms: &[u32]) {
        let (theta, x) = (self.data.theta(), self.data.x());
        tape.context(x.row(context as usize).iter().copied());
        for &atom in atoms {
            tape.pair(theta.row(atom as usize).iter().copied());
        }
    }

    /// Loss of a tile whose log-densities are known; leaves the weights of its pairs in the memory.
    fn reduce_tile(&self, job: &Job, memory: &mut FlowMemory, tile: &Tile) -> f64 {
        let FlowMemory { tape, log_g, d_log_q, weights } = memory;
        weights.clear();
        let groups = match tile {
            Tile::Whole(groups) => &job.plan.groups()[groups.clone()],
            Tile::Part { slot, .. } => {
                weights.extend(lock(&job.slots[*slot]).iter().map(|&w| single(w)));
                return 0.0;
            }
        };
        let (mut loss, mut done) = (0.0, 0);
        for group in groups {
            let log_q = &tape.log_q()[done..][..group.pairs()];
            let pairs = log_q.iter().zip(job.plan.atoms(group));
            log_g.clear();
            log_g.extend(pairs.map(|(l, &atom)| l.f64() - self.data.log_prior()[atom as usize]));
            d_log_q.resize(group.pairs(), 0.0);
            loss += reduce(&job.plan, group, log_q[0].f64(), log_g, d_log_q);
            weights.extend(d_log_q.iter().map(|&d| single(d)));
            done += group.pairs();
        }
        loss
    }
}

impl Loss for FlowLoss {
    type Memory = FlowMemory;

    fn memory(&self) -> FlowMemory {
        FlowMemory {
            tape: Tape::new(&self.flow, TILE),
            log_g: Vec::with_capacity(TILE),
            d_log_q: Vec::with_capacity(TILE),
            weights: Vec::with_capacity(TILE),
        }
    }

    fn check_params(&self, params: &[f32]) -> Result<()> {
        self.flow.check_params(params)
    }

    fn check_plan(&self, plan: &Plan) -> Result<()> {
        plan.check(self.data.len())
    }

    fn loss(
        &self,
        job: &Job,
        params: &[f32],
        memory: &mut FlowMemory,
        tile: usize,
        _: usize,
    ) -> f64 {
        let tile = &job.tiles.tiles[tile];
        if matches!(tile, Tile::Part { .. }) {
            return 0.0; // reduced beforehand
        }
        self.forward(job, params, &mut memory.tape, tile);
        self.reduce_tile(job, memory, tile)
    }

    fn gradient(
        &self,
        job: &Job,
        params: &[f32],
        memory: &mut FlowMemory,
        tile: usize,
        gradient: Gradient<'_, f32>,
    ) -> f64 {
        let tile = &job.tiles.tiles[tile];
        self.forward(job, params, &mut memory.tape, tile);
        let loss = self.reduce_tile(job, memory, tile);
        self.flow.backward(params, &mut memory.tape, &memory.weights, gradient);
        loss
    }

    /// Log-densities of one part of a split group, into its slot.
    fn part(&self, job: &Job, params: &[f32], memory: &mut FlowMemory, tile: usize) {
        let tile = &job.tiles.tiles[tile];
        let Tile::Part { slot, .. } = tile else { return };
        self.forward(job, params, &mut memory.tape, tile);
        let mut log_q = lock(&job.slots[*slot]);
        log_q.clear();
        log_q.extend(memory.tape.log_q().iter().map(|l| l.f64()));
    }

    /// Reduces the split groups over all their parts; the slots then hold weights.
    fn reduce_parts(&self, job: &mut Job) -> f64 {
        let Job { plan, tiles, slots, whole: (log_g, d_log_q), .. } = job;
        let mut loss = 0.0;
        for (number, group) in plan.groups().iter().enumerate().filter(|(_, g)| g.pairs() > TILE) {
            let parts = || tiles.slots(number).map(|slot| &slots[slot]);
            log_g.clear();
            parts().for_each(|part| log_g.extend_from_slice(&lock(part)));
            let log_q0 = log_g[0];
            for (u, &atom) in log_g.iter_mut().zip(plan.atoms(group)) {
                *u -= self.data.log_prior()[atom as usize];
            }
            d_log_q.resize(log_g.len(), 0.0);
            loss += reduce(plan, group, log_q0, log_g, d_log_q);
            let mut weights = d_log_q.iter();
            for part in parts() {
                lock(part).iter_mut().zip(&mut weights).for_each(|(to, &w)| *to = w);
            }
        }
        loss
    }
}

/// A pair's weight in the loss, in single precision. One that changes no digit of a gradient is 0: it would go back
/// through the flow as subnormal numbers, of which each costs some CPUs a hundred cycles.
fn single(weight: f64) -> f32 {
    const NEGLIGIBLE: f64 = 1e-18;
    if weight.abs() < NEGLIGIBLE { 0.0 } else { weight as f32 }
}
