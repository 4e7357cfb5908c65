//! State that the threads of an engine share, and their work in each stage of a step.

use super::optimiser::{Optimiser, lock, read, write};
use super::tiles::{TILE, Tiles};
use crate::density::flow::Gradient;
use crate::error::Result;
use crate::training::estimator::Plan;
use std::fmt::Debug;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

/// A model's loss on a dataset, computed tile by tile.
pub trait Loss: Debug + Send + Sync + 'static {
    /// Memory of one thread.
    type Memory: Debug + Send;

    /// Memory for one thread, as large as any tile needs.
    fn memory(&self) -> Self::Memory;

    /// Refuses parameters of another model, and numbers that are not finite.
    fn check_params(&self, params: &[f32]) -> Result<()>;

    /// Refuses rows outside the dataset, and groups that the model has no loss for.
    fn check_plan(&self, plan: &Plan) -> Result<()>;

    /// Times that an evaluation goes through each tile.
    fn repeats(&self) -> usize {
        1
    }

    /// A tile's share of the plan's loss in one of these times.
    fn loss(
        &self,
        job: &Job,
        params: &[f32],
        memory: &mut Self::Memory,
        tile: usize,
        repeat: usize,
    ) -> f64;

    /// A tile's share of the plan's loss, and its gradient.
    fn gradient(
        &self,
        job: &Job,
        params: &[f32],
        memory: &mut Self::Memory,
        tile: usize,
        gradient: Gradient<'_, f32>,
    ) -> f64;

    /// Prepares a tile that is a part of a split group, for [`Loss::reduce_parts`].
    fn part(&self, _: &Job, _: &[f32], _: &mut Self::Memory, _: usize) {}

    /// The loss of the split groups, when all their parts are prepared.
    fn reduce_parts(&self, _: &mut Job) -> f64 {
        0.0
    }
}

/// The plan at hand.
#[derive(Debug, Default)]
pub struct Job {
    pub(super) plan: Plan,
    pub(super) tiles: Tiles,
    /// One slot for each part of a split group: log-densities, then weights.
    pub(super) slots: Vec<Mutex<Vec<f64>>>,
    /// Scratch for reducing a split group: log g and the weights of all its atoms.
    pub(super) whole: (Vec<f64>, Vec<f64>),
    /// Steps that were taken before.
    pub(super) steps: u64,
}

impl Job {
    /// Copies a plan and cuts it into tiles; true if groups are split.
    pub(super) fn take(&mut self, plan: &Plan, steps: u64) -> bool {
        self.steps = steps;
        self.plan.copy_from(plan);
        self.tiles.cut(plan);
        while self.slots.len() < self.tiles.parts {
            self.slots.push(Mutex::new(Vec::with_capacity(TILE)));
        }
        self.tiles.parts > 0
    }
}

/// State that all threads see. Locks are held for whole stages and never contended.
#[derive(Debug)]
pub(super) struct Shared<L: Loss> {
    pub loss: L,
    pub optimiser: Optimiser,
    pub job: RwLock<Job>,
    members: Vec<Mutex<L::Memory>>,
    pub next: AtomicUsize,
}

/// A piece of a step that the team does together.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// Prepares the parts of split groups.
    Parts,
    /// Loss of every chunk.
    Loss,
    /// Loss and gradient of every chunk.
    Gradient,
    /// Adds up the chunks, block by block.
    Sum,
    /// Adam, block by block.
    Update,
}

impl Stage {
    pub(super) const ALL: [Self; 5] =
        [Self::Parts, Self::Loss, Self::Gradient, Self::Sum, Self::Update];
}

impl<L: Loss> Shared<L> {
    pub(super) fn new(loss: L, params: Vec<f32>, threads: usize) -> Self {
        Self {
            members: (0..threads).map(|_| Mutex::new(loss.memory())).collect(),
            loss,
            optimiser: Optimiser::new(params),
            job: RwLock::default(),
            next: AtomicUsize::new(0),
        }
    }

    /// One member's share of a stage: it takes pieces of work until none is left.
    pub(super) fn work(&self, member: usize, stage: Stage) {
        let (job, params) = (read(&self.job), read(&self.optimiser.params));
        let memory = &mut *lock(&self.members[member]);
        let Tiles { tiles, chunks, order, .. } = &job.tiles;
        let count = match stage {
            Stage::Parts => tiles.len(),
            Stage::Loss | Stage::Gradient => chunks.len(),
            Stage::Sum | Stage::Update => self.optimiser.blocks(),
        };
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            match stage {
                Stage::Parts => self.loss.part(&job, &params, memory, i),
                Stage::Loss => self.chunk_loss(&job, &params, memory, order[i]),
                Stage::Gradient => self.chunk_gradient(&job, &params, memory, order[i]),
                Stage::Sum => self.optimiser.sum_block(i, chunks.len()),
                Stage::Update => self.optimiser.update_block(i),
            }
        }
    }

    fn chunk_loss(&self, job: &Job, params: &[f32], memory: &mut L::Memory, chunk: usize) {
        let sum = &mut *write(&self.optimiser.sums[chunk]);
        sum.loss = 0.0;
        for tile in job.tiles.chunks[chunk].clone() {
            for repeat in 0..self.loss.repeats() {
                sum.loss += self.loss.loss(job, params, memory, tile, repeat);
            }
        }
    }

    fn chunk_gradient(&self, job: &Job, params: &[f32], memory: &mut L::Memory, chunk: usize) {
        let sum = &mut *write(&self.optimiser.sums[chunk]);
        sum.loss = 0.0;
        for (i, tile) in job.tiles.chunks[chunk].clone().enumerate() {
            let gradient = Gradient { sum: &mut sum.grad, accumulate: i > 0 };
            sum.loss += self.loss.gradient(job, params, memory, tile, gradient);
        }
    }
}
