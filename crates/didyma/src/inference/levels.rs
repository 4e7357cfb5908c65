//! Levels that a round chooses by what is measured on the flow of the round before.

use super::rounds::Run;
use super::state::Training;
use crate::density::{Dataset, Density};
use crate::error::Result;
use crate::inference::config::LevelSource;
use crate::rng::{Purpose, Streams};
use crate::training::levels::{LevelChoice, TrainedFlow};
use crate::training::{Reservoir, TrainRows};
use rand::RngExt;

impl Run<'_> {
    /// True if the levels of a round are to be chosen, which is before its first epoch.
    pub(super) fn chooses_levels(&self, training: &Training) -> bool {
        let begun = training.members.iter().any(|fit| fit.epoch > 0 || fit.stop.is_some());
        self.config.train.levels == LevelSource::Auto && training.round > 1 && !begun
    }

    /// The best levels on the flow that the first member begins with, its training rows and their inner samples.
    pub(super) fn choose_levels(
        &self,
        training: &Training,
        data: &Dataset,
        reservoir: &Reservoir,
        rows: &TrainRows,
    ) -> Result<Option<LevelChoice>> {
        let Density::Flow(flow) = self.density()? else { return Ok(None) };
        let params = training.members[0].engine.params.clone();
        let settings = &self.config.estimator;
        let mut problem = TrainedFlow::new(flow, params, data.clone(), self.machine.threads)?.on(
            rows,
            reservoir,
            settings.replacement,
        )?;
        let mut seed = self.streams.stream(Purpose::LevelChoice, training.round.into(), 0);
        LevelChoice::measured(settings, &mut problem, Streams::new(seed.random()))
    }
}
