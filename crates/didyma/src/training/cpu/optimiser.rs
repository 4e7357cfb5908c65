//! What every engine on this machine's cores does after the gradients of the chunks: sum, norm, clipping, Adam.

use super::tiles::CHUNKS;
use crate::error::{Error, Result};
use crate::network::kernel::{AdamJob, AdamStep, Real};
use crate::training::adam::AdamConfig;
use crate::training::engine::EngineState;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// Parameters that are summed and updated as one piece of work.
const BLOCK: usize = 1024;

/// Loss and gradient of one chunk.
#[derive(Debug)]
pub(super) struct ChunkSum {
    pub loss: f64,
    pub grad: Vec<f32>,
}

/// A block of parameters with its moments.
#[derive(Debug)]
struct Block {
    start: usize,
    sum: Vec<f64>,
    gradient: Vec<f32>,
    norm_squared: f64,
    weights: Vec<f32>,
    m: Vec<f32>,
    v: Vec<f32>,
}

impl Block {
    fn new(start: usize, weights: &[f32]) -> Self {
        let zeros = vec![0.0; weights.len()];
        Self {
            start,
            sum: vec![0.0; weights.len()],
            gradient: zeros.clone(),
            norm_squared: 0.0,
            weights: weights.to_vec(),
            m: zeros.clone(),
            v: zeros,
        }
    }
}

/// Parameters, moments and the gradients of the chunks, as the threads share them.
///
/// Blocks of parameters are independent pieces of work, and the chunks of each are added up in their order in f64: the
/// result is the same bytes for any number of threads. Locks are held for whole stages and never contended.
#[derive(Debug)]
pub(super) struct Optimiser {
    /// What the chunks are computed with.
    pub params: RwLock<Vec<f32>>,
    /// One for each chunk that a step can have.
    pub sums: Vec<RwLock<ChunkSum>>,
    blocks: Vec<Mutex<Block>>,
    step: RwLock<Option<AdamStep>>,
}

impl Optimiser {
    pub(super) fn new(params: Vec<f32>) -> Self {
        let sum = || ChunkSum { loss: 0.0, grad: vec![0.0; params.len()] };
        let block = |(i, weights)| Mutex::new(Block::new(i * BLOCK, weights));
        Self {
            sums: (0..CHUNKS).map(|_| RwLock::new(sum())).collect(),
            blocks: params.chunks(BLOCK).enumerate().map(block).collect(),
            params: RwLock::new(params),
            step: RwLock::new(None),
        }
    }

    /// How many blocks there are to sum and to update.
    pub(super) fn blocks(&self) -> usize {
        self.blocks.len()
    }

    /// The loss of the first `chunks` chunks.
    pub(super) fn loss(&self, chunks: usize) -> f64 {
        self.sums[..chunks].iter().map(|sum| read(sum).loss).sum()
    }

    /// Σ over the first `chunks` chunks of one block, in their order and in f64.
    pub(super) fn sum_block(&self, block: usize, chunks: usize) {
        let block = &mut *lock(&self.blocks[block]);
        block.sum.fill(0.0);
        for sum in &self.sums[..chunks] {
            let sum = read(sum);
            let grad = &sum.grad[block.start..][..block.sum.len()];
            (f32::kernels().add_to)(&mut block.sum, grad);
        }
        block.norm_squared = block.sum.iter().map(|s| s * s).sum();
        block.gradient.iter_mut().zip(&block.sum).for_each(|(g, &s)| *g = s as f32);
    }

    /// The gradient's norm, when every block is summed.
    pub(super) fn norm(&self) -> f64 {
        self.blocks.iter().map(|b| lock(b).norm_squared).sum::<f64>().sqrt()
    }

    /// The numbers of the step that [`Self::update_block`] makes.
    pub(super) fn begin_step(&self, step: AdamStep) {
        *write(&self.step) = Some(step);
    }

    /// Adam on one block.
    pub(super) fn update_block(&self, block: usize) {
        let step = read(&self.step).expect("set before the stage");
        let Block { gradient, weights, m, v, .. } = &mut *lock(&self.blocks[block]);
        (f32::kernels().adam)(AdamJob { weights, gradient, m, v, step });
    }

    /// Makes the updated blocks what the next chunks are computed with.
    pub(super) fn publish(&self) {
        let mut params = write(&self.params);
        for block in &self.blocks {
            let block = lock(block);
            params[block.start..][..block.weights.len()].copy_from_slice(&block.weights);
        }
    }

    pub(super) fn read_params(&self, to: &mut [f32]) {
        let params = read(&self.params);
        assert_eq!(to.len(), params.len(), "room for every parameter");
        to.copy_from_slice(&params);
    }

    /// Copies parameters and moments out, without the number of steps.
    pub(super) fn read_state(&self, to: &mut EngineState) {
        let EngineState { params, m, v, .. } = to;
        [&mut *params, &mut *m, &mut *v].into_iter().for_each(Vec::clear);
        for block in &self.blocks {
            let block = lock(block);
            params.extend_from_slice(&block.weights);
            m.extend_from_slice(&block.m);
            v.extend_from_slice(&block.v);
        }
    }

    /// Puts parameters and moments back, which the caller has checked to be as many.
    pub(super) fn restore(&self, state: &EngineState) {
        write(&self.params).copy_from_slice(&state.params);
        for block in &self.blocks {
            let mut block = lock(block);
            let range = block.start..block.start + block.weights.len();
            block.weights.copy_from_slice(&state.params[range.clone()]);
            block.m.copy_from_slice(&state.m[range.clone()]);
            block.v.copy_from_slice(&state.v[range]);
        }
    }
}

/// What an engine counts: steps, and their losses until they are taken.
#[derive(Debug)]
pub(super) struct Ledger {
    config: AdamConfig,
    pub steps: u64,
    losses: (f64, u64),
}

impl Ledger {
    pub(super) fn new(config: AdamConfig) -> Result<Self> {
        config.check()?;
        Ok(Self { config, steps: 0, losses: (0.0, 0) })
    }

    /// This value of the step at hand, unless it is no number.
    pub(super) fn finite(&self, what: &'static str, value: f64) -> Result<f64> {
        match value.is_finite() {
            true => Ok(value),
            false => Err(Error::Diverged { what, value, step: self.steps + 1 }),
        }
    }

    /// Counts a step whose gradient has this norm; returns Adam's numbers for it.
    pub(super) fn next_step(&mut self, learning_rate: f64, norm: f64) -> Result<AdamStep> {
        self.finite("gradient norm", norm)?;
        self.steps += 1;
        Ok(self.config.numbers(self.steps, learning_rate, norm))
    }

    pub(super) fn add_loss(&mut self, loss: f64) {
        self.losses = (self.losses.0 + loss, self.losses.1 + 1);
    }

    pub(super) fn take_loss(&mut self) -> f64 {
        let (sum, steps) = std::mem::take(&mut self.losses);
        sum / steps as f64
    }

    /// Goes on after this many steps, with no loss to be taken.
    pub(super) fn restart(&mut self, steps: u64) {
        self.steps = steps;
        self.losses = (0.0, 0);
    }
}

// A lock is poisoned only by a panic, which ends the run anyway.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
pub(super) fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}
pub(super) fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}
