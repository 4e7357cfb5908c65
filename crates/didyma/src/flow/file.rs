//! Saving a flow with its parameters as one safetensors file, and loading it again.
//!
//! Every parameter tensor is stored under its name ([`Tensor`](super::Tensor)); shape and scalings of the flow are the
//! JSON beside them.

use super::{FlowConfig, Scaling, SplineFlow};
use crate::error::Result;
use crate::tensors::{Decoded, NamedTensor, TensorFile, corrupted, read};
use serde::{Deserialize, Serialize};
use std::path::Path;

const KIND: &str = "model";

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
        self.tensor_file(params).save(path)
    }

    /// Reads a flow and its parameters from a file that [`SplineFlow::save`] wrote.
    pub fn load(path: &Path) -> Result<(Self, Vec<f32>)> {
        read(path, decode)
    }

    fn tensor_file(&self, params: &[f32]) -> TensorFile {
        let model =
            Model { flow: self.config.clone(), theta: self.theta.clone(), x: self.x.clone() };
        let json = serde_json::to_string(&model).expect("numbers and strings");
        let tensors = self.tensors().iter().map(|tensor| NamedTensor {
            name: tensor.name.clone(),
            shape: tensor.shape.clone(),
            data: params[tensor.range.clone()].to_vec(),
        });
        TensorFile { kind: KIND, json, tensors: tensors.collect() }
    }
}

fn decode(bytes: &[u8]) -> Decoded<(SplineFlow, Vec<f32>)> {
    let file = TensorFile::decode(bytes, KIND, |json| {
        Ok(described(json, bytes.len())?.tensors().iter().map(|t| t.name.clone()).collect())
    })?;
    let flow = described(&file.json, bytes.len())?;
    let mut params = Vec::with_capacity(flow.params_len());
    for (tensor, found) in flow.tensors().iter().zip(file.tensors) {
        if found.shape != tensor.shape {
            return Err(corrupted(&format!("{} has another shape", tensor.name)));
        }
        params.extend(found.data);
    }
    flow.check_params(&params).map_err(|e| corrupted(&e))?;
    Ok((flow, params))
}

/// The flow that the JSON describes; it must have room in a file of this many bytes.
fn described(json: &str, bytes: usize) -> Decoded<SplineFlow> {
    let model: Model = serde_json::from_str(json).map_err(|e| corrupted(&e))?;
    let flow = SplineFlow::scaled(model.flow, model.theta, model.x).map_err(|e| corrupted(&e))?;
    match flow.params_len() > bytes / 4 {
        true => Err(corrupted(&"its size does not match its configuration")),
        false => Ok(flow),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use safetensors::tensor::{Dtype, SafeTensors, TensorView};

    /// Programs before [`crate::tensors`] let the crate write the tensors, in the order of their names (layer 10 before
    /// layer 2), while the checksum has them in the order of the flow.
    #[test]
    fn files_with_their_tensors_in_another_order_still_load() {
        let config =
            FlowConfig { layers: 11, units: 2, blocks: 1, bins: 2, ..FlowConfig::new(2, 1) };
        let flow = SplineFlow::new(config).unwrap();
        let params = flow.initial_params(&mut Streams::new(1).stream(Purpose::Weights, 0, 0));
        let file = flow.tensor_file(&params);
        let bytes = file.encode();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let data: Vec<Vec<u8>> = file
            .tensors
            .iter()
            .map(|tensor| tensor.data.iter().flat_map(|p| p.to_le_bytes()).collect())
            .collect();
        let views = file.tensors.iter().zip(&data).map(|(tensor, data)| {
            (&tensor.name, TensorView::new(Dtype::F32, tensor.shape.clone(), data).unwrap())
        });
        let earlier = safetensors::serialize(views, header.metadata().clone()).unwrap();
        let order = |bytes| SafeTensors::read_metadata(bytes).unwrap().1.offset_keys();
        assert_ne!(order(&earlier), order(&bytes));
        assert_eq!(decode(&earlier).unwrap().1, params);
    }
}
