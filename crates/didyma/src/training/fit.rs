//! Training a round: epochs, validation, and when to stop.

use super::config::{Inner, Schedule, TrainConfig, Validation};
use super::engine::Engine;
use super::fit_state::{Best, EpochReport, FitState, StopReason, TrainRows};
use super::reservoir::{InnerSource, Reservoir};
use crate::error::{Error, Result};
use crate::rng::{Purpose, Stream, Streams};
use crate::training::estimator::{
    Coupling, Estimator, Method, Plan, Pool, Settings, Source, Thinning,
};
use rand::RngExt;
use rand::seq::SliceRandom;
use std::ops::ControlFlow;
use std::time::Instant;

/// Training of one round.
pub struct Fit<'a> {
    config: &'a TrainConfig,
    streams: Streams,
    round: u32,
    rows: TrainRows,
    estimator: Estimator,
    /// What validates if the random numbers are fixed.
    validation: Plan,
    /// Where inner samples come from, if not from the batch.
    inner: InnerSource,
    reservoir: Reservoir,
    plan: Plan,
    order: Vec<u32>,
}

/// Training rows from which on the steps of a round grow.
const GROWS_FROM: f64 = 10_000.0;
/// Atoms of the fixed validation loss, the true one among them.
const VALIDATION_ATOMS: usize = 65;

impl<'a> Fit<'a> {
    /// Plans the training of a round by this estimator on these rows, with inner samples from there.
    pub fn new(
        config: &'a TrainConfig,
        settings: &Settings,
        streams: Streams,
        round: u32,
        mut rows: TrainRows,
        reservoir: Reservoir,
    ) -> Result<Self> {
        let all: Vec<u32> = rows.training.iter().chain(&rows.inner_only).copied().collect();
        let mut inner = reservoir.source(all.iter().copied(), settings.replacement)?;
        let estimator = match round {
            1 => Settings::paper(Method::Likelihood),
            _ => fitted(settings, config, &inner, rows.training.len())?,
        };
        let estimator = Estimator::new(estimator)?;
        match estimator.settings().method {
            Method::Likelihood => rows.normalise_weights(),
            _ => rows.weights.clear(),
        }
        let mut rng = streams.stream(Purpose::ValidationPlan, round.into(), 0);
        let validation = match config.validation {
            Validation::Fixed => fixed_validation(&estimator, &mut inner, all, &rows, &mut rng)?,
            Validation::Random => Plan::default(),
        };
        let (order, plan) = (rows.training.clone(), Plan::default());
        Ok(Self {
            config,
            streams,
            round,
            rows,
            estimator,
            validation,
            inner,
            reservoir,
            plan,
            order,
        })
    }

    /// The estimator, as it was fitted to the number of rows.
    pub fn estimator(&self) -> &Estimator {
        &self.estimator
    }

    /// Epochs of this round, at most.
    pub fn epochs(&self) -> u32 {
        self.cycle().saturating_mul(self.config.cycles)
    }

    /// Epochs of a cycle, over which the rate falls once. A round has one, and more while they lower the validation loss.
    pub fn cycle(&self) -> u32 {
        let many = (self.rows.training.len() as f64 / GROWS_FROM).max(1.0);
        let growth = many.powf(self.config.growth);
        let steps = self.config.steps.map(|steps| (steps as f64 * growth).ceil() as u64);
        let of_steps = steps.map(|steps| steps.div_ceil(self.steps_of_an_epoch()));
        let most = u64::from(self.config.epochs);
        of_steps.map_or(most, |epochs| epochs.min(most)) as u32
    }

    fn steps_of_an_epoch(&self) -> u64 {
        let batches = self.rows.training.len().div_ceil(self.config.batch) as u64;
        batches * u64::from(self.config.sweeps)
    }

