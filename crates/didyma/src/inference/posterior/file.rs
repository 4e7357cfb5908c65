//! A posterior as a file.

use super::Posterior;
use crate::density::coordinates::Coordinates;
use crate::density::{Density, DensityConfig, Ensemble};
use crate::error::{Error, FileFault, Result};
use crate::inference::ranges::Ranges;
use crate::problem::prior::Prior;
use crate::storage::tensors::{Decoded, NamedTensor, TensorFile, corrupted};
use crate::training::Cpu;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// All of a posterior but its parameters, as files hold it.
#[derive(Serialize, Deserialize)]
struct Description {
    version: String,
    prior: Prior,
    coordinates: Coordinates,
    #[serde(flatten)]
    density: DensityConfig,
    /// How many follow each other in the parameters.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    members: usize,
    observation: Vec<f64>,
    /// Where summaries fell; models of version 0.1.0 do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ranges: Option<Ranges>,
    /// How it was made.
    about: Value,
}

fn one() -> usize {
    1
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_one(members: &usize) -> bool {
    *members == 1
}

const KIND: &str = "posterior";
const PARAMS: &str = "params";

impl Posterior {
    /// Writes the posterior to one file, whole or not at all; `about` says how it was made.
    pub fn save(&self, path: &Path, about: &Value) -> Result<()> {
        self.file(about).save(path)
    }

    /// The bytes of such a file.
    pub fn to_bytes(&self, about: &Value) -> Vec<u8> {
        self.file(about).encode()
    }

    fn file(&self, about: &Value) -> TensorFile {
        let described = Description {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            prior: self.prior.clone(),
            coordinates: self.coordinates.clone(),
            density: self.model().config(),
            members: self.members(),
            observation: self.observation.clone(),
            ranges: self.ranges.clone(),
            about: about.clone(),
        };
        let json = serde_json::to_string(&described).expect("numbers and strings");
        let tensors = vec![NamedTensor::flat(PARAMS, self.ensemble.members().concat())];
        TensorFile { kind: KIND, json, tensors }
    }

    /// Reads a posterior that [`Posterior::save`] wrote.
    pub fn load(path: &Path) -> Result<Self> {
        Self::load_if(path, |_| Ok(()))
    }

    /// Reads what [`Posterior::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> std::result::Result<Self, FileFault> {
        let file = TensorFile::decode(bytes, KIND, &[PARAMS])?;
        Self::decode(file, |_| Ok(()))
    }

    /// Reads a posterior if what it says about how it was made is accepted.
    pub(crate) fn load_if(path: &Path, accept: impl FnOnce(&Value) -> Decoded<()>) -> Result<Self> {
        let file = TensorFile::load(path, KIND, &[PARAMS])?;
        let posterior = Self::decode(file, accept);
        posterior.map_err(|fault| Error::ModelFile { path: path.to_owned(), fault })
    }

    fn decode(file: TensorFile, accept: impl FnOnce(&Value) -> Decoded<()>) -> Decoded<Self> {
        let found: Description = serde_json::from_str(&file.json).map_err(|e| corrupted(&e))?;
        accept(&found.about)?;
        let Description { prior, coordinates, density, members, observation, ranges, .. } = found;
        let density = Density::new(density).map_err(|e| corrupted(&e))?;
        let agree = density.dims() == (prior.dim(), observation.len())
            && coordinates.fit(prior.dim(), observation.len())
            && ranges.as_ref().is_none_or(|ranges| ranges.fit(observation.len()));
        if !agree {
            return Err(corrupted(&"its parts have different dimensions"));
        }
        let params = file.tensors.into_iter().flat_map(|tensor| tensor.data).collect::<Vec<_>>();
        let each = density.params_len();
        if members == 0 || members.checked_mul(each) != Some(params.len()) {
            return Err(corrupted(&format!("{members} members of {} parameters", params.len())));
        }
        let members: Vec<Vec<f32>> = params.chunks_exact(each).map(<[f32]>::to_vec).collect();
        for params in &members {
            density.check_params(params).map_err(|e| corrupted(&e))?;
        }
        let ensemble = Ensemble::new(density, members);
        Ok(Self { prior, coordinates, ensemble, observation, ranges, device: Arc::new(Cpu) })
    }
}
