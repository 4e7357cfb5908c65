//! The loss of a score network: denoising score matching, row by row.

use super::engine::TeamEngine;
use super::noise::Noise;
use super::shared::{Job, Loss};
use super::tiles::Tile;
use crate::density::Dataset;
use crate::density::flow::Gradient;
use crate::density::score::{ScoreModel, TRAINED_FROM, Tape};
use crate::error::{Error, Result};
use crate::rng::Stream;
use crate::training::adam::AdamConfig;
use crate::training::estimator::{Group, Plan};
use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

/// Trains a score network on all cores; the result is the same bytes for any number of threads.
///
/// Its plans are those of maximum likelihood: groups of one row each, whose own weight multiplies the row's loss of
/// denoising score matching.
///
/// ```
/// use didyma::estimator::Plan;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::score::{ScoreConfig, ScoreModel};
/// use didyma::training::{AdamConfig, Engine, Noise, ScoreEngine};
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
pub type ScoreEngine = TeamEngine<ScoreLoss>;

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
        noise.check()?;
        data.theta().expect_columns(model.config().theta_dim, "theta_dim of the score network")?;
        data.x().expect_columns(model.config().x_dim, "x_dim of the score network")?;
        Self::of(ScoreLoss { model, data: data.clone(), noise }, params, config, threads)
    }
}

/// The loss of a score network on a dataset.
#[derive(Debug)]
pub struct ScoreLoss {
    model: ScoreModel,
    data: Dataset,
    noise: Noise,
}

impl ScoreLoss {
    /// Fills the tape with a tile's rows, noised by this stream.
    fn gather(&self, job: &Job, tape: &mut Tape<f32>, tile: usize, mut rng: Stream) {
        let Tile::Whole(groups) = &job.tiles.tiles[tile] else { return };
        tape.clear();
        for group in &job.plan.groups()[groups.clone()] {
            let atom = job.plan.atoms(group)[0] as usize;
            let theta = self.data.theta().row(atom).iter().copied();
            let x = self.data.x().row(group.context as usize).iter().copied();
            let t = TRAINED_FROM + (1.0 - TRAINED_FROM) * rng.random::<f64>();
            tape.row(theta, x, (t, || StandardNormal.sample(&mut rng)), group.own);
        }
    }
}

impl Loss for ScoreLoss {
    type Memory = Tape<f32>;

    fn memory(&self) -> Tape<f32> {
        Tape::new(&self.model)
    }

    fn check_params(&self, params: &[f32]) -> Result<()> {
        self.model.check_params(params)
    }

    /// Refuses groups of more than one row's own term: a score network has no density to compare atoms by.
    fn check_plan(&self, plan: &Plan) -> Result<()> {
        plan.check(self.data.len(), self.data.x().len())?;
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

    fn repeats(&self) -> usize {
        self.noise.repeats
    }

    fn loss(
        &self,
        job: &Job,
        params: &[f32],
        tape: &mut Tape<f32>,
        tile: usize,
        repeat: usize,
    ) -> f64 {
        self.gather(job, tape, tile, self.noise.of_evaluation(job.steps, repeat, tile));
        self.model.loss(params, tape) / self.noise.repeats as f64
    }

    fn gradient(
        &self,
        job: &Job,
        params: &[f32],
        tape: &mut Tape<f32>,
        tile: usize,
        gradient: Gradient<'_, f32>,
    ) -> f64 {
        self.gather(job, tape, tile, self.noise.of_step(job.steps, tile));
        self.model.backward(params, tape, gradient)
    }
}
