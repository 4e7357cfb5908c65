//! Mathematics that knows nothing of inference.

pub(crate) mod cholesky;
pub mod dual;
pub(crate) mod moments;
pub(crate) mod normal;
pub(crate) mod particles;
pub(crate) mod regression;
