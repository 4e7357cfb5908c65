//! The engine that trains a score network on the cores of this machine.

use super::adam::AdamConfig;
use super::engine::{Engine, EngineState};
use super::noise::Noise;
use super::optimiser::{Ledger, Optimiser, lock, read, write};
use super::team::Team;
use super::tiles::{Tile, Tiles};
use crate::dataset::Dataset;
use crate::error::{Error, Result};
use crate::estimator::{Group, Plan};
use crate::flow::Gradient;
use crate::parallel;
use crate::score::{ScoreModel, TRAINED_FROM, Tape};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, RwLock};

/// Trains a score network on all cores; the result is the same bytes for any number of threads.
///
/// Its plans are those of maximum likelihood: groups of one row each, whose own weight multiplies the row's loss of
/// denoising score matching.
///
/// ```
/// use didyma::estimator::Plan;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::score::{ScoreConfig, ScoreModel};
/// use didyma::train::{AdamConfig, Engine, Noise, ScoreEngine};
/// use didyma::{Dataset, Rows};
///
/// let (theta, x) = ([0.1f32, 0.9, -0.4, 0.3], [0.2f32, 1.0, -0.5, 0.2]);
/// let data = Dataset::new(Rows::new("theta", &theta, 1)?, Rows::new("x", &x, 1)?, &[0.0; 4])?;
/// let model = ScoreModel::new(ScoreConfig { units: 32, ..ScoreConfig::new(1, 1) })?;
/// let streams = Streams::new(1);
/// let params = model.initial_params(&mut streams.stream(Purpose::Weights, 0, 0));
/// let noise = Noise { streams, round: 1, repeats: 100, fixed: true };
/// let mut engine = ScoreEngine::new(model, params, &data, AdamConfig::default(), noise, 2)?;
///
/// let mut plan = Plan::default();
/// (0..4).for_each(|row| plan.push_own(row, 0.25));
/// let before = engine.evaluate(&plan)?;
/// (0..100).try_for_each(|_| engine.step(&plan, 3e-3))?;
/// assert!(engine.evaluate(&plan)? < before);
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Debug)]
pub struct ScoreEngine {
    team: Team<Shared>,
    ledger: Ledger,
}

/// What all threads see.
#[derive(Debug)]
struct Shared {
    model: ScoreModel,
    noise: Noise,
    optimiser: Optimiser,
    job: RwLock<Job>,
    members: Vec<Mutex<Tape<f32>>>,
    next: AtomicUsize,
}

/// The data and the step at hand.
#[derive(Debug)]
struct Job {
    data: Dataset,
    plan: Plan,
    tiles: Tiles,
    /// The step's number among the addresses of streams.
    step: u64,
}

/// What the team can be asked to do.
#[derive(Clone, Copy)]
enum Stage {
    /// Loss of every chunk, over all repeats.
    Loss,
    /// Loss and gradient of every chunk.
    Gradient,
    /// Adds up the chunks, block by block.
    Sum,
    /// Adam, block by block.
    Update,
}

impl Stage {
    const ALL: [Self; 4] = [Self::Loss, Self::Gradient, Self::Sum, Self::Update];
}

impl Shared {
    /// One member's share of a stage: it takes pieces of work until none is left.
    fn work(&self, member: usize, stage: Stage) {
        let (job, params) = (read(&self.job), read(&self.optimiser.params));
        let tape = &mut *lock(&self.members[member]);
        let chunks = job.tiles.chunks.len();
        let count = match stage {
            Stage::Loss | Stage::Gradient => chunks,
            Stage::Sum | Stage::Update => self.optimiser.blocks(),
        };
        loop {
            let i = self.next.fetch_add(1, Ordering::Relaxed);
            if i >= count {
                break;
            }
            match stage {
                Stage::Loss => self.chunk_loss(&job, &params, tape, job.tiles.order[i]),
                Stage::Gradient => self.chunk_gradient(&job, &params, tape, job.tiles.order[i]),
                Stage::Sum => self.optimiser.sum_block(i, chunks),
                Stage::Update => self.optimiser.update_block(i),
            }
        }
    }

    fn chunk_loss(&self, job: &Job, params: &[f32], tape: &mut Tape<f32>, chunk: usize) {
        let sum = &mut *write(&self.optimiser.sums[chunk]);
        sum.loss = 0.0;
        for tile in job.tiles.chunks[chunk].clone() {
            for repeat in 0..self.noise.repeats {
                self.gather(job, tape, tile, repeat);
                sum.loss += self.model.loss(params, tape) / self.noise.repeats as f64;
            }
        }
    }

    fn chunk_gradient(&self, job: &Job, params: &[f32], tape: &mut Tape<f32>, chunk: usize) {
        let sum = &mut *write(&self.optimiser.sums[chunk]);
        sum.loss = 0.0;
        for (i, tile) in job.tiles.chunks[chunk].clone().enumerate() {
            self.gather(job, tape, tile, 0);
            let gradient = Gradient { sum: &mut sum.grad, accumulate: i > 0 };
            sum.loss += self.model.backward(params, tape, gradient);
        }
    }

