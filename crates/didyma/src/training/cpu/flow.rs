//! The loss of a flow: a plan's groups, reduced from the log-densities of their pairs.

use super::engine::TeamEngine;
use super::optimiser::lock;
use super::shared::{Job, Loss};
use super::tiles::{TILE, Tile};
use crate::density::Dataset;
use crate::density::flow::{Gradient, SplineFlow, Tape};
use crate::error::Result;
use crate::network::kernel::{Real, whole_lanes};
use crate::training::adam::AdamConfig;
use crate::training::estimator::{Plan, Thinning, reduce};
use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

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
        flow.check_dims(data.theta(), data.x())?;
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
        for (context, atoms) in tile.runs(plan) {
            self.gather(tape, context, atoms.iter().copied());
        }
        self.flow.forward(params, tape);
    }

    /// Log-densities of a tile's pairs whose weights are not 0, into the tape; the other weights are taken out.
    fn forward_kept(&self, job: &Job, params: &[f32], memory: &mut FlowMemory, tile: &Tile) {
        let FlowMemory { tape, weights, .. } = memory;
        tape.clear();
        let mut done = 0;
        for (context, atoms) in tile.runs(&job.plan) {
            let kept = atoms.iter().zip(&weights[done..]).filter(|(_, w)| **w != 0.0);
            self.gather(tape, context, kept.map(|(&atom, _)| atom));
            done += atoms.len();
        }
        weights.retain(|w| *w != 0.0);
        self.flow.forward(params, tape);
    }

    /// Adds a group's pairs to the tape, if it has any.
    fn gather(&self, tape: &mut Tape<f32>, context: u32, atoms: impl Iterator<Item = u32>) {
        let (theta, x) = (self.data.theta(), self.data.x());
        let mut atoms = atoms.peekable();
        if atoms.peek().is_some() {
            tape.context(x.row(context as usize).iter().copied());
        }
        for atom in atoms {
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
        plan.check(self.data.len(), self.data.x().len())
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
        let number = tile as u64;
        let tile = &job.tiles.tiles[tile];
        // The weights of a part are known: its log-densities came first.
        let part = matches!(tile, Tile::Part { .. });
        if !part {
            self.forward(job, params, &mut memory.tape, tile);
        }
        let loss = self.reduce_tile(job, memory, tile);
        let thinning = job.plan.thinning();
        match thinning.and_then(|thinning| thin(&mut memory.weights, thinning, number)) {
            None if part => self.forward(job, params, &mut memory.tape, tile),
            None => {}
            Some(0) => {
                if !gradient.accumulate {
                    gradient.sum.fill(0.0);
                }
                return loss;
            }
            Some(_) => self.forward_kept(job, params, memory, tile),
        }
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

/// Thins a tile: sets the weights of the pairs that are left out to 0, and returns how many are kept. `None` if so many would
/// be kept that another forward pass is not worth it; the weights are then unchanged.
///
/// The expected number decides. The number that was drawn would bias the gradient: tiles would be thinned when few are kept.
fn thin(weights: &mut [f32], Thinning { below, seed }: Thinning, tile: u64) -> Option<usize> {
    let chance = |weight: f32| (f64::from(weight.abs()) / below).min(1.0);
    let expected: f64 = weights.iter().map(|&weight| chance(weight)).sum();
    if 3 * whole_lanes(expected.ceil() as usize) > 2 * whole_lanes(weights.len()) {
        return None;
    }
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(seed.wrapping_add(tile));
    for weight in &mut *weights {
        let chance = chance(*weight);
        if chance < 1.0 {
            let kept = rng.random::<f64>() < chance;
            *weight = if kept { below.copysign(f64::from(*weight)) as f32 } else { 0.0 };
        }
    }
    Some(weights.iter().filter(|&&weight| weight != 0.0).count())
}

/// A pair's weight in the loss, in single precision. One that changes no digit of a gradient is 0: it would go back
/// through the flow as subnormal numbers, of which each costs some CPUs a hundred cycles.
fn single(weight: f64) -> f32 {
    const NEGLIGIBLE: f64 = 1e-18;
    if weight.abs() < NEGLIGIBLE { 0.0 } else { weight as f32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::density::flow::FlowConfig;
    use crate::rng::{Purpose, Streams};
    use crate::rows::Rows;

    /// A flow on the plane, thirty rows, and a plan of two inclusive groups with an antithetic difference each.
    fn problem() -> (FlowLoss, Vec<f32>, Plan) {
        let mut rng = Streams::new(1).stream(Purpose::Synthetic, 0, 0);
        let mut numbers = |count| (0..count).map(|_| rng.random::<f32>() * 4.0 - 2.0).collect();
        let (theta, x): (Vec<f32>, Vec<f32>) = (numbers(60), numbers(30));
        let rows = |name, values| Rows::new(name, values, if name == "x" { 1 } else { 2 }).unwrap();
        let data = Dataset::new(rows("theta", &theta), rows("x", &x), &[0.0; 30]).unwrap();
        let flow = SplineFlow::new(FlowConfig { layers: 2, ..FlowConfig::new(2, 1) }).unwrap();
        let mut weights = Streams::new(1).stream(Purpose::Weights, 0, 0);
        let params = flow.initial_params(&mut weights);
        let mut plan = Plan::default();
        for row in [0, 15] {
            let atoms = [row].into_iter().chain((1..15).map(|i| (row + i) % 30));
            plan.group(row, atoms).share_first().own(0.5).log_mean_exp(0.5);
            plan.last().antithetic_difference(0.5);
        }
        (FlowLoss { flow, data }, params, plan)
    }

    /// Loss and gradient of a plan that is one tile.
    fn gradient(loss: &FlowLoss, params: &[f32], plan: &Plan) -> (f64, Vec<f32>) {
        let (mut job, mut memory) = (Job::default(), loss.memory());
        job.take(plan, 0);
        assert_eq!(job.tiles.tiles.len(), 1);
        let mut sum = vec![f32::NAN; params.len()];
        let into = Gradient { sum: &mut sum, accumulate: false };
        (loss.gradient(&job, params, &mut memory, 0, into), sum)
    }

    /// The mean over many seeds is the gradient of all pairs, in every parameter; the loss is that of all pairs each time.
    #[test]
    fn a_thinned_gradient_has_no_bias() {
        let (loss, params, mut plan) = problem();
        let (value, all) = gradient(&loss, &params, &plan);
        let seeds = 2000;
        let (mut sum, mut squares) = (vec![0.0; params.len()], vec![0.0; params.len()]);
        for seed in 0..seeds {
            plan.thin(Thinning { below: 0.2, seed });
            let (thinned, some) = gradient(&loss, &params, &plan);
            assert_eq!(thinned, value);
            for ((sum, square), &g) in sum.iter_mut().zip(&mut squares).zip(&some) {
                *sum += f64::from(g);
                *square += f64::from(g).powi(2);
            }
        }
        let n = seeds as f64;
        let mut varied = 0;
        for ((sum, square), &exact) in sum.iter().zip(&squares).zip(&all) {
            let (mean, exact) = (sum / n, f64::from(exact));
            let error = ((square / n - mean * mean).max(0.0) / n).sqrt();
            varied += usize::from(error > 1e-3 * exact.abs());
            // 5 standard errors for a few thousand parameters, and the rounding of f32 over 30 pairs.
            assert!((mean - exact).abs() <= 5.0 * error + 1e-5, "{mean}, not {exact} ± {error}");
        }
        assert!(varied > params.len() / 2, "thinning left out too little to tell");
    }

    /// Pairs are kept by their probabilities, the heavy ones always and unchanged; a tile that keeps most is left as it is.
    #[test]
    fn pairs_are_kept_by_their_weight() {
        let weights = [0.5f32, -0.02, 0.01, 0.0, -0.3, 0.03, 0.04];
        let weights: Vec<f32> = weights.into_iter().chain([0.0; 41]).collect();
        let below = 0.1;
        let seeds = 4000;
        let mut kept = [0; 7];
        for seed in 0..seeds {
            let mut thinned = weights.clone();
            assert!(thin(&mut thinned, Thinning { below, seed }, 3).is_some());
            for (i, (&before, &after)) in weights.iter().zip(&thinned).enumerate() {
                let expected = if before.abs() < 0.1 { 0.1f32.copysign(before) } else { before };
                assert!(after == 0.0 || after == expected);
                kept[i.min(6)] += u32::from(after != 0.0);
            }
        }
        for (count, weight) in kept.iter().zip(weights) {
            // 4.5 deviations of a binomial count.
            let chance = f64::from(weight.abs() / 0.1).min(1.0);
            let deviation = (chance * (1.0 - chance) * seeds as f64).sqrt();
            assert!((f64::from(*count) - chance * seeds as f64).abs() <= 4.5 * deviation + 1e-3);
        }
        let mut even = vec![0.09f32; 48];
        assert_eq!(thin(&mut even, Thinning { below, seed: 1 }, 0), None);
        assert!(even.iter().all(|&weight| weight == 0.09));
        let mut none = vec![0.0f32; 48];
        assert_eq!(thin(&mut none, Thinning { below, seed: 1 }, 0), Some(0));
    }

    /// A tile without any weight leaves 0, or the sum of the tiles before it.
    #[test]
    fn a_tile_that_keeps_nothing_adds_nothing() {
        let (loss, params, _) = problem();
        let mut plan = Plan::default();
        plan.group(0, (0..30).chain(0..18)).log_mean_exp(0.0);
        plan.thin(Thinning { below: 0.1, seed: 1 });
        let (mut job, mut memory) = (Job::default(), loss.memory());
        job.take(&plan, 0);
        for (accumulate, before, after) in [(false, f32::NAN, 0.0), (true, 2.0, 2.0)] {
            let mut sum = vec![before; params.len()];
            loss.gradient(&job, &params, &mut memory, 0, Gradient { sum: &mut sum, accumulate });
            assert!(sum.iter().all(|&g| g == after));
        }
    }
}
