//! Named f32 tensors and one JSON text in a safetensors file, with format version and checksum.
//!
//! Models and checkpoints are such files, so any tool that reads safetensors can use them. The metadata hold
//! the version, the JSON under the name of the file's kind, and the CRC-32 of the JSON and of the tensors in the
//! order of whoever wrote them. A reader says which tensors it expects, in that order.

use crate::error::{Error, FileFault, Result};
use crate::storage::files::{read_inside, write_inside, write_whole};
use safetensors::tensor::{Dtype, Metadata, SafeTensors};
use serde_json::json;
use std::fmt::Display;
use std::path::Path;

/// Version of the format that this program writes.
const VERSION: u32 = 2;
const FORMAT_KEY: &str = "didyma.format";
const CHECKSUM_KEY: &str = "didyma.crc32";
/// Length of the number that opens a safetensors file.
const PREFIX: usize = 8;
/// The longest header that the safetensors format allows.
const LONGEST_HEADER: usize = 100_000_000;

/// What opening the bytes of a file comes to.
pub(crate) type Decoded<T> = std::result::Result<T, FileFault>;

/// The content of one file.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorFile {
    /// What it is, in one word of the user: `model` or `checkpoint`.
    pub kind: &'static str,
    /// Everything that is not a tensor, as JSON.
    pub json: String,
    /// The tensors; their names must be different.
    pub tensors: Vec<NamedTensor>,
}

/// Numbers with a name and a shape.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Its name in the file.
    pub name: String,
    /// Sizes whose product is the number of numbers.
    pub shape: Vec<usize>,
    /// The numbers, the last dimension fastest.
    pub data: Vec<f32>,
}

impl NamedTensor {
    /// A vector.
    pub fn flat(name: &str, data: Vec<f32>) -> Self {
        Self { name: name.to_owned(), shape: vec![data.len()], data }
    }
}

impl TensorFile {
    /// Writes the file, whole or not at all.
    pub fn save(&self, path: &Path) -> Result<()> {
        write_whole(path, &self.encode())
    }

    /// Writes the file into the directory of a run, where no link is followed.
    pub(crate) fn save_inside(&self, path: &Path) -> Result<()> {
        write_inside(path, &self.encode())
    }

    /// Reads a file of this kind with these tensors and no others, in the order in which they were saved.
    pub fn load(path: &Path, kind: &'static str, names: &[&str]) -> Result<Self> {
        let bytes = read_inside(path)?;
        let damaged = |fault| Error::ModelFile { path: path.to_owned(), fault };
        Self::decode(&bytes, kind, names).map_err(damaged)
    }

    /// The bytes of the file: always the same for the same content.
    pub fn encode(&self) -> Vec<u8> {
        let numbers = self.tensors.iter().flat_map(|tensor| &tensor.data);
        let data: Vec<u8> = numbers.flat_map(|number| number.to_le_bytes()).collect();
        // Our own header, since the crate's has its metadata in random order.
        let mut header = serde_json::Map::new();
        let metadata = json!({
            FORMAT_KEY: VERSION.to_string(),
            CHECKSUM_KEY: checksum(&self.json, [&data[..]]),
            key(self.kind): self.json,
        });
        header.insert("__metadata__".to_owned(), metadata);
        let mut start = 0;
        for tensor in &self.tensors {
            let end = start + 4 * tensor.data.len();
            let info = json!({"dtype": "F32", "shape": tensor.shape, "data_offsets": [start, end]});
            header.insert(tensor.name.clone(), info);
            start = end;
        }
        let mut header = serde_json::Value::Object(header).to_string().into_bytes();
        // The numbers begin at a multiple of their size, for readers that map the file into memory.
        header.resize(header.len().next_multiple_of(PREFIX), b' ');
        [&(header.len() as u64).to_le_bytes(), &header[..], &data[..]].concat()
    }

    /// Reads bytes that [`TensorFile::encode`] wrote for a file of this kind with these tensors.
    pub fn decode(bytes: &[u8], kind: &'static str, names: &[&str]) -> Decoded<Self> {
        let metadata = header(bytes, kind)?;
        let entry = |key: &str| {
            let found = metadata.metadata().as_ref().and_then(|m| m.get(key));
            found.ok_or_else(|| foreign(kind, &format!("its metadata have no {key}")))
        };
        let found: u32 = entry(FORMAT_KEY)?.parse().map_err(|e| corrupted(&e))?;
        match found {
            1..=VERSION => {}
            0 => return Err(corrupted(&"there is no version 0 of its format")),
            _ => return Err(FileFault::Newer { found, known: VERSION }),
        }
        let (json, sum) = (entry(&key(kind))?, entry(CHECKSUM_KEY)?);
        let tensors = SafeTensors::deserialize(bytes).map_err(|e| corrupted(&e))?;
        if tensors.len() != names.len() {
            return Err(corrupted(&format!("{} tensors of {}", tensors.len(), names.len())));
        }
        let views: std::result::Result<Vec<_>, _> =
            names.iter().map(|name| tensors.tensor(name)).collect();
        let views = views.map_err(|e| corrupted(&e))?;
        if checksum(json, views.iter().map(|view| view.data())) != *sum {
            return Err(corrupted(&"its content does not match its checksum"));
        }
        let tensors = names.iter().zip(&views).map(|(&name, view)| {
            let numbers = view.data().as_chunks().0.iter();
            let data = numbers.map(|&number| f32::from_le_bytes(number)).collect();
            NamedTensor { name: name.to_owned(), shape: view.shape().to_vec(), data }
        });
        Ok(Self { kind, json: json.clone(), tensors: tensors.collect() })
    }
}

