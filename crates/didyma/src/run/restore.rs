//! A run from the disk: how far it has come, and what it found.

use super::checkpoint::check_manifest;
use super::{CHECKPOINT, Fault, RunDir, about, error};
use crate::error::{Error, FileFault, Result};
use crate::evaluation::levels::{Past, TrainedFlow};
use crate::inference::config::{Config, Inner, Meaning, Start};
use crate::inference::posterior::Posterior;
use crate::inference::ranges::Ranges;
use crate::inference::simulations::Records;
use crate::inference::{RoundReport, State, Training, infer_from, sound};
use crate::problem::Problem;
use crate::rows::Rows;
use crate::training::{EngineState, FitState};
use serde_json::{Value, json};
use std::io::ErrorKind;

impl RunDir {
    /// How far the run has come: the state that [`crate::infer_from`] continues from.
    pub fn progress(&self) -> Result<State> {
        let (reports, rows) = (self.reports()?, self.rows()?);
        let (config, finished) = (&self.manifest().config, reports.len() as u32);
        let simulated = |round| rows.iter().filter(|row| row.round == round).count();
        // Files that were put back from a copy may be of different times; nothing else leads to these.
        let needed = config.train.start == Start::Carried && finished < config.rounds;
        let fault = |why| Fault::Checkpoint { why, needed };
        let bad = |why| about(self.path(), self.file(CHECKPOINT), fault(why));
        let found = self.training().map_err(|error| match error {
            Error::ModelFile { fault, .. } if !matches!(fault, FileFault::Newer { .. }) => {
                bad(fault.fact())
            }
            other => other,
        });
        let training = match found? {
            Some(t) if t.members.len() != config.ensemble.members => {
                return Err(bad("it has another number of members".to_owned()));
            }
            Some(t) if t.round == finished && !t.is_done() => {
                return Err(bad("it is older than the database of the run".to_owned()));
            }
            Some(t) if t.round == finished + 1 && simulated(t.round) < config.simulations => {
                return Err(bad("it is newer than the database of the run".to_owned()));
            }
            Some(t) if (finished..=finished + 1).contains(&t.round) => Some(t),
            Some(_) => return Err(bad("it is of another round than the run".to_owned())),
            None if needed && finished > 0 => return Err(bad("it is missing".to_owned())),
            None => reports.last().map(|last| self.after(last)).transpose()?,
        };
        let drawn_elsewhere = reports.iter().any(|report| report.drawn_elsewhere);
        Ok(State { rows, reports, training, posteriors: Vec::new(), drawn_elsewhere })
    }

    /// The posteriors of the finished rounds, if those to come are trained with them.
    pub(super) fn posteriors(&self, finished: u32) -> Result<Vec<Posterior>> {
        let config = &self.manifest().config;
        let needed = config.needs_posteriors() && finished < config.rounds;
        let last = if needed { finished } else { 0 };
        (1..=last).map(|round| self.model_after(round)).collect()
    }

    /// The state after a finished round, from its model: the optimiser starts anew in the next one anyway.
    fn after(&self, last: &RoundReport) -> Result<Training> {
        let Posterior { coordinates, ensemble, .. } = self.model_after(last.round)?;
        let stops: Vec<_> = match &*last.members {
            [] => vec![last.stop_reason],
            members => members.iter().map(|member| member.stop_reason).collect(),
        };
        let kept = sound(&stops, |stop| Some(*stop));
        if ensemble.members().len() != kept.iter().flatten().count() {
            let (why, replaceable) = ("it has another number of members".to_owned(), false);
            return Err(about(
                self.path(),
                self.model(last.round),
                Fault::Model { why, replaceable },
            ));
        }
        let mut params = ensemble.members().iter().cloned();
        let members = stops.iter().zip(kept).map(|(stop, kept)| {
            // The next round does not ask for the parameters of a member that was left out.
            let params = kept.and_then(|_| params.next()).unwrap_or_default();
            FitState { stop: Some(*stop), ..FitState::new(EngineState::fresh(params)) }
        });
        let (members, recentred) = (members.collect(), last.recentred);
        let (round, levels) = (last.round, last.levels.clone());
        Ok(Training { round, coordinates, recentred, levels, members, seconds: 0.0 })
    }

    /// The posterior of the last finished round.
    pub fn posterior(&self) -> Result<Posterior> {
        match self.rounds()? as u32 {
            0 => Err(error(self.path(), Fault::NoRound)),
            last => {
                let mut posterior = self.model_after(last)?;
                if posterior.ranges.is_none() {
                    posterior.ranges = self.ranges(last, posterior.observation().len());
                }
                Ok(posterior)
            }
        }
    }

    /// Where summaries fell in a round, for a model of an earlier version; `None` if its rows cannot be read, which is reported
    /// where they are needed.
    fn ranges(&self, round: u32, summaries: usize) -> Option<Ranges> {
        let mut rows = self.rows().ok()?;
        rows.retain(|row| row.round == round && row.x.is_ok());
        let x: Vec<f64> = rows.into_iter().flat_map(|row| row.x.unwrap_or_default()).collect();
        let x = Rows::new("x", &x, summaries).ok().filter(|x| !x.is_empty())?;
        Some(Ranges::of(x))
    }

