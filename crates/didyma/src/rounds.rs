//! Sequential inference: propose, simulate, train, round after round. The first file to read.
//!
//! Round 1 draws parameters from the prior and trains q(θ | x) by maximum likelihood. Every later round draws them
//! from q(· | x_o) of the round before, where simulations tell most about the posterior. All rounds' simulations are
//! kept: together they are a sample of the mixture p̃ of all proposals, and the estimators of [`crate::estimator`]
//! correct for p̃ not being the prior.

use crate::config::{Config, Split, Start};
use crate::coordinates::Coordinates;
use crate::error::{Error, Result};
use crate::estimator::Method;
use crate::flow::SplineFlow;
use crate::observe::{Event, Observer};
use crate::posterior::{Posterior, SampleStreams};
use crate::prior::Prior;
use crate::records::Records;
use crate::rng::{Purpose, Streams};
use crate::simulator::{self, Simulator};
use crate::tasks::Task;
use crate::train::{CpuEngine, EngineState, Fit, FitState, StopReason, TrainRows};
use rand::seq::SliceRandom;
use serde::{Deserialize, Serialize};
use std::ops::{ControlFlow, Range};
use std::time::{Duration, Instant};

/// What is asked: which θ may have led to this observation?
#[derive(Clone, Copy)]
pub struct Model<'a> {
    /// What is known of θ beforehand.
    pub prior: &'a Prior,
    /// How x comes about.
    pub simulator: &'a dyn Simulator,
    /// x_o.
    pub observation: &'a [f64],
    /// Compares a round's posterior with what is known of the truth.
    pub judge: Option<&'a dyn Judge>,
}

impl<'a> From<&'a Task> for Model<'a> {
    fn from(task: &'a Task) -> Self {
        let Task { prior, simulator, observation, .. } = task;
        Self { prior, simulator: &**simulator, observation, judge: None }
    }
}

/// Knows something of the truth.
pub trait Judge {
    /// How good the posterior of a round is.
    fn score(&self, posterior: &Posterior, round: u32) -> Result<Scores>;
}

/// What was measured of a posterior, where it could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// Accuracy of a classifier that tells the samples from the reference: ½ is best.
    pub c2st: Option<f64>,
    /// Squared maximum mean discrepancy from the reference.
    pub mmd2: Option<f64>,
    /// Logarithm of the median distance of simulations from the observation.
    pub lmd: Option<f64>,
    /// −log of the posterior's density at the true parameters.
    pub nlog: Option<f64>,
}

/// One simulation of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimulatedRow {
    /// The round, from 1.
    pub round: u32,
    /// Its number in the round.
    pub index: u32,
    /// θ.
    pub theta: Vec<f32>,
    /// x, or why there is none.
    pub x: std::result::Result<Vec<f32>, String>,
}

/// What a round gave.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RoundReport {
    /// The round, from 1.
    pub round: u32,
    /// Simulations made.
    pub simulations: usize,
    /// Those that failed.
    pub failures: usize,
    /// Epochs of training.
    pub epochs: u32,
    /// Steps of training.
    pub steps: u64,
    /// Why training stopped.
    pub stop_reason: StopReason,
    /// Wall-clock time of the simulations.
    pub seconds_simulate: f64,
    /// Wall-clock time of training.
    pub seconds_train: f64,
    /// Wall-clock time of comparing with the truth.
    pub seconds_score: f64,
    /// Training loss of the epoch whose weights were kept.
    pub train_loss: f64,
    /// Its validation loss.
    pub validation_loss: f64,
    /// What is known of the posterior's quality.
    #[serde(flatten)]
    pub scores: Scores,
    /// Share of q(· | x_o) outside the prior's support.
    pub outside_prior: f64,
    /// Pairs (θ, x) that went through training.
    pub pairs: u64,
    /// Whether the coordinates were renewed.
    pub recentred: bool,
}

/// How far a run has come: nothing, or what an interrupted one left.
#[derive(Clone, Debug, Default)]
pub struct Progress {
    /// Simulations, in any order.
    pub rows: Vec<SimulatedRow>,
    /// Finished rounds, in order.
    pub reports: Vec<RoundReport>,
    /// The latest state of training.
    pub training: Option<Training>,
}

/// Training of a round, and the coordinates it happens in.
#[derive(Clone, Debug, PartialEq)]
pub struct Training {
    /// The round.
    pub round: u32,
    /// The coordinates.
    pub coordinates: Coordinates,
    /// Whether they are new in this round.
    pub recentred: bool,
    /// The state of training.
    pub fit: FitState,
}

