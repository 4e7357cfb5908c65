//! Sequential inference: propose, simulate, train, round after round. The first file to read.
//!
//! Round 1 draws parameters from the prior and trains q(θ | x) by maximum likelihood. Later rounds draw them where
//! simulations tell most about the posterior: from the part of the prior where q(· | x_o) of the round before is not
//! negligible ([`crate::inference::truncation`]), which needs no correction; or from q(· | x_o) itself. All rounds' simulations are
//! kept: in the latter case they are a sample of the mixture p̃ of all proposals, and the estimators of
//! [`crate::training::estimator`] correct for p̃ not being the prior.

use super::assignment::Assignment;
use super::failures::Failing;
use super::split::split;
use super::state::{Inference, Judge, RoundReport, Scores, State, Training};
use crate::density::coordinates::{Coordinates, Rounds};
use crate::density::{Dataset, Density};
use crate::error::{Error, Result};
use crate::inference::config::{
    Config, DensityKind, Proposal, Scoring, Start, Truncation, Validation,
};
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::{Posterior, SampleStreams};
use crate::inference::simulations::Records;
use crate::inference::truncation::TruncatedPrior;
use crate::problem::{Oddity, Problem};
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::{
    Cpu, Device, Engine, EngineState, Fit, FitState, Machine, Noise, ScoreEngine,
};
use std::ops::{ControlFlow, Range};
use std::time::Instant;

/// Infers the posterior of a problem from `state` on. `observer` hears of everything in time to save it: a run that is
/// given its state back ends with the same bytes as one that was never interrupted. `judge` scores rounds where the
/// truth is known. A number of threads is a machine, too: that many on the CPU.
///
/// [`infer`](crate::infer()) is the front door to this function.
///
/// ```
/// use didyma::{Config, State, infer_from, tasks::Task};
/// let task = Task::named("gaussian-linear").unwrap();
/// let mut config = Config::default();
/// (config.rounds, config.simulations, config.train.steps) = (2, 200, Some(20));
/// let found = infer_from(&task.problem, None, &config, 2, State::default(), &mut ())?;
/// assert_eq!(found.posterior.expect("two rounds are finished").sample(100, 1)?.len(), 100);
/// # Ok::<(), didyma::Error>(())
/// ```
pub fn infer_from(
    problem: &Problem,
    judge: Option<&dyn Judge>,
    config: &Config,
    machine: impl Into<Machine>,
    state: State,
    observer: &mut dyn Observer,
) -> Result<Inference> {
    let mut run = Run { judge, ..Run::new(problem, config, machine.into(), state)? };
    for round in run.reports.len() as u32 + 1..=config.rounds {
        let go_on = run.round(round, observer)?;
        if go_on.is_break() && round < config.rounds || run.reports.len() < round as usize {
            break;
        }
    }
    let finished = run.reports.len() == config.rounds as usize;
    let posterior = run.posterior()?.or(run.latest);
    Ok(Inference { posterior, reports: run.reports, finished })
}

/// The number of the next round and the parameters that it is to simulate; none if all rounds are done.
///
/// [`infer_from`] simulates the same ones, so that they may as well be simulated elsewhere and handed in as state.
pub fn propose(
    problem: &Problem,
    config: &Config,
    machine: impl Into<Machine>,
    state: State,
) -> Result<Option<(u32, Vec<f64>)>> {
    let run = Run::new(problem, config, machine.into(), state)?;
    let round = run.reports.len() as u32 + 1;
    if round > config.rounds {
        return Ok(None);
    }
    // Once training has begun, all are simulated: the posterior that they were proposed from may be gone.
    let trained = run.training.as_ref().is_some_and(|training| training.round == round);
    let theta = if trained { run.records.theta(round) } else { run.propose(round)? };
    Ok(Some((round, theta)))
}

/// A run under way.
struct Run<'a> {
    problem: &'a Problem<'a>,
    judge: Option<&'a dyn Judge>,
    config: &'a Config,
    machine: Machine,
    streams: Streams,
    records: Records,
    reports: Vec<RoundReport>,
    training: Option<Training>,
    /// The posterior of the last round that was finished here.
    latest: Option<Posterior>,
    /// What is known of failures up to this round, if there were any.
    failing: (u32, Option<Failing>),
}

impl<'a> Run<'a> {
    fn new(
        problem: &'a Problem<'a>,
        config: &'a Config,
        machine: Machine,
        state: State,
    ) -> Result<Self> {
        config.check()?;
        config.check_prior(problem.prior())?;
        let State { rows, reports, training } = state;
        let records = Records::new(problem.dims(), config.simulations, rows);
        records.check()?;
        let streams = Streams::new(config.seed);
        Ok(Self {
            problem,
            judge: None,
            config,
            machine,
            streams,
            records,
            reports,
            training,
            latest: None,
            failing: (0, None),
        })
    }