pub(crate) fn corrupted(what: &dyn Display) -> FileFault {
    FileFault::Corrupted(what.to_string())
}

fn foreign(kind: &str, why: &str) -> FileFault {
    FileFault::Foreign(format!("a Didyma {kind} ({why})"))
}

/// Where the JSON stands in the metadata.
fn key(kind: &str) -> String {
    format!("didyma.{kind}")
}

fn checksum<'a>(json: &str, data: impl IntoIterator<Item = &'a [u8]>) -> String {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(json.as_bytes());
    data.into_iter().for_each(|bytes| hasher.update(bytes));
    format!("{:08x}", hasher.finalize())
}

/// Tells a short file and a file of another kind from a damaged one.
fn header(bytes: &[u8], kind: &str) -> Decoded<Metadata> {
    let Some((prefix, rest)) = bytes.split_first_chunk::<PREFIX>() else {
        return Err(FileFault::Truncated { found: bytes.len(), expected: PREFIX });
    };
    let header = usize::try_from(u64::from_le_bytes(*prefix)).unwrap_or(usize::MAX);
    if rest.first().is_some_and(|&first| first != b'{') || header > LONGEST_HEADER {
        return Err(foreign(kind, "it is no safetensors file"));
    }
    if rest.len() < header {
        return Err(FileFault::Truncated { found: bytes.len(), expected: PREFIX + header });
    }
    let metadata: Metadata = serde_json::from_slice(&rest[..header])
        .map_err(|e| corrupted(&format!("its header: {e}")))?;
    let expected = (PREFIX + header).saturating_add(metadata.data_len());
    if bytes.len() < expected {
        return Err(FileFault::Truncated { found: bytes.len(), expected });
    }
    match metadata.tensors().values().find(|info| info.dtype != Dtype::F32) {
        Some(info) => Err(foreign(kind, &format!("it holds {:?}, not F32", info.dtype))),
        None => Ok(metadata),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use safetensors::tensor::TensorView;

    const NAMES: [&str; 3] = ["params", "first", "best"];

    fn checkpoint() -> TensorFile {
        let tensors = vec![
            NamedTensor::flat("params", vec![1.0, -0.0, f32::MIN_POSITIVE]),
            NamedTensor { name: "first".into(), shape: vec![2, 2], data: vec![1.0; 4] },
            NamedTensor::flat("best", Vec::new()),
        ];
        TensorFile { kind: "checkpoint", json: "{\"epoch\":3}".to_owned(), tensors }
    }

    #[test]
    fn what_was_saved_is_loaded_and_other_tools_can_read_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("checkpoint.safetensors");
        let file = checkpoint();
        file.save(&path).unwrap();
        assert_eq!(TensorFile::load(&path, "checkpoint", &NAMES).unwrap(), file);
        assert_eq!(file.encode(), file.encode());
        let bytes = std::fs::read(&path).unwrap();
        let other = SafeTensors::deserialize(&bytes).unwrap();
        assert_eq!(other.tensor("first").unwrap().shape(), [2, 2]);
    }

    #[test]
    fn another_kind_or_other_tensors_are_refused_with_the_reason() {
        let bytes = checkpoint().encode();
        let told =
            |kind, names: &[&str]| TensorFile::decode(&bytes, kind, names).unwrap_err().to_string();
        assert_eq!(
            told("model", &NAMES),
            "it is not a Didyma model (its metadata have no didyma.model); give one that Didyma saved"
        );
        assert!(told("checkpoint", &NAMES[..2]).contains("3 tensors of 2"));
        assert!(told("checkpoint", &["params", "first", "second"]).contains("corrupted"));
        // The order is a part of what was agreed on, and the checksum notices.
        assert!(told("checkpoint", &["first", "params", "best"]).contains("checksum"));
    }

    /// Programs before this module let the crate write the tensors, in the order of their names, while the checksum has
    /// them in the order that was agreed on.
    #[test]
    fn files_with_their_tensors_in_another_order_still_load() {
        let file = checkpoint();
        let bytes = file.encode();
        let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
        let le_bytes =
            |tensor: &NamedTensor| tensor.data.iter().flat_map(|p| p.to_le_bytes()).collect();
        let data: Vec<Vec<u8>> = file.tensors.iter().map(le_bytes).collect();
        let views = file.tensors.iter().zip(&data).map(|(tensor, data)| {
            (&tensor.name, TensorView::new(Dtype::F32, tensor.shape.clone(), data).unwrap())
        });
        let earlier = safetensors::serialize(views, header.metadata().clone()).unwrap();
        let order = |bytes| SafeTensors::read_metadata(bytes).unwrap().1.offset_keys();
        assert_ne!(order(&earlier), order(&bytes));
        assert_eq!(TensorFile::decode(&earlier, "checkpoint", &NAMES).unwrap(), file);
    }

    #[test]
    fn every_changed_byte_and_every_truncation_is_an_error() {
        let bytes = checkpoint().encode();
        let padding = bytes.len() - 7 * 4 - 8;
        for at in 0..bytes.len() {
            assert!(TensorFile::decode(&bytes[..at], "checkpoint", &NAMES).is_err(), "{at} bytes");
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                // JSON allows a few other blanks where the header is padded.
                let blank = at >= padding && bytes[at] == b' ' && damaged[at].is_ascii_whitespace();
                let loaded = TensorFile::decode(&damaged, "checkpoint", &NAMES);
                assert!(loaded.is_err() || blank, "bit {bit} of byte {at}");
            }
        }
    }
}
