//! Saving a flow with its parameters as one safetensors file, and loading it again.
//!
//! Every parameter tensor is stored under its name ([`Tensor`](super::Tensor)), so that any tool that
//! reads safetensors can use the file. Its metadata hold the format version, shape and scalings of the
//! flow as JSON, and a checksum of that JSON and the parameters.

use super::{FlowConfig, Scaling, SplineFlow};
use crate::error::{Error, FileProblem, Result};
use crate::files::write_whole;
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorView};
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::path::Path;

/// Version of the format that this program writes.
const VERSION: u32 = 1;
const FORMAT_KEY: &str = "didyma.format";
const MODEL_KEY: &str = "didyma.model";
const CHECKSUM_KEY: &str = "didyma.crc32";
/// Length of the number that opens a safetensors file.
const PREFIX: usize = 8;
/// The longest header that the safetensors format allows.
const LONGEST_HEADER: usize = 100_000_000;

#[derive(Serialize, Deserialize)]
struct Model {
    flow: FlowConfig,
    theta: Scaling,
    x: Scaling,
}

impl SplineFlow {
    /// Writes the flow and its parameters to `path`.
    ///
    /// The file appears whole or not at all.
    pub fn save(&self, params: &[f32], path: &Path) -> Result<()> {
        self.check_params(params)?;
        write_whole(path, &self.encode(params))
    }

    /// Reads a flow and its parameters from a file that [`SplineFlow::save`] wrote.
    pub fn load(path: &Path) -> Result<(Self, Vec<f32>)> {
        let io = |source| Error::Io { action: "read", path: path.to_owned(), source };
        let bytes = std::fs::read(path).map_err(io)?;
        decode(&bytes).map_err(|problem| Error::ModelFile { path: path.to_owned(), problem })
    }

    fn encode(&self, params: &[f32]) -> Vec<u8> {
        let data: Vec<u8> = params.iter().flat_map(|p| p.to_le_bytes()).collect();
        let model =
            Model { flow: self.config.clone(), theta: self.theta.clone(), x: self.x.clone() };
        let model = serde_json::to_string(&model).expect("numbers and strings");
        let metadata = HashMap::from([
            (FORMAT_KEY.to_owned(), VERSION.to_string()),
            (CHECKSUM_KEY.to_owned(), checksum(&model, &data)),
            (MODEL_KEY.to_owned(), model),
        ]);
        let tensors = self.tensors().iter().map(|tensor| {
            let bytes = &data[4 * tensor.range.start..4 * tensor.range.end];
            let view = TensorView::new(Dtype::F32, tensor.shape.clone(), bytes);
            (&tensor.name, view.expect("the shape fits the range"))
        });
        safetensors::serialize(tensors, Some(metadata)).expect("names are different and sizes fit")
    }
}

fn decode(bytes: &[u8]) -> std::result::Result<(SplineFlow, Vec<f32>), FileProblem> {
    let corrupted = |what: &dyn std::fmt::Display| FileProblem::Corrupted(what.to_string());
    let metadata = read_header(bytes)?;
    let entry = |key: &str| {
        let found = metadata.metadata().as_ref().and_then(|m| m.get(key));
        found.ok_or_else(|| FileProblem::Foreign(format!("its metadata have no {key}")))
    };
    let found: u32 = entry(FORMAT_KEY)?.parse().map_err(|e| corrupted(&e))?;
    if found > VERSION {
        return Err(FileProblem::Newer { found, known: VERSION });
    }
    let json = entry(MODEL_KEY)?;
    let model: Model = serde_json::from_str(json).map_err(|e| corrupted(&e))?;
    let flow = SplineFlow::scaled(model.flow, model.theta, model.x).map_err(|e| corrupted(&e))?;
    if metadata.data_len() / 4 != flow.params_len() {
        return Err(corrupted(&"its size does not match its configuration"));
    }
    let tensors = SafeTensors::deserialize(bytes).map_err(|e| corrupted(&e))?;
    let mut data = Vec::with_capacity(4 * flow.params_len());
    for tensor in flow.tensors() {
        let view = tensors.tensor(&tensor.name).map_err(|e| corrupted(&e))?;
        if view.dtype() != Dtype::F32 || view.shape() != tensor.shape {
            return Err(corrupted(&format!("{} has another shape or type", tensor.name)));
        }
        data.extend_from_slice(view.data());
    }
    if checksum(json, &data) != *entry(CHECKSUM_KEY)? {
        return Err(corrupted(&"its content does not match its checksum"));
    }
    let params: Vec<f32> =
        data.as_chunks().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
    flow.check_params(&params).map_err(|e| corrupted(&e))?;
    Ok((flow, params))
}

fn checksum(model: &str, data: &[u8]) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(model.as_bytes());
    hasher.update(data);
    format!("{:08x}", hasher.finalize())
}

/// Tells a short file and a file of another kind from a damaged one.
fn read_header(bytes: &[u8]) -> std::result::Result<Metadata, FileProblem> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(FileProblem::Truncated { found: bytes.len(), expected: PREFIX });
    };
    let header = usize::try_from(u64::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
    if rest.first().is_some_and(|&first| first != b'{') || header > LONGEST_HEADER {
        return Err(FileProblem::Foreign("it is no safetensors file".to_owned()));
    }
    if rest.len() < header {
        return Err(FileProblem::Truncated { found: bytes.len(), expected: PREFIX + header });
    }
    let metadata: Metadata = serde_json::from_slice(&rest[..header])
        .map_err(|e| FileProblem::Corrupted(format!("its header: {e}")))?;
    let expected = PREFIX + header + metadata.data_len();
    match bytes.len() < expected {
        true => Err(FileProblem::Truncated { found: bytes.len(), expected }),
        false => Ok(metadata),
    }
}
