//! Sequential inference step by step, for those who simulate themselves: propose, append, train, and again.
//!
//! The same computations as [`crate::infer_from`]. What was simulated must have been drawn where the round needs it: a
//! loss that corrects for another proposal than the true one gives a wrong posterior without a word, so parameters of
//! unknown origin are refused.

mod draws;
mod keeper;
mod origin;

use crate::error::{Error, Result};
use crate::inference::config::{Config, Proposal};
use crate::inference::events::Observer;
use crate::inference::posterior::Posterior;
use crate::inference::{
    EpochRecord, RoundReport, SimulatedRow, State, Training, infer_from, propose,
};
use crate::problem::Problem;
use crate::problem::prior::Prior;
use crate::problem::simulator::{self, Elsewhere};
use crate::rows::Rows;
use crate::training::Machine;
use keeper::Keeper;
use std::ops::ControlFlow;

/// Where parameters were drawn, by whoever drew them.
#[derive(Clone, Copy, Debug)]
pub enum Drawn<'a> {
    /// Nothing was said: by [`Steps::propose`], or, in the first round, from the prior.
    Unsaid,
    /// From this prior.
    Prior(&'a Prior),
    /// From this posterior.
    Posterior(&'a Posterior),
}

/// x of a simulation, or why there is none.
pub type Outcome = std::result::Result<Vec<f64>, String>;

/// What numbers that a simulator gave count as: a row with NaN or infinity is a failure.
pub fn outcome(x: &[f64]) -> Outcome {
    simulator::outcome(x)
}

/// An inference step by step.
///
/// ```
/// use didyma::config::{Algorithm, Config, Profile};
/// use didyma::prior::Prior;
/// use didyma::steps::{Drawn, Steps};
/// use didyma::Rows;
///
/// let mut config = Config::new(Profile::Default, Algorithm::Tsnpe);
/// config.train.steps = Some(50);
/// let mut steps = Steps::new(Prior::uniform(["t"], [-1.0], [1.0])?, vec![0.25], config)?;
/// for _ in 0..2 {
///     let theta = steps.propose(200, 1)?.to_vec();
///     let x = theta.iter().map(|t| Ok(vec![t * t])).collect();
///     steps.append(Rows::new("theta", &theta, 1)?, x, Drawn::Unsaid)?;
///     steps.train(1, &mut ())?;
/// }
/// assert_eq!(steps.rounds(), 2);
///
/// // Parameters that come from nowhere are refused.
/// let theta = [0.5; 200];
/// let x = vec![Ok(vec![0.25]); 200];
/// assert!(steps.append(Rows::new("theta", &theta, 1)?, x, Drawn::Unsaid).is_err());
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Steps {
    prior: Prior,
    observation: Vec<f64>,
    config: Config,
    pub(crate) rows: Vec<SimulatedRow>,
    pub(crate) finished: Vec<(RoundReport, Posterior)>,
    training: Option<Training>,
    /// What the round under way is to simulate, if it was asked.
    proposed: Vec<f64>,
    /// What it was given beside that, as draws of the prior and of the posterior.
    claimed: [Vec<f64>; 2],
    /// True if parameters of a round after the first were others than all of those proposed.
    drawn_elsewhere: bool,
    /// Epochs as a run logs them.
    pub(crate) epochs: Vec<EpochRecord>,
}

impl Steps {
    /// Begins; the settings' rounds and simulations are as many as will come.
    pub fn new(prior: Prior, observation: Vec<f64>, config: Config) -> Result<Self> {
        let steps = Self {
            prior,
            observation,
            config,
            rows: Vec::new(),
            finished: Vec::new(),
            training: None,
            proposed: Vec::new(),
            claimed: Default::default(),
            drawn_elsewhere: false,
            epochs: Vec::new(),
        };
        steps.config.check()?;
        steps.problem()?;
        Ok(steps)
    }

    /// Rounds that are trained.
    pub fn rounds(&self) -> usize {
        self.finished.len()
    }

    /// Simulations of the round under way.
    pub fn appended(&self) -> usize {
        let round = self.round();
        self.rows.iter().filter(|row| row.round == round).count()
    }

    /// What is known beforehand.
    pub fn prior(&self) -> &Prior {
        &self.prior
    }

    /// x_o.
    pub fn observation(&self) -> &[f64] {
        &self.observation
    }

    /// Every setting.
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// The posterior of the last trained round.
    pub fn posterior(&self) -> Option<&Posterior> {
        self.finished.last().map(|(_, posterior)| posterior)
    }

    /// The trained rounds.
    pub fn reports(&self) -> impl Iterator<Item = &RoundReport> {
        self.finished.iter().map(|(report, _)| report)
    }

    /// The place in the round of parameters that were proposed, if they are a run of those.
    pub fn number_of(&self, theta: &[f64]) -> Option<u64> {
        let dim = self.prior.dim();
        let mut rows = self.proposed.chunks_exact(dim).enumerate();
        let first = theta.get(..dim)?;
        let from = rows.find(|(i, row)| {
            let all = self.proposed.get(i * dim..i * dim + theta.len());
            self.is_given_back(row, first) && all.is_some_and(|all| self.is_given_back(all, theta))
        });
        from.map(|(number, _)| number as u64)
    }

    fn round(&self) -> u32 {
        self.finished.len() as u32 + 1
    }

    fn problem(&self) -> Result<Problem<'static>> {
        let (theta_dim, x_dim) = (self.prior.dim(), self.observation.len());
        let simulator = Elsewhere { theta_dim, x_dim };
        Problem::new(self.prior.clone(), simulator, self.observation.as_slice())
    }

    fn state(&self) -> State {
        let reports = self.reports().cloned().collect();
        let posteriors = self.finished.iter().map(|(_, posterior)| posterior.clone());
        State {
            rows: self.rows.clone(),
            reports,
            training: self.training.clone(),
            posteriors: posteriors.collect(),
            drawn_elsewhere: self.drawn_elsewhere,
        }
    }

    /// Parameters for the round under way, row after row: of the prior at first, then where the method looks.
    pub fn propose(&mut self, count: usize, machine: impl Into<Machine>) -> Result<&[f64]> {
        let round = self.round();
        if self.appended() > 0 {
            let fault = "already has simulations: train on them first".into();
            return Err(Error::Proposal { round, fault });
        }
        let config = Config { rounds: round, simulations: count, ..self.config.clone() };
        config.check()?;
        let found = propose(&self.problem()?, &config, machine, self.state())?;
        self.proposed = found.map(|(_, theta)| theta).unwrap_or_default();
        Ok(&self.proposed)
    }

    /// Takes simulations of the round under way: x of each θ, or why there is none.
    pub fn append(&mut self, theta: Rows, x: Vec<Outcome>, drawn: Drawn) -> Result<()> {
        theta.expect_columns(self.prior.dim(), "parameters of the prior")?;
        theta.expect_finite()?;
        if x.len() != theta.len() {
            let (name, unit, found, expected) = ("x", "rows", x.len(), theta.len());
            return Err(Error::Shape { name, unit, found, expected, why: "one for each theta" });
        }
        for row in theta.iter() {
            self.prior.expect_inside(row)?;
        }
        self.check_drawn(theta, drawn)?;
        // What was trained of the round rests on fewer rows.
        self.training = self.training.take().filter(|training| training.round < self.round());
        let (round, before) = (self.round(), self.appended());
        self.rows.extend(theta.iter().zip(x).enumerate().map(|(i, (theta, x))| SimulatedRow {
            round,
            index: (before + i) as u32,
            theta: theta.to_vec(),
            x,
        }));
        Ok(())
    }

    /// Trains on all that was appended so far. If the observer breaks, a later call goes on from there.
    pub fn train(
        &mut self,
        machine: impl Into<Machine>,
        observer: &mut dyn Observer,
    ) -> Result<ControlFlow<()>> {
        let (round, count) = (self.round(), self.appended());
        if count == 0 {
            let fault = "has no simulations: append some first".into();
            return Err(Error::Proposal { round, fault });
        }
        let config = Config { rounds: round, simulations: count, ..self.config.clone() };
        // Draws of the prior come first, then those of a region: a part of what was proposed has another share of them.
        let whole = count * self.prior.dim() == self.proposed.len();
        let shared = config.prior_share > 0.0 || config.proposal == Proposal::Mixed;
        self.drawn_elsewhere |= round > 1 && shared && !whole;
        let (training, finished, epochs) = (None, None, Vec::new());
        let mut keeper = Keeper { training, finished, epochs, stopping: false, observer };
        infer_from(&self.problem()?, None, &config, machine, self.state(), &mut keeper)?;
        let Keeper { training, finished, epochs, .. } = keeper;
        self.training = training.or(self.training.take());
        self.epochs.extend(epochs);
        match finished {
            Some(finished) => {
                self.finished.push(finished);
                self.proposed.clear();
                self.claimed = Default::default();
                Ok(ControlFlow::Continue(()))
            }
            None => Ok(ControlFlow::Break(())),
        }
    }
}
