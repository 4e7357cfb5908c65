//! A trained flow and the simulations of its run, as a problem whose levels can be measured.

use super::{Evaluated, Objective};
use crate::density::Dataset;
use crate::density::flow::{Gradient, SplineFlow, Tape};
use crate::error::Result;
use crate::network::kernel::{PANEL, Real};
use crate::parallel;
use crate::rng::Stream;
use crate::training::estimator::{Draws, Group, Plan, Replacement, Source, reduce};
use crate::training::reservoir::{InnerSource, Reservoir};
use rand::RngExt;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Pairs of one tile: a block of 256 inner samples and the outer one go through the flow at once.
const TILE: usize = 5 * PANEL;
/// Queries that a thread is given at a time: enough that starting it does not matter.
const QUERIES_OF_A_THREAD: usize = 4;

/// A flow at given parameters, with the dataset that outer and inner samples are drawn from: all rows are the pool,
/// no row comes twice in a block, and the gradient is the one in the parameters of the flow. Inner samples may have
/// another law.
///
/// ```
/// use didyma::levels::{LevelStudy, TrainedFlow};
/// use didyma::estimator::{Method, Settings};
/// use didyma::rng::{Purpose, Streams};
/// use didyma::{Dataset, FlowConfig, Rows, SplineFlow};
/// # fn main() -> didyma::Result<()> {
/// let theta: Vec<f32> = (0..100).map(|i| (i as f32).sin()).collect();
/// let x: Vec<f32> = theta.iter().map(|t| 0.8 * t + 0.1).collect();
/// let (rows, x) = (Rows::new("theta", &theta, 1)?, Rows::new("x", &x, 1)?);
/// let data = Dataset::new(rows, x, &[0.0; 100])?;
/// let flow = SplineFlow::new(FlowConfig { layers: 1, units: 4, ..FlowConfig::new(1, 1) })?;
/// let streams = Streams::new(1);
/// let params = flow.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
/// let mut problem = TrainedFlow::new(flow, params, data, 1)?;
/// let study =
///     LevelStudy { highest: 3, budget: 1000, ..LevelStudy::new(Settings::paper(Method::Tgrr)) };
/// let report = study.run(&mut problem, streams)?;
/// assert!(report.levels[3].second_moment_loss < report.levels[1].second_moment_loss);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct TrainedFlow {
    flow: SplineFlow,
    params: Vec<f32>,
    pub(crate) data: Dataset,
    /// The supply of inner samples, and their source.
    pub(crate) reservoir: Reservoir,
    pub(crate) inner: InnerSource,
    /// Rows that are outer samples: others have no x.
    pub(crate) outer: Vec<u32>,
    pub(crate) threads: usize,
    /// What the threads work with, between their calls.
    idle: Mutex<Vec<Worker>>,
}

/// The memory of one thread.
#[derive(Debug)]
struct Worker {
    tape: Tape<f32>,
    /// Gradient of a tile.
    gradient: Vec<f32>,
    log_q: Vec<f64>,
    log_g: Vec<f64>,
    d_log_q: Vec<f64>,
    weights: Vec<f32>,
}

impl TrainedFlow {
    /// A flow at these parameters, on this dataset. The result is the same for any number of threads.
    pub fn new(flow: SplineFlow, params: Vec<f32>, data: Dataset, threads: usize) -> Result<Self> {
        flow.check_params(&params)?;
        flow.check_dims(data.theta(), data.x())?;
        parallel::check_threads(threads)?;
        let (outer, idle) = ((0..data.x().len() as u32).collect(), Mutex::default());
        let reservoir = Reservoir::Pool;
        let inner = reservoir.source(0..data.len() as u32, Replacement::Without)?;
        Ok(Self { flow, params, data, reservoir, inner, outer, threads, idle })
    }

    /// The same flow on these outer rows, with these inner samples.
    pub(crate) fn on(self, outer: Vec<u32>, reservoir: Reservoir, inner: InnerSource) -> Self {
        Self { reservoir, inner, outer, ..self }
    }

    /// Rows that samples are drawn from.
    pub fn rows(&self) -> usize {
        self.data.len()
    }

    /// Runs `work` with memory that no other thread uses meanwhile.
    fn with_worker<T>(&self, work: impl FnOnce(&mut Worker) -> T) -> T {
        let idle = lock(&self.idle).pop();
        let mut worker = idle.unwrap_or_else(|| Worker::new(&self.flow));
        let result = work(&mut worker);
        lock(&self.idle).push(worker);
        result
    }

    /// Loss of a plan, and its gradient in place of `gradient`.
    fn evaluate_with(&self, worker: &mut Worker, plan: &Plan, gradient: &mut [f64]) -> f64 {
        let mut plan = Cow::Borrowed(plan);
        if matches!(self.reservoir, Reservoir::Normalised(_)) {
            self.reservoir.complete(plan.to_mut());
        }
        let plan = &*plan;
        gradient.fill(0.0);
        let (groups, mut next, mut loss) = (plan.groups(), 0, 0.0);
        while next < groups.len() {
            let end = next + groups_of_a_tile(&groups[next..]);
            loss += self.add_groups(worker, plan, &groups[next..end], gradient);
            next = end;
        }
        loss
    }