    /// One round of the algorithm.
    fn round(&mut self, round: u32, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let missing = self.records.missing(round);
        let left = missing.iter().map(Range::len).sum();
        let started = Event::RoundStarted { round, rounds: self.config.rounds, missing: left };
        let mut go_on = observer.notice(&started)?;
        let clock = Instant::now();
        if go_on.is_continue() && left > 0 {
            let theta = self.propose(round)?;
            go_on = self.simulate(round, &theta, missing, observer)?;
        }
        let seconds_simulate = clock.elapsed().as_secs_f64();
        if go_on.is_continue() {
            go_on = self.train(round, observer)?;
        }
        match self.training.as_ref().filter(|t| t.round == round && t.fit.stop.is_some()) {
            Some(_) => self.finish(round, seconds_simulate, observer),
            None => Ok(go_on),
        }
    }

    /// Parameters of the round: draws of the prior, then where the posterior so far says.
    fn propose(&self, round: u32) -> Result<Vec<f64>> {
        let Config { simulations, width, truncation, proposal, .. } = *self.config;
        let streams = SampleStreams::new(self.streams, Purpose::Parameters, round);
        match (proposal, self.posterior()?) {
            (Proposal::Prior, _) | (_, None) => {
                let streams = self.streams.simulations(Purpose::Parameters, round.into());
                Ok(self.problem.prior().sample_rows(simulations, &streams, self.machine.threads))
            }
            (Proposal::Posterior, Some(posterior)) => {
                Ok(posterior.propose(simulations, width, streams, self.machine.threads)?.theta)
            }
            (Proposal::Truncated, Some(posterior)) => {
                let Truncation { share, draws } = truncation;
                let region =
                    TruncatedPrior::new(&posterior, share, draws, streams, self.machine.threads)?;
                Ok(region.sample(simulations, self.machine.threads)?.theta)
            }
        }
    }

    /// Simulates what is missing of the round.
    fn simulate(
        &mut self,
        round: u32,
        theta: &[f64],
        missing: Vec<Range<usize>>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let dim = self.problem.prior().dim();
        let assignment = Assignment {
            simulator: self.problem.simulator(),
            seed: self.config.seed,
            round,
            theta: Rows::new("theta", theta, dim)?,
            missing,
            done: self.records.counts(round),
            in_a_row: self.config.failures.in_a_row,
        };
        let (rows, go_on) = assignment.run(self.machine.threads, observer)?;
        self.records.extend(rows);
        Ok(go_on)
    }

    /// The same for the same rows, whenever it is asked: a resumed run learns it again.
    fn learn_of_failures(&mut self, round: u32) -> Result<()> {
        if self.failing.0 != round {
            let (prior, records) = (self.problem.prior(), &self.records);
            self.failing =
                (round, Failing::new(prior, records, self.config, round, self.machine.threads)?);
        }
        Ok(())
    }

    /// Trains q on all rounds so far.
    fn train(&mut self, round: u32, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        self.learn_of_failures(round)?;
        let mut training = match self.training.take() {
            Some(training) if training.round == round => training,
            before => self.start_training(round, before)?,
        };
        let go_on = match training.fit.stop {
            Some(_) => Ok(ControlFlow::Continue(())),
            None => self.fit(&mut training, observer),
        };
        self.training = Some(training);
        go_on
    }

    fn fit(&self, training: &mut Training, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let Training { round, coordinates, recentred, fit: state } = training;
        let data = self.records.dataset(self.problem.prior(), coordinates)?;
        let train = &self.config.train;
        let mut engine = self.engine(*round, state.engine.params.clone(), &data)?;
        let rows = split(&self.records, self.config, *round)?;
        let rows = self.failing.1.iter().fold(rows, |rows, failing| failing.applied(rows));
        let mut fit = Fit::new(train, &self.config.estimator, self.streams, *round, rows)?;
        let context = (&*coordinates, *recentred);
        fit.run(&mut *engine, state, &mut |report, fit| {
            let (coordinates, recentred) = context;
            observer.notice(&Event::Epoch { report, fit, coordinates, recentred })
        })
    }

