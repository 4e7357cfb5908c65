//! The engine on the cores of this machine, whatever the model.

use super::optimiser::{Ledger, read, write};
use super::shared::{Loss, Shared, Stage};
use super::team::Team;
use crate::error::{Error, Result};
use crate::parallel;
use crate::training::adam::AdamConfig;
use crate::training::engine::{Engine, EngineState};
use crate::training::estimator::Plan;
use std::sync::atomic::Ordering;

/// Trains a model on all cores; the result is the same bytes for any number of threads.
#[derive(Debug)]
pub struct TeamEngine<L: Loss> {
    team: Team<Shared<L>>,
    ledger: Ledger,
}

impl<L: Loss> TeamEngine<L> {
    /// An engine of `threads` threads for this loss, from these parameters.
    pub(super) fn of(
        loss: L,
        params: Vec<f32>,
        config: AdamConfig,
        threads: usize,
    ) -> Result<Self> {
        let ledger = Ledger::new(config)?;
        loss.check_params(&params)?;
        parallel::check_threads(threads)?;
        let shared = Shared::new(loss, params, threads);
        let team = Team::new(threads, shared, |shared, member, stage| {
            shared.work(member, Stage::ALL[stage]);
        })
        .map_err(|source| Error::Threads { threads, source })?;
        Ok(Self { team, ledger })
    }

    fn run(&self, stage: Stage) {
        self.team.state().next.store(0, Ordering::Relaxed);
        self.team.run(stage as usize);
    }

    /// Takes a plan over and reduces its split groups, of which it returns the loss.
    fn prepare(&self, plan: &Plan) -> Result<f64> {
        let shared = self.team.state();
        shared.loss.check_plan(plan)?;
        if !write(&shared.job).take(plan, self.ledger.steps) {
            return Ok(0.0);
        }
        self.run(Stage::Parts);
        Ok(shared.loss.reduce_parts(&mut write(&shared.job)))
    }

    /// The loss of a plan, by a stage that computes those of its chunks.
    fn loss(&self, plan: &Plan, stage: Stage) -> Result<f64> {
        let split = self.prepare(plan)?;
        self.run(stage);
        let shared = self.team.state();
        let chunks = read(&shared.job).tiles.chunks.len();
        self.ledger.finite("loss", split + shared.optimiser.loss(chunks))
    }
}

impl<L: Loss> Engine for TeamEngine<L> {
    fn step(&mut self, plan: &Plan, learning_rate: f64) -> Result<()> {
        AdamConfig::check_rate(learning_rate)?;
        let loss = self.loss(plan, Stage::Gradient)?;
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
        self.loss(plan, Stage::Loss)
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
            shared.loss.check_params(numbers)?;
        }
        shared.optimiser.restore(state);
        self.ledger.restart(state.steps);
        Ok(())
    }
}