/// What a run gave.
#[derive(Clone, Debug)]
pub struct Inference {
    /// The posterior of the last finished round; none if that was finished before `progress` was saved, and the run
    /// stopped while the next one was trained.
    pub posterior: Option<Posterior>,
    /// The finished rounds.
    pub reports: Vec<RoundReport>,
    /// Whether all rounds are finished, or an observer stopped the run.
    pub finished: bool,
}

/// Infers the posterior at the model's observation, from `progress` on. `observer` is told of everything in time to
/// save it: a run that is given its progress back ends with the same bytes as one that was never interrupted.
///
/// ```
/// use didyma::config::{Config, Profile};
/// use didyma::estimator::Method;
/// use didyma::posterior::SampleStreams;
/// use didyma::rng::{Purpose, Streams};
/// use didyma::rounds::{Progress, infer};
/// use didyma::tasks::Task;
/// # fn main() -> didyma::Result<()> {
/// let task = Task::named("gaussian-linear").unwrap();
/// let mut config = Config::new(Profile::Default, Method::Tgrr);
/// (config.rounds, config.simulations, config.train.steps) = (2, 200, Some(20));
/// let found = infer(&(&task).into(), &config, 2, Progress::default(), &mut ())?;
/// let posterior = found.posterior.expect("two rounds are finished");
/// let streams = SampleStreams { streams: Streams::new(1), purpose: Purpose::Posterior, round: 0 };
/// assert_eq!(posterior.sample(100, streams, 1)?.theta.len(), 100 * task.prior.dim());
/// # Ok(())
/// # }
/// ```
pub fn infer(
    model: &Model,
    config: &Config,
    threads: usize,
    progress: Progress,
    observer: &mut dyn Observer,
) -> Result<Inference> {
    let mut run = Run::new(model, config, threads, progress)?;
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

/// A run under way.
struct Run<'a> {
    model: &'a Model<'a>,
    config: &'a Config,
    threads: usize,
    streams: Streams,
    records: Records,
    reports: Vec<RoundReport>,
    training: Option<Training>,
    /// The posterior of the last round that was finished here.
    latest: Option<Posterior>,
}

/// Simulations are told of in groups of this duration.
const GROUP: Duration = Duration::from_millis(100);
/// Draws by which the mass outside the prior is measured.
const LEAKAGE_DRAWS: usize = 10_000;
/// The stream that draws the held-out rows of a round; epochs stay far below.
const SPLIT: u64 = u64::MAX;

impl<'a> Run<'a> {
    fn new(
        model: &'a Model<'a>,
        config: &'a Config,
        threads: usize,
        progress: Progress,
    ) -> Result<Self> {
        config.check()?;
        model.check()?;
        let Progress { rows, reports, training } = progress;
        let dims = (model.prior.dim(), model.observation.len());
        let records = Records::new(dims, config.simulations, rows);
        records.check()?;
        let streams = Streams::new(config.seed);
        let latest = None;
        Ok(Self { model, config, threads, streams, records, reports, training, latest })
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

    /// Parameters of the round: draws of the prior, then of the posterior so far. Plain maximum likelihood has no
    /// correction for another proposal, and stays with the prior.
    fn propose(&self, round: u32) -> Result<Vec<f32>> {
        let count = self.config.simulations;
        match self.posterior()? {
            Some(posterior) if self.config.estimator.method != Method::Likelihood => {
                let (streams, purpose) = (self.streams, Purpose::Parameters);
                let streams = SampleStreams { streams, purpose, round: round.into() };
                let width = self.config.width;
                Ok(posterior.propose(count, width, streams, self.threads)?.theta)
            }
            _ => {
                let streams = self.streams.simulations(Purpose::Parameters, round.into());
                Ok(self.model.prior.sample_rows(count, &streams, self.threads))
            }
        }
    }

    /// Simulates what is missing of the round; every simulation has the random stream of its number.
    fn simulate(
        &mut self,
        round: u32,
        theta: &[f32],
        missing: Vec<Range<usize>>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let streams = self.streams.simulations(Purpose::Simulation, round.into());
        let dim = self.model.prior.dim();
        let mut group = Group::new(round, self.config.simulations, &mut self.records, observer);
        for range in missing {
            let part = &theta[range.start * dim..range.end * dim];
            let rows = crate::Rows::new("theta", part, dim)?;
            let (simulator, first) = (self.model.simulator, range.start as u64);
            let observe = &mut |piece: simulator::Progress| group.take(range.start, rows, &piece);
            simulator::simulate(simulator, rows, &streams, first, self.threads, observe)?;
            if group.flush()?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Trains q on all rounds so far.
    fn train(&mut self, round: u32, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
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
        let data = self.records.dataset(self.model.prior, coordinates)?;
        let (flow, params) = (self.flow()?, state.engine.params.clone());
        let train = &self.config.train;
        let mut engine = CpuEngine::new(flow, params, &data, train.adam(), self.threads)?;
        let rows = self.split(*round)?;
        let mut fit = Fit::new(train, &self.config.estimator, self.streams, *round, rows)?;
        let context = (&*coordinates, *recentred);
        fit.run(&mut engine, state, &mut |report, fit| {
            let (coordinates, recentred) = context;
            observer.notice(&Event::Epoch { report, fit, coordinates, recentred })
        })
    }

    /// Coordinates and weights that a round starts from.
    fn start_training(&self, round: u32, before: Option<Training>) -> Result<Training> {
        let (prior, config) = (self.model.prior, &self.config.coordinates);
        let (first, newest) = (self.records.of_round(1)?, self.records.of_round(round)?);
        let found = Coordinates::of(config, prior, first.rows()?, newest.rows()?.1)?;
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
                    self.flow()?.fold_x(&mut params, &offset, &slope);
                }
                EngineState::fresh(params)
            }
            _ => {
                let mut rng = self.streams.stream(Purpose::Weights, round.into(), 0);
                EngineState::fresh(self.flow()?.initial_params(&mut rng))
            }
        };
        Ok(Training { round, coordinates, recentred, fit: FitState::new(engine) })
    }