    /// Coordinates and weights that a round starts from.
    fn start_training(&self, round: u32, before: Option<Training>) -> Result<Training> {
        let (prior, config) = (self.problem.prior(), &self.config.coordinates);
        let (first, newest) = (self.records.of_round(1)?, self.records.of_round(round)?);
        let pool = self.records.pool();
        let x_o = self.problem.observation();
        let rounds =
            Rounds { x_o, first: first.rows()?, newest: newest.rows()?.1, pool: pool.rows()? };
        let found = Coordinates::of(config, prior, &rounds)?;
        let kept = before.as_ref().map(|training| &training.coordinates);
        let kept = kept.filter(|old| found.distance(old) <= config.tolerance);
        let recentred = kept.is_none();
        let coordinates = kept.cloned().unwrap_or(found);
        let engine = match (self.config.train.start, before) {
            (Start::Carried, Some(training)) => training.fit.engine,
            (Start::Warm, Some(training)) => {
                let mut params = training.fit.engine.params;
                if recentred {
                    let (offset, slope) = training.coordinates.features_by(&coordinates);
                    self.density()?.fold_x(&mut params, &offset, &slope);
                }
                EngineState::fresh(params)
            }
            _ => {
                let mut rng = self.streams.stream(Purpose::Weights, round.into(), 0);
                EngineState::fresh(self.density()?.initial_params(&mut rng))
            }
        };
        Ok(Training { round, coordinates, recentred, fit: FitState::new(engine) })
    }

    fn density(&self) -> Result<Density> {
        Density::new(
            self.config.shape(self.problem.prior().dim(), self.problem.observation().len()),
        )
    }

    /// Where the round is trained: a flow on the device, a score on the cores.
    fn engine(&self, round: u32, params: Vec<f32>, data: &Dataset) -> Result<Box<dyn Engine>> {
        let (adam, Machine { threads, device }) = (self.config.train.adam(), &self.machine);
        match self.density()? {
            Density::Flow(flow) => device.engine(flow, params, data, adam, *threads),
            Density::Score(score) => {
                let fixed = self.config.train.validation == Validation::Fixed;
                let repeats = self.config.score.repeats;
                let noise = Noise { streams: self.streams, round, repeats, fixed };
                Ok(Box::new(ScoreEngine::new(score, params, data, adam, noise, *threads)?))
            }
        }
    }

    /// What a user calls the device of [`Self::engine`].
    fn trained_on(&self) -> String {
        match self.config.density {
            DensityKind::Flow => self.machine.device.describe(),
            DensityKind::Score => Cpu.describe(),
        }
    }

    /// The posterior of the latest finished training.
    fn posterior(&self) -> Result<Option<Posterior>> {
        let Some(training) = self.training.as_ref().filter(|t| t.fit.stop.is_some()) else {
            return Ok(None);
        };
        Ok(Some(Posterior {
            prior: self.problem.prior().clone(),
            coordinates: training.coordinates.clone(),
            density: self.density()?,
            params: training.fit.engine.params.clone(),
            observation: self.problem.observation().to_vec(),
            device: self.machine.device.clone(),
        }))
    }

    fn finish(
        &mut self,
        round: u32,
        seconds_simulate: f64,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        self.learn_of_failures(round)?;
        let posterior = self.posterior()?.expect("training is done");
        let Training { fit, recentred, .. } = self.training.as_ref().expect("training is done");
        let streams = SampleStreams::new(self.streams, Purpose::Diagnostic, round);
        let outside_prior = posterior.mass_outside(streams, self.machine.threads)?;
        let clock = Instant::now();
        let scored = match self.config.scores {
            Scoring::Every => true,
            Scoring::Last => round == self.config.rounds,
            Scoring::None => false,
        };
        let scores = match self.judge.filter(|_| scored).map(|j| j.score(&posterior, round)) {
            // A posterior that cannot be sampled has no scores; the round is saved all the same.
            None | Some(Err(Error::Leakage { .. })) => Scores::default(),
            Some(scores) => scores?,
        };
        let kept = fit.best.as_ref().filter(|_| self.config.train.restore_best);
        let (simulations, failures) = self.records.counts(round);
        let failing = self.failing.1.as_ref();
        let validity = failing.map(|f| f.report(&posterior, self.streams, self.machine.threads));
        let report = RoundReport {
            round,
            simulations,
            failures,
            epochs: fit.epoch,
            steps: fit.steps,
            stop_reason: fit.stop.expect("training is done"),
            seconds_simulate,
            seconds_train: fit.seconds,
            seconds_score: clock.elapsed().as_secs_f64(),
            train_loss: kept.map_or(fit.train_loss, |best| Some(best.train_loss)),
            validation_loss: kept.map_or(fit.validation_loss, |best| Some(best.loss)),
            scores,
            outside_prior,
            pairs: fit.pairs,
            recentred: *recentred,
            device: self.trained_on(),
            validity: validity.transpose()?,
            oddities: Oddity::of_rows(
                self.problem.observation(),
                self.records.of_round(round)?.rows()?.1,
            ),
        };
        let go_on =
            observer.notice(&Event::RoundFinished { report: &report, posterior: &posterior })?;
        self.reports.push(report);
        self.latest = Some(posterior);
        Ok(go_on)
    }
}
