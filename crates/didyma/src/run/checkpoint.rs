//! Where training stands, in one file.

use super::{CHECKPOINT, RunDir};
use crate::density::coordinates::Coordinates;
use crate::error::{Error, FileFault, Result};
use crate::inference::Training;
use crate::inference::events::Event;
use crate::storage::tensors::{Decoded, NamedTensor, TensorFile, corrupted};
use crate::training::{Best, EngineState, FitState, StopReason};
use serde::{Deserialize, Serialize};
use serde_json::Value;

const KIND: &str = "checkpoint";
const TENSORS: [&str; 4] = ["params", "m", "v", "best"];

/// All but the tensors. Random numbers need no counters beside round and epoch, which are their addresses; the rows
/// held out follow from the configuration and the rows' numbers.
#[derive(Serialize, Deserialize)]
struct Description {
    version: String,
    manifest: Value,
    round: u32,
    epoch: u32,
    steps: u64,
    optimiser_steps: u64,
    best: Option<(u32, f64, f64)>,
    train_loss: Option<f64>,
    validation_loss: Option<f64>,
    pairs: u64,
    seconds: f64,
    stop: Option<StopReason>,
    coordinates: Coordinates,
    recentred: bool,
}

impl RunDir {
    /// Saves the state of training after an epoch; other events have none.
    pub fn save_training(&self, event: &Event) -> Result<()> {
        let Event::Epoch { report, fit, coordinates, recentred } = event else { return Ok(()) };
        let described = Description {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            manifest: self.stored_manifest(),
            round: report.round,
            epoch: fit.epoch,
            steps: fit.steps,
            optimiser_steps: fit.engine.steps,
            best: fit.best.as_ref().map(|best| (best.epoch, best.loss, best.train_loss)),
            train_loss: fit.train_loss,
            validation_loss: fit.validation_loss,
            pairs: fit.pairs,
            seconds: fit.seconds,
            stop: fit.stop,
            coordinates: (*coordinates).clone(),
            recentred: *recentred,
        };
        let best = fit.best.as_ref().map_or_else(Vec::new, |best| best.params.clone());
        let EngineState { params, m, v, .. } = &fit.engine;
        let tensors = TENSORS.iter().zip([params.clone(), m.clone(), v.clone(), best]);
        let tensors = tensors.map(|(name, data)| NamedTensor::flat(name, data)).collect();
        let json = serde_json::to_string(&described).expect("numbers and strings");
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

fn decode(file: TensorFile, manifest: &Value) -> Decoded<Training> {
    let found: Description = serde_json::from_str(&file.json).map_err(|e| corrupted(&e))?;
    check_manifest(&found.manifest, manifest)?;
    let tensors: Vec<Vec<f32>> = file.tensors.into_iter().map(|tensor| tensor.data).collect();
    let Ok([params, m, v, best]) = <[Vec<f32>; 4]>::try_from(tensors) else {
        return Err(corrupted(&"tensors are missing"));
    };
    let len = params.len();
    let best_len = if found.best.is_some() { len } else { 0 };
    if (m.len(), v.len(), best.len()) != (len, len, best_len) {
        return Err(corrupted(&"its tensors have different lengths"));
    }
    let best =
        found.best.map(|(epoch, loss, train_loss)| Best { epoch, loss, train_loss, params: best });
    let fit = FitState {
        epoch: found.epoch,
        steps: found.steps,
        engine: EngineState { params, m, v, steps: found.optimiser_steps },
        best,
        train_loss: found.train_loss,
        validation_loss: found.validation_loss,
        pairs: found.pairs,
        seconds: found.seconds,
        stop: found.stop,
    };
    let Description { round, coordinates, recentred, .. } = found;
    Ok(Training { round, coordinates, recentred, fit })
}
