//! A run from the disk: how far it has come, and what it found.

use super::checkpoint::check_manifest;
use super::{CHECKPOINT, Fault, Manifest, RunDir, about, error};
use crate::error::{Error, FileFault, Result};
use crate::evaluation::levels::TrainedFlow;
use crate::inference::config::Start;
use crate::inference::posterior::Posterior;
use crate::inference::{RoundReport, State, Training};
use crate::training::{EngineState, FitState};
use std::io::ErrorKind;

/// What a run has come to, for [`crate::infer_from`] to go on from.
pub fn progress(run: &RunDir) -> Result<State> {
    let (reports, rows) = (reports(run)?, run.rows()?);
    let (config, finished) = (Manifest::of(run)?.config, reports.len() as u32);
    let simulated = |round| rows.iter().filter(|row| row.round == round).count();
    // Files that were put back from a copy may be of different times; nothing else leads to these.
    let needed = config.train.start == Start::Carried && finished < config.rounds;
    let bad = |why| about(run.path(), run.file(CHECKPOINT), Fault::Checkpoint { why, needed });
    let found = run.training().map_err(|error| match error {
        Error::ModelFile { fault, .. } if !matches!(fault, FileFault::Newer { .. }) => {
            bad(fault.fact())
        }
        other => other,
    });
    let training = match found? {
        Some(t) if t.round == finished && t.fit.stop.is_none() => {
            return Err(bad("it is older than the database of the run".to_owned()));
        }
        Some(t) if t.round == finished + 1 && simulated(t.round) < config.simulations => {
            return Err(bad("it is newer than the database of the run".to_owned()));
        }
        Some(t) if (finished..=finished + 1).contains(&t.round) => Some(t),
        Some(_) => return Err(bad("it is of another round than the run".to_owned())),
        None if finished == 0 => None,
        None if needed => return Err(bad("it is missing".to_owned())),
        None => Some(after(run, &reports)?),
    };
    Ok(State { rows, reports, training })
}

/// The state after the last finished round, from its model: the optimiser starts anew in the next one anyway.
fn after(run: &RunDir, reports: &[RoundReport]) -> Result<Training> {
    let last = reports.last().expect("a round is finished");
    let Posterior { coordinates, params, .. } = model(run, last.round)?;
    let fit =
        FitState { stop: Some(last.stop_reason), ..FitState::new(EngineState::fresh(params)) };
    Ok(Training { round: last.round, coordinates, recentred: last.recentred, fit })
}

/// The finished rounds of a run.
pub fn reports(run: &RunDir) -> Result<Vec<RoundReport>> {
    let parse = |json: &String| {
        serde_json::from_str(json).map_err(|why| {
            let why = format!("the report of a round cannot be read: {why}");
            error(run.path(), Fault::corrupted(why))
        })
    };
    run.rounds()?.iter().map(parse).collect()
}

/// The posterior of a run's last finished round.
pub fn posterior(run: &RunDir) -> Result<Posterior> {
    match reports(run)?.last() {
        Some(last) => model(run, last.round),
        None => Err(error(run.path(), Fault::NoRound)),
    }
}

/// The flow of a run's last finished round on the simulations that it was trained on: a round that is still under way
/// would have its share of the proposal wrong.
pub fn trained_flow(run: &RunDir, threads: usize) -> Result<TrainedFlow> {
    let (config, rounds) = (Manifest::of(run)?.config, run.rounds()?.len());
    let mut rows = run.rows()?;
    rows.retain(|row| row.round as usize <= rounds);
    TrainedFlow::of_posterior(&posterior(run)?, rows, config.failures.meaning, threads)
}

/// The posterior after a round.
fn model(run: &RunDir, round: u32) -> Result<Posterior> {
    let manifest = run.manifest();
    let bad = |why| {
        let replaceable = run.file(CHECKPOINT).is_file();
        about(run.path(), run.model(round), Fault::Model { why, replaceable })
    };
    let loaded = Posterior::load_if(&run.model(round), |about| check_manifest(about, &manifest));
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