    fn flow(&self) -> Result<SplineFlow> {
        let (theta_dim, x_dim) = (self.model.prior.dim(), self.model.observation.len());
        SplineFlow::new(self.config.flow.flow(theta_dim, x_dim))
    }

    /// Rows to train on, and rows held out.
    fn split(&self, round: u32) -> Result<TrainRows> {
        let share = self.config.train.validation_share;
        let all = 0..self.records.successes().count() as u32;
        let drawn = |mut rows: Vec<u32>| {
            rows.shuffle(&mut self.streams.stream(Purpose::Shuffle, round.into(), SPLIT));
            rows.truncate(((self.config.simulations as f64 * share) as usize).max(1));
            rows.sort_unstable();
            rows
        };
        let mut held_out: Vec<u32> = match self.config.train.split {
            Split::Fixed => {
                // The same share of every stretch of a round: simulations are in no particular order.
                let place = |index: u32| (f64::from(index) * share).floor();
                let indices = self.records.successes().map(|(index, ..)| index);
                let held_out = |index| place(index + 1) > place(index);
                all.clone().zip(indices).filter(|(_, i)| held_out(*i)).map(|(row, _)| row).collect()
            }
            Split::Newest => drawn(self.records.of_round(round)?.places.collect()),
            Split::Pooled => drawn(all.clone().collect()),
        };
        // Where most simulations failed, all that are left may be on one side: each gets one row at least.
        if held_out.is_empty() {
            held_out.push(all.start);
        } else if held_out.len() == all.len() {
            held_out.pop();
        }
        let training = all.filter(|row| held_out.binary_search(row).is_err()).collect();
        Ok(TrainRows { training, held_out })
    }

    /// The posterior of the latest finished training.
    fn posterior(&self) -> Result<Option<Posterior>> {
        let Some(training) = self.training.as_ref().filter(|t| t.fit.stop.is_some()) else {
            return Ok(None);
        };
        Ok(Some(Posterior {
            prior: self.model.prior.clone(),
            coordinates: training.coordinates.clone(),
            flow: self.flow()?,
            params: training.fit.engine.params.clone(),
            observation: self.model.observation.to_vec(),
        }))
    }