    /// Fills the tape with the noised rows of a tile.
    fn gather(&self, job: &Job, tape: &mut Tape<f32>, tile: usize, repeat: usize) {
        let mut rng = self.noise.stream(job.step, repeat, tile);
        let Tile::Whole(groups) = &job.tiles.tiles[tile] else { return };
        tape.clear();
        for group in &job.plan.groups()[groups.clone()] {
            let atom = job.plan.atoms(group)[0] as usize;
            let theta = job.data.theta().row(atom).iter().copied();
            let x = job.data.x().row(group.context as usize).iter().copied();
            let t = TRAINED_FROM + (1.0 - TRAINED_FROM) * rng.random::<f64>();
            tape.row(theta, x, (t, || StandardNormal.sample(&mut rng)), group.own);
        }
    }
}

impl ScoreEngine {
    /// An engine of `threads` threads for this network, from these parameters, on this dataset.
    pub fn new(
        model: ScoreModel,
        params: Vec<f32>,
        data: &Dataset,
        config: AdamConfig,
        noise: Noise,
        threads: usize,
    ) -> Result<Self> {
        let ledger = Ledger::new(config)?;
        noise.check()?;
        model.check_params(&params)?;
        check_data(&model, data)?;
        parallel::check_threads(threads)?;
        let (plan, tiles) = (Plan::default(), Tiles::default());
        let shared = Shared {
            members: (0..threads).map(|_| Mutex::new(Tape::new(&model))).collect(),
            model,
            noise,
            optimiser: Optimiser::new(params),
            job: RwLock::new(Job { data: data.clone(), plan, tiles, step: 0 }),
            next: AtomicUsize::new(0),
        };
        let team = Team::new(threads, shared, |shared, member, stage| {
            shared.work(member, Stage::ALL[stage]);
        })
        .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { team, ledger })
    }

    /// Copies the plan and cuts it into tiles, for the noise of step number `step`.
    fn prepare(&self, plan: &Plan, step: u64) -> Result<()> {
        let mut job = write(&self.team.state().job);
        check_plan(plan, job.data.len())?;
        job.step = step;
        job.plan.copy_from(plan);
        let Job { plan, tiles, .. } = &mut *job;
        tiles.cut(plan);
        Ok(())
    }

    fn run(&self, stage: Stage) {
        self.team.state().next.store(0, Ordering::Relaxed);
        self.team.run(stage as usize);
    }

    fn chunk_losses(&self) -> Result<f64> {
        let shared = self.team.state();
        let chunks = read(&shared.job).tiles.chunks.len();
        self.ledger.finite("loss", shared.optimiser.loss(chunks))
    }
}

fn check_data(model: &ScoreModel, data: &Dataset) -> Result<()> {
    data.theta().expect_columns(model.config().theta_dim, "theta_dim of the score network")?;
    data.x().expect_columns(model.config().x_dim, "x_dim of the score network")
}

/// Refuses rows that are not there, and groups of more than one row's own term: a score network has no density to compare
/// atoms by.
fn check_plan(plan: &Plan, rows: usize) -> Result<()> {
    plan.check(rows)?;
    let is_own = |group: &&Group| group.pairs() == 1 && plan.terms(group).is_empty();
    match plan.groups().iter().find(|group| !is_own(group)) {
        None => Ok(()),
        Some(group) => Err(Error::setting(
            "a group of the plan",
            format!("{} atoms with {} terms", group.pairs(), plan.terms(group).len()),
            "one row without terms (maximum likelihood) to train a score network",
        )),
    }
}

impl Engine for ScoreEngine {
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        AdamConfig::check_rate(learning_rate)?;
        self.prepare(plan, self.ledger.steps)?;
        self.run(Stage::Gradient);
        let loss = self.chunk_losses()?;
        self.run(Stage::Sum);
        let optimiser = &self.team.state().optimiser;
        optimiser.begin_step(self.ledger.next_step(learning_rate, optimiser.norm())?);
        self.run(Stage::Update);
        optimiser.publish();
        self.ledger.add_loss(loss);
        Ok(())
    }

    fn take_loss(&mut self) -> Result<f64> {
        Ok(self.ledger.take_loss())
    }

    fn evaluate(&mut self, plan: &Plan) -> Result<f64> {
        let step = self.team.state().noise.of_evaluation(self.ledger.steps);
        self.prepare(plan, step)?;
        self.run(Stage::Loss);
        self.chunk_losses()
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
            shared.model.check_params(numbers)?;
        }
        shared.optimiser.restore(state);
        self.ledger.restart(state.steps);
        Ok(())
    }
}