    /// The flow of the last finished round on the simulations that it was trained on: a round that is still under way
    /// would have its share of the proposal wrong.
    pub fn trained_flow(&self, threads: usize) -> Result<TrainedFlow> {
        let (meaning, rounds) = (self.manifest().config.failures.meaning, self.rounds()?);
        let mut rows = self.rows()?;
        rows.retain(|row| row.round as usize <= rounds);
        TrainedFlow::of_posterior(&self.posterior()?, rows, meaning, threads)
    }

    /// A run's trained flow with inner samples of this law, in blocks up to `block`: some laws need the models of all rounds.
    /// Where samples are made by a posterior, it is the flow's own if that is to be `fresh`, else that of the round before.
    pub fn with_inner(
        &self,
        flow: TrainedFlow,
        law: Inner,
        block: usize,
        fresh: bool,
    ) -> Result<TrainedFlow> {
        let (config, rounds) = (&self.manifest().config, self.rounds()? as u32);
        let mut rows = self.rows()?;
        let missing = config.failures.meaning == Meaning::Missing;
        rows.retain(|row| {
            row.round <= rounds && (row.x.is_ok() || !missing || law.needs_posteriors())
        });
        let posterior = self.posterior()?;
        let before = match law.needs_posteriors() {
            true => (1..rounds).map(|round| self.model_after(round)).collect::<Result<_>>()?,
            false => Vec::new(),
        };
        let dims = (posterior.dim(), posterior.observation().len());
        let records = &Records::new(dims, rows.len(), rows);
        let (prior, posterior) = (posterior.prior(), &posterior);
        let drawn_elsewhere = self.reports()?.iter().any(|report| report.drawn_elsewhere);
        let before = &before;
        let past = Past { config, prior, records, drawn_elsewhere, posterior, before, fresh };
        flow.with_law(law, block, &past)
    }

    /// What the model of a round says of itself: one of another round is a model, too, and must not take its place.
    pub(super) fn model_origin(&self, round: u32) -> Value {
        json!({"round": round, "run": self.stored_manifest()})
    }

    /// Sentences about models of earlier rounds that cannot be used. No result rests on them any more.
    pub(super) fn damaged_models(&self, rounds: usize) -> Vec<String> {
        let config = &self.manifest().config;
        let needed = config.needs_posteriors() && rounds < config.rounds as usize;
        let rests = if needed {
            "copy it back from a backup, or start the run anew; the rounds to come need it"
        } else {
            "copy it back from a backup if you need it; no result rests on it"
        };
        let told = |round: u32| {
            let why = match self.model_after(round).err()? {
                Error::Run { fault: Fault::Model { why, .. }, .. } => why,
                other => other.to_string(),
            };
            Some(format!("round-{round}.safetensors cannot be used, {why}: {rests}"))
        };
        (1..rounds as u32).filter_map(told).collect()
    }

    /// Writes the model of the last finished round again, if it is damaged or lost and `state` has all that it was made of.
    pub(super) fn mend_model(&self, state: &State, problem: &Problem) -> Result<()> {
        let finished = state.reports.len() as u32;
        let kept = state.training.as_ref().is_some_and(|training| training.round == finished);
        let lost = |fault: &Error| matches!(fault, Error::Run { fault: Fault::Model { .. }, .. });
        if !kept || finished == 0 || !self.model_after(finished).err().is_some_and(|e| lost(&e)) {
            return Ok(());
        }
        // An inference of the finished rounds alone has nothing left to do, and gives their posterior.
        let config = Config { rounds: finished, ..self.manifest().config.clone() };
        let found = infer_from(problem, None, &config, 1, state.clone(), &mut ())?;
        found.posterior.map_or(Ok(()), |posterior| self.save_model(finished, &posterior))
    }

    /// True if a resumed run does without the model of this round, or makes it again. Where later rounds need the models of
    /// all rounds, the checkpoint must be of this very one.
    fn is_replaceable(&self, round: u32) -> bool {
        let of_this_round = || self.training().ok().flatten().is_some_and(|t| t.round == round);
        self.file(CHECKPOINT).is_file()
            && (!self.manifest().config.needs_posteriors() || of_this_round())
    }

    /// The posterior after a round.
    pub(super) fn model_after(&self, round: u32) -> Result<Posterior> {
        let (manifest, origin) = (self.stored_manifest(), self.model_origin(round));
        let bad = |why| {
            let replaceable = self.is_replaceable(round);
            about(self.path(), self.model(round), Fault::Model { why, replaceable })
        };
        let loaded = Posterior::load_if(&self.model(round), |about| match &about["round"] {
            // Version 0.1.0 did not say the round.
            Value::Null => check_manifest(about, &manifest),
            _ if about["run"] == origin["run"] && *about != origin => Err(FileFault::Foreign(
                format!("of round {round} (it is of round {})", about["round"]),
            )),
            _ => check_manifest(about, &origin),
        });
        loaded.map_err(|error| match error {
            Error::ModelFile { fault, .. } if !matches!(fault, FileFault::Newer { .. }) => {
                bad(fault.fact())
            }
            Error::Io { source, .. } if source.kind() == ErrorKind::NotFound => {
                bad("it is missing".to_owned())
            }
            other => other,
        })
    }
}
