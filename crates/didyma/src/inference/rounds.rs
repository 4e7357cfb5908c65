//! Sequential inference: propose, simulate, train, round after round. The first file to read.
//!
//! Round 1 draws parameters from the prior and trains q(θ | x) by maximum likelihood. Later rounds draw them where
//! simulations tell most about the posterior: from the part of the prior where q(· | x_o) of the round before is not
//! negligible ([`crate::inference::truncation`]), which needs no correction; or from q(· | x_o) itself. All rounds' simulations are
//! kept: in the latter case they are a sample of the mixture p̃ of all proposals, and the estimators of
//! [`crate::training::estimator`] correct for p̃ not being the prior.

use super::assignment::Assignment;
use super::failures::Failing;
use super::members::Course;
use super::noise::SummaryNoise;
use super::split::split;
use super::state::{Inference, Judge, RoundReport, State, Training};
use crate::density::coordinates::{Coordinates, Rounds};
use crate::density::{Dataset, Density, Ensemble};
use crate::error::{Error, Result};
use crate::inference::config::{Config, DensityKind, Start};
use crate::inference::events::{Event, Observer};
use crate::inference::posterior::Posterior;
use crate::inference::ranges::Ranges;
use crate::inference::simulations::Records;
use crate::problem::Problem;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use crate::training::{Cpu, Device, EngineState, FitState, Machine};
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
pub(super) struct Run<'a> {
    pub(super) problem: &'a Problem<'a>,
    pub(super) judge: Option<&'a dyn Judge>,
    pub(super) config: &'a Config,
    pub(super) machine: Machine,
    pub(super) streams: Streams,
    pub(super) records: Records,
    pub(super) reports: Vec<RoundReport>,
    pub(super) training: Option<Training>,
    /// Posteriors of the finished rounds, from the first on, where inner samples need them.
    pub(super) posteriors: Vec<Posterior>,
    /// True if somebody else drew parameters of a round after the first.
    pub(super) drawn_elsewhere: bool,
    /// The posterior of the last round that was finished here.
    pub(super) latest: Option<Posterior>,
    /// What is known of failures up to this round, if there were any.
    pub(super) failing: (u32, Option<Failing>),
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
        let State { rows, reports, training, posteriors, drawn_elsewhere } = state;
        let records = Records::new(problem.dims(), config.simulations, rows);
        records.check()?;
        if let Some(training) = &training {
            let (found, expected) = (training.members.len(), config.ensemble.members);
            let (name, unit, why) = ("training", "members", "as the settings have it");
            if found != expected {
                return Err(Error::Shape { name, unit, found, expected, why });
            }
        }
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
            posteriors,
            drawn_elsewhere,
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
        match self.training.as_ref().filter(|t| t.round == round && t.is_done()) {
            Some(_) => self.finish(round, seconds_simulate, observer),
            None => Ok(go_on),
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
    pub(super) fn learn_of_failures(&mut self, round: u32) -> Result<()> {
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
        let go_on = if training.is_done() {
            Ok(ControlFlow::Continue(()))
        } else {
            self.fit(&mut training, observer)
        };
        self.training = Some(training);
        go_on
    }

    /// Trains the members that are not done, each on rows and by random numbers of its own.
    fn fit(&self, training: &mut Training, observer: &mut dyn Observer) -> Result<ControlFlow<()>> {
        let round = training.round;
        let coordinates = &training.coordinates;
        let data = self.dataset(coordinates)?;
        let clock = Instant::now();
        let (data, reservoir) = self.reservoir(round, coordinates, data)?;
        let rows = (0..training.members.len() as u32).map(|member| {
            let rows = split(&self.records, self.config, round, self.streams.of_member(member))?;
            Ok(self.failing.1.iter().fold(rows, |rows, failing| failing.applied(rows)))
        });
        let rows = rows.collect::<Result<Vec<_>>>()?;
        if self.chooses_levels(training) {
            training.levels = self.choose_levels(training, (&data, &reservoir), &rows)?;
        }
        training.seconds += clock.elapsed().as_secs_f64();
        let given = &self.config.estimator;
        let estimator = training.levels.as_ref().map(|levels| levels.applied(given));
        let left = training.members.iter().filter(|fit| fit.stop.is_none()).count();
        let at_once = self.machine.at_once(left);
        let course = Course {
            round,
            config: self.config,
            density: self.density()?,
            data: &data,
            rows,
            reservoir,
            estimator: estimator.unwrap_or_else(|| given.clone()),
            machine: self.machine.part(at_once),
        };
        course.run(training, at_once, observer)
    }

    /// All rounds so far as training reads them.
    pub(super) fn dataset(&self, coordinates: &Coordinates) -> Result<Dataset> {
        self.records.dataset(self.problem.prior(), coordinates, SummaryNoise::of(self.config))
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
        let density = self.density()?;
        let members = (0..self.config.ensemble.members).map(|member| {
            let begun = match (self.config.train.start, &before) {
                (Start::Carried, Some(training)) => training.member(member),
                (Start::Warm, Some(training)) => {
                    let mut params = training.member(member).params;
                    if recentred {
                        let (offset, slope) = training.coordinates.features_by(&coordinates);
                        density.fold_x(&mut params, &offset, &slope);
                    }
                    EngineState::fresh(params)
                }
                _ => {
                    let streams = self.streams.of_member(member as u32);
                    let mut rng = streams.stream(Purpose::Weights, round.into(), 0);
                    EngineState::fresh(density.initial_params(&mut rng))
                }
            };
            FitState::new(begun)
        });
        let members = members.collect();
        Ok(Training { round, coordinates, recentred, levels: None, members, seconds: 0.0 })
    }

    pub(super) fn density(&self) -> Result<Density> {
        Density::new(
            self.config.shape(self.problem.prior().dim(), self.problem.observation().len()),
        )
    }

    /// What a user calls the device that the round is trained on.
    pub(super) fn trained_on(&self) -> String {
        match self.config.density {
            DensityKind::Flow => self.machine.device.describe(),
            DensityKind::Score => Cpu.describe(),
        }
    }

    /// The posterior of the latest finished training.
    pub(super) fn posterior(&self) -> Result<Option<Posterior>> {
        let Some(training) = self.training.as_ref().filter(|t| t.is_done()) else {
            return Ok(None);
        };
        let members = training.sound().into_iter().cloned().collect();
        // Of stored rows alone, so that a model that is written again is the same.
        let ranges = Ranges::of(self.records.of_round(training.round)?.rows()?.1);
        Ok(Some(Posterior {
            prior: self.problem.prior().clone(),
            coordinates: training.coordinates.clone(),
            ensemble: Ensemble::new(self.density()?, members),
            observation: self.problem.observation().to_vec(),
            ranges: Some(ranges),
            device: self.machine.device.clone(),
        }))
    }
}
