//! Where training stands, in one file.

use super::{CHECKPOINT, RunDir};
use crate::density::coordinates::Coordinates;
use crate::error::{Error, FileFault, Result};
use crate::inference::Training;
use crate::storage::tensors::{Decoded, NamedTensor, TensorFile, corrupted};
use crate::training::levels::LevelChoice;
use crate::training::{Best, EngineState, FitState, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const KIND: &str = "checkpoint";
const TENSORS: [&str; 4] = ["params", "m", "v", "best"];

/// All but the tensors. Random numbers need no counters beside round, member and epoch, which are their addresses; the
/// rows held out follow from the configuration and the rows' numbers.
#[derive(Serialize, Deserialize)]
struct Description {
    version: String,
    manifest: Value,
    round: u32,
    #[serde(default)]
    members: Vec<Member>,
    /// The only member, in files from before there were others.
    #[serde(flatten, skip_serializing)]
    alone: Option<Member>,
    coordinates: Coordinates,
    recentred: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    levels: Option<LevelChoice>,
    #[serde(default)]
    seconds_together: Option<f64>,
}

/// A member's part of it.
#[derive(Serialize, Deserialize)]
struct Member {
    epoch: u32,
    steps: u64,
    optimiser_steps: u64,
    best: Option<(u32, f64, f64)>,
    train_loss: Option<f64>,
    validation_loss: Option<f64>,
    pairs: u64,
    seconds: f64,
    stop: Option<StopReason>,
}

impl RunDir {
    /// Saves the state of training.
    pub fn save_training(&self, training: &Training) -> Result<()> {
        let described = Description {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: self.stored_manifest(),
            round: training.round,
            members: training.members.iter().map(Member::new).collect(),
            coordinates: training.coordinates.clone(),
            recentred: training.recentred,
            levels: training.levels.clone(),
            alone: None,
            seconds_together: Some(training.seconds),
        };
        let json = serde_json::to_string(&described).expect("numbers and strings");
        let of = |part: fn(&FitState) -> &[f32]| {
            training.members.iter().flat_map(part).copied().collect::<Vec<f32>>()
        };
        let parts: [fn(&FitState) -> &[f32]; 4] = [
            |fit| &fit.engine.params,
            |fit| &fit.engine.m,
            |fit| &fit.engine.v,
            |fit| fit.best.as_ref().map_or(&[], |best| &best.params),
        ];
        let tensors = TENSORS.iter().zip(parts);
        let tensors = tensors.map(|(name, part)| NamedTensor::flat(name, of(part))).collect();
        TensorFile { kind: KIND, json, tensors }.save_inside(&self.file(CHECKPOINT))
    }

    /// The state of training that was saved last, if any was.
    pub fn training(&self) -> Result<Option<Training>> {
        let path = self.file(CHECKPOINT);
        if !path.exists() {
            return Ok(None);
        }
        let file = TensorFile::load(&path, KIND, &TENSORS)?;
        let training = decode(file, &self.stored_manifest());
        training.map(Some).map_err(|fault| Error::ModelFile { path, fault })
    }

    /// The manifest as it was stored: a file that says otherwise was copied here from another run.
    pub(super) fn stored_manifest(&self) -> Value {
        serde_json::from_str(&self.stored).unwrap_or_default()
    }
}

/// An error unless a file says to be of this run.
pub(super) fn check_manifest(found: &Value, expected: &Value) -> Decoded<()> {
    match found == expected {
        true => Ok(()),
        false => {
            Err(FileFault::Foreign("of this run (its settings are those of another run)".into()))
        }
    }
}

impl Member {
    fn new(fit: &FitState) -> Self {
        Self {
            epoch: fit.epoch,
            steps: fit.steps,
            optimiser_steps: fit.engine.steps,
            best: fit.best.as_ref().map(|best| (best.epoch, best.loss, best.train_loss)),
            train_loss: fit.train_loss,
            validation_loss: fit.validation_loss,
            pairs: fit.pairs,
            seconds: fit.seconds,
            stop: fit.stop,
        }
    }

    /// Its state, with what the tensors hold of it: parameters, moments, and the best parameters, if there are any.
    fn state(self, [params, m, v]: [Vec<f32>; 3], best: Vec<f32>) -> FitState {
        FitState {
            epoch: self.epoch,
            steps: self.steps,
            engine: EngineState { params, m, v, steps: self.optimiser_steps },
            best: self.best.map(|(epoch, loss, train_loss)| Best {
                epoch,
                loss,
                train_loss,
                params: best,
            }),
            train_loss: self.train_loss,
            validation_loss: self.validation_loss,
            pairs: self.pairs,
            seconds: self.seconds,
            stop: self.stop,
        }
    }
}

fn decode(file: TensorFile, manifest: &Value) -> Decoded<Training> {
    let found: Description = serde_json::from_str(&file.json).map_err(|e| corrupted(&e))?;
    check_manifest(&found.manifest, manifest)?;
    let tensors: Vec<Vec<f32>> = file.tensors.into_iter().map(|tensor| tensor.data).collect();
    let Ok([params, m, v, best]) = <[Vec<f32>; 4]>::try_from(tensors) else {
        return Err(corrupted(&"tensors are missing"));
    };
    let Description { round, mut members, alone, coordinates, recentred, levels, .. } = found;
    members.extend(alone.filter(|_| members.is_empty()));
    let first = members.first().map_or(0.0, |member| member.seconds);
    let seconds = found.seconds_together.unwrap_or(first);
    let each = params.len().checked_div(members.len()).unwrap_or(0);
    let whole = each * members.len();
    let bests = each * members.iter().filter(|member| member.best.is_some()).count();
    if each == 0 || [params.len(), m.len(), v.len(), best.len()] != [whole, whole, whole, bests] {
        return Err(corrupted(&"its tensors have different lengths"));
    }
    let [mut params, mut m, mut v, mut best] =
        [&params, &m, &v, &best].map(|all| all.chunks_exact(each).map(<[f32]>::to_vec));
    let mut next = |member: Member| {
        let tensors = [params.next()?, m.next()?, v.next()?];
        let best = if member.best.is_some() { best.next()? } else { Vec::new() };
        Some(member.state(tensors, best))
    };
    let members = members.into_iter().map(&mut next).collect::<Option<Vec<_>>>();
    let members = members.ok_or_else(|| corrupted(&"its tensors have different lengths"))?;
    Ok(Training { round, coordinates, recentred, levels, members, seconds })
}
