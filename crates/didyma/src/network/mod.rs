//! The arithmetic of networks: hot loops, small networks, a classifier.

pub(crate) mod classifier;
pub(crate) mod folds;
#[allow(unsafe_code)]
pub mod kernel;
pub(crate) mod mlp;
