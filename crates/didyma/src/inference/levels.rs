//! Levels that a round chooses by what is measured on the flow of the round before.

use super::inner::{Made, measured_rows};
use super::rounds::Run;
use super::state::Training;
use crate::density::{Dataset, Density};
use crate::error::Result;
use crate::inference::config::{Inner, LevelSource};
use crate::rng::{Purpose, Streams};
use crate::training::levels::{LevelChoice, TrainedFlow};
use crate::training::{Reservoir, TrainRows, fitted};
use rand::RngExt;

impl Run<'_> {
    /// True if the levels of a round are to be chosen, which is before its first epoch.
    pub(super) fn chooses_levels(&self, training: &Training) -> bool {
        let begun = training.members.iter().any(|fit| fit.epoch > 0 || fit.stop.is_some());
        self.config.train.levels == LevelSource::Auto && training.round > 1 && !begun
    }

    /// The best levels on the flow that the first member begins with, its training rows and their inner samples; as many as
    /// those of every member can fill.
    pub(super) fn choose_levels(
        &self,
        training: &Training,
        (data, reservoir): (&Dataset, &Reservoir),
        rows: &[TrainRows],
    ) -> Result<Option<LevelChoice>> {
        let Density::Flow(flow) = self.density()? else { return Ok(None) };
        let (given, params) = (&self.config.estimator, training.members[0].engine.params.clone());
        let mut seed = self.streams.stream(Purpose::LevelChoice, training.round.into(), 0);
        let streams = Streams::new(seed.random());
        let (data, reservoir, outer) = match self.aged(training, &rows[0], streams)? {
            Some(aged) => aged,
            None => (data.clone(), reservoir.clone(), rows[0].training.clone()),
        };
        let all = rows[0].training.iter().chain(&rows[0].inner_only).copied();
        let inner = reservoir.source(all, given.replacement)?;
        let least = rows.iter().map(|rows| rows.training.len()).min().unwrap_or(0);
        let settings = fitted(given, &self.config.train, &inner, least)?;
        let problem = TrainedFlow::new(flow, params, data, self.machine.threads)?;
        let mut problem = problem.on(outer, reservoir, inner);
        LevelChoice::measured(&settings, given.top.is_none(), &mut problem, streams)
    }

    /// Samples for some rows that are a round old, where they are made for each row and there is such a round. Those that the
    /// round trains with are made by the very flow that it begins with, and fit it better than any that it will become.
    fn aged(
        &self,
        training: &Training,
        rows: &TrainRows,
        streams: Streams,
    ) -> Result<Option<(Dataset, Reservoir, Vec<u32>)>> {
        let round = training.round;
        let Some(law) = self.inner_law(round).filter(|law| law.is_made() && round > 2) else {
            return Ok(None);
        };
        let rng = streams.stream(Purpose::LevelRows, round.into(), 0);
        let outer = measured_rows(rows.training.clone(), rng);
        let made = Made {
            snapshot: &self.posteriors[round as usize - 3],
            nets: law == Inner::Sobol,
            streams,
            purposes: [Purpose::LevelPool, Purpose::LevelStock],
        };
        let data = self.dataset(&training.coordinates)?;
        let (data, reservoir) = self.stock_of(&outer, made, round, &training.coordinates, data)?;
        Ok(Some((data, reservoir, outer)))
    }
}
