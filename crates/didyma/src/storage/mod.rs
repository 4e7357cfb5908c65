//! Files that appear whole or not at all, in the formats that Didyma reads and writes.

pub(crate) mod cells;
pub(crate) mod files;
mod npz;
pub(crate) mod table;
pub(crate) mod tensors;

pub use files::{write_inside, write_whole};
pub use npz::{Array, npz};
pub use table::Table;
pub use tensors::{NamedTensor, TensorFile};