    /// Loss of some groups, and their gradient added to `gradient`. They fit one tile, or are a single group that does
    /// not: its log-densities come first, then its parts are gone through again with known weights.
    fn add_groups(
        &self,
        worker: &mut Worker,
        plan: &Plan,
        groups: &[Group],
        gradient: &mut [f64],
    ) -> f64 {
        let pairs: usize = groups.iter().map(Group::pairs).sum();
        let parts = (0..pairs).step_by(TILE).map(|start| start..pairs.min(start + TILE));
        worker.log_q.clear();
        for part in parts.clone() {
            self.forward(&mut worker.tape, plan, groups, &part);
            worker.log_q.extend(worker.tape.log_q().iter().map(|l| l.f64()));
        }
        let loss = worker.reduce(plan, groups, self.data.log_prior());
        for part in parts {
            if pairs > TILE {
                self.forward(&mut worker.tape, plan, groups, &part);
            }
            let Worker { tape, gradient: sum, weights, .. } = worker;
            let to = Gradient { sum, accumulate: false };
            self.flow.backward(&self.params, tape, &weights[part], to);
            (f32::kernels().add_to)(gradient, sum);
        }
        loss
    }

    /// Log-densities of a part of the pairs of some groups, which is all of them unless there is one group.
    fn forward(&self, tape: &mut Tape<f32>, plan: &Plan, groups: &[Group], part: &Range<usize>) {
        let (theta, x) = (self.data.theta(), self.data.x());
        tape.clear();
        for group in groups {
            let atoms = plan.atoms(group);
            let atoms = if groups.len() == 1 { &atoms[part.clone()] } else { atoms };
            tape.context(x.row(group.context as usize).iter().copied());
            for &atom in atoms {
                tape.pair(theta.row(atom as usize).iter().copied());
            }
        }
        self.flow.forward(&self.params, tape);
    }
}

/// How many of the next groups go through the flow together: as many as fit, and at least one.
fn groups_of_a_tile(groups: &[Group]) -> usize {
    let mut pairs = 0;
    let fit = groups.iter().take(Tape::<f32>::CONTEXTS).take_while(|group| {
        pairs += group.pairs();
        pairs <= TILE
    });
    fit.count().max(1)
}

impl Worker {
    fn new(flow: &SplineFlow) -> Self {
        Self {
            tape: Tape::new(flow, TILE),
            gradient: vec![0.0; flow.params_len()],
            log_q: Vec::new(),
            log_g: Vec::new(),
            d_log_q: Vec::new(),
            weights: Vec::new(),
        }
    }

    /// Loss of groups whose log-densities are known; leaves the weights of their pairs.
    fn reduce(&mut self, plan: &Plan, groups: &[Group], log_prior: &[f64]) -> f64 {
        let Self { log_q, log_g, d_log_q, weights, .. } = self;
        weights.clear();
        let mut loss = 0.0;
        for group in groups {
            let log_q = &log_q[weights.len()..][..group.pairs()];
            let pairs = log_q.iter().zip(plan.atoms(group));
            log_g.clear();
            log_g.extend(pairs.map(|(l, &atom)| l - log_prior[atom as usize]));
            d_log_q.resize(group.pairs(), 0.0);
            loss += reduce(plan, group, log_q[0], log_g, d_log_q);
            weights.extend(d_log_q.iter().map(|&d| d as f32));
        }
        loss
    }
}

impl Source for TrainedFlow {
    fn largest_block(&self) -> usize {
        self.inner.largest_block()
    }

    fn draw(&mut self, own: u32, count: usize, rng: &mut Stream, draws: &mut Draws) {
        self.inner.draw(own, count, rng, draws);
    }

    fn outer_log_weight(&self, own: u32) -> f64 {
        self.inner.outer_log_weight(own)
    }
}

impl Objective for TrainedFlow {
    fn evaluations(&self) -> f64 {
        // The normaliser has the same samples again.
        if matches!(self.reservoir, Reservoir::Normalised(_)) { 2.0 } else { 1.0 }
    }

    fn gradient_len(&self) -> usize {
        self.params.len()
    }

    fn outer(&mut self, queries: usize, rng: &mut Stream, rows: &mut Vec<u32>) {
        let all = self.outer.len();
        rows.clear();
        rows.extend((0..queries).map(|_| self.outer[rng.random_range(0..all)]));
    }

    fn evaluate(&mut self, plan: &Plan, gradient: &mut [f64]) -> Result<f64> {
        plan.check(self.data.len(), self.data.x().len())?;
        Ok(self.with_worker(|worker| self.evaluate_with(worker, plan, gradient)))
    }

    fn at_once(&self) -> usize {
        QUERIES_OF_A_THREAD * self.threads
    }

    fn evaluate_all(&mut self, plans: &[Plan], found: &mut [Evaluated]) -> Result<()> {
        plans.iter().try_for_each(|plan| plan.check(self.data.len(), self.data.x().len()))?;
        let found: Vec<_> = found.iter_mut().map(Mutex::new).collect();
        parallel::map(plans.len().min(found.len()), self.threads, |i| {
            let found = &mut **lock(&found[i]);
            self.with_worker(|worker| {
                found.loss = self.evaluate_with(worker, &plans[i], &mut found.gradient);
            });
        });
        Ok(())
    }
}

// A lock is poisoned only by a panic, which reaches the caller anyway.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