    /// Trains from `state` on until there is a reason to stop, or `notice`, told of every epoch, breaks.
    pub fn run(
        &mut self,
        engine: &mut dyn Engine,
        state: &mut FitState,
        notice: &mut dyn FnMut(&EpochReport, &FitState) -> Result<ControlFlow<()>>,
    ) -> Result<ControlFlow<()>> {
        engine.restore(&state.engine)?;
        while state.stop.is_none() {
            let clock = Instant::now();
            let pairs = state.pairs;
            let outcome = self.epoch(engine, state);
            let trained = clock.elapsed().as_secs_f64();
            let outcome = outcome.and_then(|()| self.validate(engine, state));
            match outcome.and_then(|()| engine.read_state(&mut state.engine)) {
                // The weights before this epoch are the last ones that are known to be good.
                Err(Error::Diverged { .. }) => state.stop = Some(self.diverged(state.epoch)),
                other => other?,
            }
            state.epoch += 1;
            self.judge(state);
            state.seconds += clock.elapsed().as_secs_f64();
            let report = EpochReport {
                round: self.round,
                member: self.streams.member(),
                epoch: state.epoch,
                epochs: self.epochs(),
                train_loss: state.train_loss.unwrap_or(f64::NAN),
                validation_loss: state.validation_loss.unwrap_or(f64::NAN),
                pairs_per_second: (state.pairs - pairs) as f64 / trained,
            };
            if notice(&report, state)?.is_break() && state.stop.is_none() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Passes over the training rows, each in a random order of its own.
    fn epoch(&mut self, engine: &mut dyn Engine, state: &mut FitState) -> Result<()> {
        let address = |purpose| self.streams.stream(purpose, self.round.into(), state.epoch.into());
        let (mut shuffle, mut rng) = (address(Purpose::Shuffle), address(Purpose::Plan));
        let mut thinning = address(Purpose::Thinning);
        self.order.copy_from_slice(&self.rows.training);
        for _ in 0..self.config.sweeps {
            self.order.shuffle(&mut shuffle);
            self.sweep(engine, state, &mut rng, &mut thinning)?;
        }
        state.train_loss = Some(engine.take_loss()?);
        Ok(())
    }

    /// One pass in the present order.
    fn sweep(
        &mut self,
        engine: &mut dyn Engine,
        state: &mut FitState,
        rng: &mut Stream,
        thinning: &mut Stream,
    ) -> Result<()> {
        let cycle = u64::from(self.cycle()) * self.steps_of_an_epoch();
        let mut from_batch = Pool::new([0], self.estimator.settings().replacement)?;
        for batch in self.order.chunks(self.config.batch) {
            let Self { estimator, inner, plan, .. } = self;
            // A last batch that is too small for a block takes its inner samples from all rows.
            if self.config.inner == Inner::Batch && batch.len() == self.config.batch {
                from_batch.refill(batch.iter().copied())?;
                estimator.plan(batch, &mut from_batch, rng, plan)?;
            } else {
                estimator.plan(batch, inner, rng, plan)?;
            }
            self.reservoir.complete(&mut self.plan);
            weigh(&mut self.plan, &self.rows);
            if self.config.thinning > 0.0 && self.estimator.settings().method != Method::Likelihood
            {
                let below = self.config.thinning / batch.len() as f64;
                self.plan.thin(Thinning { below, seed: thinning.random() });
            }
            engine.step(&self.plan, rate(self.config, state.steps % cycle, cycle))?;
            state.steps += 1;
            state.pairs += self.plan.pairs() as u64;
        }
        Ok(())
    }

    fn validate(&mut self, engine: &mut dyn Engine, state: &mut FitState) -> Result<()> {
        let loss = match self.config.validation {
            Validation::Fixed => engine.evaluate(&self.validation)?,
            Validation::Random => {
                let (purpose, epoch) = (Purpose::ValidationPlan, state.epoch.into());
                let mut rng = self.streams.stream(purpose, self.round.into(), epoch);
                let Self { estimator, rows, inner, plan, reservoir, .. } = self;
                estimator.plan(&rows.held_out, inner, &mut rng, plan)?;
                reservoir.complete(plan);
                weigh(plan, rows);
                engine.evaluate(plan)?
            }
        };
        state.validation_loss = Some(loss);
        Ok(())
    }

    /// A reason to stop where the epoch after `epoch` diverged. A cycle that was finished before it stands.
    fn diverged(&self, epoch: u32) -> StopReason {
        if epoch >= self.cycle() && self.config.restore_best {
            StopReason::Patience
        } else {
            StopReason::Diverged
        }
    }

    /// Keeps the best weights, and decides whether to go on.
    fn judge(&self, state: &mut FitState) {
        let diverged = state.stop.is_some();
        let loss = state.validation_loss.filter(|_| !diverged);
        if let Some(loss) = loss.filter(|loss| state.best.as_ref().is_none_or(|b| *loss < b.loss)) {
            let params = state.best.take().map_or_else(Vec::new, |best| best.params);
            let (epoch, train_loss) = (state.epoch, state.train_loss.unwrap_or(f64::NAN));
            let best = state.best.insert(Best { epoch, loss, train_loss, params });
            best.params.clone_from(&state.engine.params);
        }
        let best = state.best.as_ref().map_or(0, |best| best.epoch);
        if !diverged {
            state.stop = self.stop(state.epoch, best);
        }
        if let (Some(_), true, Some(best)) = (state.stop, self.config.restore_best, &state.best) {
            state.engine.params.clone_from(&best.params);
        }
    }

    /// A reason to stop after this epoch, where the best so far was `best`.
    fn stop(&self, epoch: u32, best: u32) -> Option<StopReason> {
        let cycle = self.cycle();
        let begin = (epoch - 1) / cycle * cycle;
        let ends = epoch == begin + cycle;
        // Every cycle may use up the patience: the rate that lowers the loss comes at its end.
        let idle = epoch - best.max(begin);
        if ends && epoch >= self.epochs() {
            Some(StopReason::Budget)
        } else if idle >= self.config.patience || (ends && best <= begin) {
            Some(StopReason::Patience)
        } else {
            None
        }
    }
}

/// Settings that the inner samples of so many training rows can fill.
pub(crate) fn fitted(
    settings: &Settings,
    config: &TrainConfig,
    inner: &InnerSource,
    training: usize,
) -> Result<Settings> {
    if let InnerSource::Bank(bank) = inner {
        return Ok(settings.clone().fitted_to(bank));
    }
    // The batches that inner samples come from are full ones: see `epoch`.
    let size = match config.inner {
        Inner::Batch => training.min(config.batch),
        _ => training,
    };
    Ok(settings.clone().fitted_to(&Pool::new(0..size as u32, settings.replacement)?))
}

/// The plan of the validation loss with fixed random numbers. Its inner samples are those of training, or the training rows
/// `all` where the outer θ cannot be one of the atoms otherwise.
fn fixed_validation(
    estimator: &Estimator,
    inner: &mut InnerSource,
    all: Vec<u32>,
    rows: &TrainRows,
    rng: &mut Stream,
) -> Result<Plan> {
    let mut plan = Plan::default();
    if estimator.settings().method == Method::Likelihood {
        estimator.clone().plan(&rows.held_out, inner, rng, &mut plan)?;
    } else if inner.allows_outer() {
        judge_of(inner)?.plan(&rows.held_out, inner, rng, &mut plan)?;
    } else {
        let mut pool = Pool::new(all, estimator.settings().replacement)?;
        judge_of(&pool)?.plan(&rows.held_out, &mut pool, rng, &mut plan)?;
    }
    weigh(&mut plan, rows);
    Ok(plan)
}

/// The estimator of the fixed validation loss, with the outer sample among its atoms: it is bounded below.
fn judge_of(source: &impl Source) -> Result<Estimator> {
    let (atoms, coupling) = (VALIDATION_ATOMS, Coupling::Inclusive);
    let atomic = Settings { atoms, coupling, ..Settings::paper(Method::Atomic) };
    Estimator::new(atomic.fitted_to(source))
}

fn weigh(plan: &mut Plan, rows: &TrainRows) {
    if !rows.weights.is_empty() {
        plan.weigh_own(&rows.weights);
    }
}

/// The learning rate of a step of a cycle that has `total`.
fn rate(config: &TrainConfig, step: u64, total: u64) -> f64 {
    match config.schedule {
        Schedule::Constant => config.rate,
        Schedule::Cosine => {
            let share = step as f64 / total as f64;
            config.rate * 0.5 * (1.0 + (std::f64::consts::PI * share).cos())
        }
    }
}
