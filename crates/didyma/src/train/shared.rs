//! What the threads of the CPU engine share, and their work in each stage of a step.

use super::optimiser::{Optimiser, lock, read, write};
use super::tiles::{TILE, Tile, Tiles};
use crate::dataset::Dataset;
use crate::estimator::{Plan, reduce};
use crate::flow::{Gradient, SplineFlow, Tape};
use crate::kernel::Real;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

/// What all threads see. Locks are held for whole stages and never contended.
#[derive(Debug)]
pub(super) struct Shared {
    pub flow: SplineFlow,
    pub data: Dataset,
    pub optimiser: Optimiser,
    pub job: RwLock<Job>,
    members: Vec<Mutex<Member>>,
    pub next: AtomicUsize,
}

/// The step at hand.
#[derive(Debug, Default)]
pub(super) struct Job {
    pub plan: Plan,
    pub tiles: Tiles,
    /// Log-densities of the parts of split groups, then their weights.
    pub parts: Vec<Mutex<Vec<f64>>>,
    /// Scratch for reducing a split group: log g and the weights of all its atoms.
    whole: (Vec<f64>, Vec<f64>),
}

/// What one thread works with.
#[derive(Debug)]
struct Member {
    tape: Tape<f32>,
    log_g: Vec<f64>,
    d_log_q: Vec<f64>,
    weights: Vec<f32>,
}

/// What the team can be asked to do.
#[derive(Clone, Copy)]
pub(super) enum Stage {
    /// Log-densities of the parts of split groups.
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
    pub const ALL: [Self; 5] = [Self::Parts, Self::Loss, Self::Gradient, Self::Sum, Self::Update];
}

impl Shared {
    pub fn new(flow: SplineFlow, params: Vec<f32>, data: Dataset, threads: usize) -> Self {
        let member = || Member {
            tape: Tape::new(&flow, TILE),
            log_g: Vec::with_capacity(TILE),
            d_log_q: Vec::with_capacity(TILE),
            weights: Vec::with_capacity(TILE),
        };
        Self {
            members: (0..threads).map(|_| Mutex::new(member())).collect(),
            optimiser: Optimiser::new(params),
            job: RwLock::default(),
            next: AtomicUsize::new(0),
            flow,
            data,
        }
    }

    /// One member's share of a stage: it takes pieces of work until none is left.
    pub fn work(&self, member: usize, stage: Stage) {
        let (job, params) = (read(&self.job), read(&self.optimiser.params));
        let member = &mut *lock(&self.members[member]);
        let count = match stage {
            Stage::Parts => job.tiles.tiles.len(),
            Stage::Loss | Stage::Gradient => job.tiles.chunks.len(),
            Stage::Sum | Stage::Update => self.optimiser.blocks(),
        };
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            match stage {
                Stage::Parts => self.part(&job, &params, member, &job.tiles.tiles[i]),
                Stage::Loss => self.chunk(&job, &params, member, job.tiles.order[i], false),
                Stage::Gradient => self.chunk(&job, &params, member, job.tiles.order[i], true),
                Stage::Sum => self.optimiser.sum_block(i, job.tiles.chunks.len()),
                Stage::Update => self.optimiser.update_block(i),
            }
        }
    }

    fn chunk(&self, job: &Job, params: &[f32], member: &mut Member, chunk: usize, gradient: bool) {
        let sum = &mut *write(&self.optimiser.sums[chunk]);
        sum.loss = 0.0;
        for (i, tile) in job.tiles.tiles[job.tiles.chunks[chunk].clone()].iter().enumerate() {
            if matches!(tile, Tile::Part { .. }) && !gradient {
                continue; // its loss was reduced beforehand
            }
            self.gather(job, &mut member.tape, tile);
            self.flow.forward(params, &mut member.tape);
            sum.loss += self.reduce_tile(job, member, tile);
            if gradient {
                let gradient = Gradient { sum: &mut sum.grad, accumulate: i > 0 };
                self.flow.backward(params, &mut member.tape, &member.weights, gradient);
            }
        }
    }

    fn gather(&self, job: &Job, tape: &mut Tape<f32>, tile: &Tile) {
        let plan = &job.plan;
        tape.clear();
        match tile {
            Tile::Whole(groups) => {
                for group in &plan.groups()[groups.clone()] {
                    self.gather_group(tape, group.context, plan.atoms(group));
                }
            }
            Tile::Part { group, atoms, .. } => {
                let group = &plan.groups()[*group];
                self.gather_group(tape, group.context, &plan.atoms(group)[atoms.clone()]);
            }
        }
    }

    fn gather_group(&self, tape: &mut Tape<f32>, context: u32, atoms: &[u32]) {
        let (theta, x) = (self.data.theta(), self.data.x());
        tape.context(x.row(context as usize).iter().copied());
        for &atom in atoms {
            tape.pair(theta.row(atom as usize).iter().copied());
        }
    }

    /// Loss of a tile whose log-densities are known; leaves the weights of its pairs in the member.
    fn reduce_tile(&self, job: &Job, member: &mut Member, tile: &Tile) -> f64 {
        let Member { tape, log_g, d_log_q, weights } = member;
        weights.clear();
        let groups = match tile {
            Tile::Whole(groups) => &job.plan.groups()[groups.clone()],
            Tile::Part { slot, .. } => {
                weights.extend(lock(&job.parts[*slot]).iter().map(|&w| single(w)));
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

    /// Log-densities of one part of a split group, into its slot.
    fn part(&self, job: &Job, params: &[f32], member: &mut Member, tile: &Tile) {
        let Tile::Part { slot, .. } = tile else { return };
        self.gather(job, &mut member.tape, tile);
        self.flow.forward(params, &mut member.tape);
        let mut log_q = lock(&job.parts[*slot]);
        log_q.clear();
        log_q.extend(member.tape.log_q().iter().map(|l| l.f64()));
    }

    /// Reduces the split groups over all their parts; the slots then hold weights. Returns the loss.
    pub fn reduce_parts(&self) -> f64 {
        let Job { plan, tiles, parts, whole: (log_g, d_log_q), .. } = &mut *write(&self.job);
        let mut loss = 0.0;
        for (number, group) in plan.groups().iter().enumerate().filter(|(_, g)| g.pairs() > TILE) {
            let slots = || tiles.slots(number).map(|slot| &parts[slot]);
            log_g.clear();
            slots().for_each(|slot| log_g.extend_from_slice(&lock(slot)));
            let log_q0 = log_g[0];
            for (u, &atom) in log_g.iter_mut().zip(plan.atoms(group)) {
                *u -= self.data.log_prior()[atom as usize];
            }
            d_log_q.resize(log_g.len(), 0.0);
            loss += reduce(plan, group, log_q0, log_g, d_log_q);
            let mut weights = d_log_q.iter();
            for slot in slots() {
                lock(slot).iter_mut().zip(&mut weights).for_each(|(to, &w)| *to = w);
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