    fn finish(
        &mut self,
        round: u32,
        seconds_simulate: f64,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let posterior = self.posterior()?.expect("training is done");
        let Training { fit, recentred, .. } = self.training.as_ref().expect("training is done");
        let outside_prior = self.outside_prior(&posterior, round)?;
        let clock = Instant::now();
        let scores = match self.model.judge {
            Some(judge) => judge.score(&posterior, round)?,
            None => Scores::default(),
        };
        let kept = fit.best.as_ref().filter(|_| self.config.train.restore_best);
        let report = RoundReport {
            round,
            simulations: self.config.simulations,
            failures: self.records.counts(round).1,
            epochs: fit.epoch,
            steps: fit.steps,
            stop_reason: fit.stop.expect("training is done"),
            seconds_simulate,
            seconds_train: fit.seconds,
            seconds_score: clock.elapsed().as_secs_f64(),
            train_loss: kept.map_or(fit.train_loss, |best| best.train_loss),
            validation_loss: kept.map_or(fit.validation_loss, |best| best.loss),
            scores,
            outside_prior,
            pairs: fit.pairs,
            recentred: *recentred,
        };
        let go_on =
            observer.notice(&Event::RoundFinished { report: &report, posterior: &posterior })?;
        self.reports.push(report);
        self.latest = Some(posterior);
        Ok(go_on)
    }

    /// Share of q(· | x_o) outside the support, by draws.
    fn outside_prior(&self, posterior: &Posterior, round: u32) -> Result<f64> {
        let (streams, purpose) = (self.streams, Purpose::Diagnostic);
        let streams = SampleStreams { streams, purpose, round: round.into() };
        Ok(1.0 - posterior.sample(LEAKAGE_DRAWS, streams, self.threads)?.acceptance)
    }
}

impl Model<'_> {
    fn check(&self) -> Result<()> {
        let shape = |name, found, expected, why| {
            let unit = "numbers";
            Err(Error::Shape { name, unit, found, expected, why })
        };
        let (dim, expected) = (self.prior.dim(), self.simulator.theta_dim());
        if dim != expected {
            return shape("prior", dim, expected, "parameters of the simulator");
        }
        let (found, expected) = (self.observation.len(), self.simulator.x_dim());
        if found != expected {
            return shape("observation", found, expected, "summaries of the simulator");
        }
        match self.observation.iter().position(|v| !v.is_finite()) {
            Some(column) => {
                let (name, value) = ("observation", self.observation[column]);
                Err(Error::NotFinite { name, row: 0, column, value })
            }
            None => Ok(()),
        }
    }
}

/// Simulations that are done but not yet told of.
struct Group<'a> {
    round: u32,
    total: usize,
    records: &'a mut Records,
    observer: &'a mut dyn Observer,
    rows: Vec<SimulatedRow>,
    since: Instant,
    start: Instant,
    made: usize,
    result: Result<ControlFlow<()>>,
}

impl<'a> Group<'a> {
    fn new(
        round: u32,
        total: usize,
        records: &'a mut Records,
        observer: &'a mut dyn Observer,
    ) -> Self {
        let (now, rows) = (Instant::now(), Vec::new());
        let result = Ok(ControlFlow::Continue(()));
        Self { round, total, records, observer, rows, since: now, start: now, made: 0, result }
    }

    /// Takes a piece of work; tells of it with others after some time.
    fn take(
        &mut self,
        start: usize,
        theta: crate::Rows,
        piece: &simulator::Progress,
    ) -> ControlFlow<()> {
        let x_dim = piece.x.len() / piece.rows.len();
        let mut failures = piece.failures.iter().peekable();
        for (row, x) in piece.rows.clone().zip(piece.x.chunks_exact(x_dim)) {
            let failure = failures.next_if(|failure| failure.row == row);
            self.rows.push(SimulatedRow {
                round: self.round,
                index: (start + row) as u32,
                theta: theta.row(row).to_vec(),
                x: failure.map_or(Ok(x.to_vec()), |failure| Err(failure.reason.clone())),
            });
        }
        if self.since.elapsed() >= GROUP {
            self.tell();
        }
        match self.result {
            Ok(ControlFlow::Continue(())) => ControlFlow::Continue(()),
            _ => ControlFlow::Break(()),
        }
    }

    fn tell(&mut self) {
        self.since = Instant::now();
        let rows = std::mem::take(&mut self.rows);
        self.made += rows.len();
        rows.iter().for_each(|row| self.records.push(row));
        let (done, failed) = self.records.counts(self.round);
        let rate = self.made as f64 / self.start.elapsed().as_secs_f64();
        let (round, total) = (self.round, self.total);
        let event = Event::Simulated { round, rows: &rows, done, total, failed, rate };
        match self.observer.notice(&event) {
            Ok(ControlFlow::Continue(())) => {}
            other => self.result = other,
        }
    }

    /// Tells of what is left; what the observer said.
    fn flush(&mut self) -> Result<ControlFlow<()>> {
        if !self.rows.is_empty() && self.result.is_ok() {
            self.tell();
        }
        std::mem::replace(&mut self.result, Ok(ControlFlow::Continue(())))
    }
}
