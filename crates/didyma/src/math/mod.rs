//! Mathematics that knows nothing of inference.

pub(crate) mod cholesky;
pub(crate) mod dual;
pub(crate) mod masses;
pub(crate) mod moments;
pub(crate) mod normal;
pub(crate) mod particles;
pub(crate) mod regression;

pub use dual::Dual;
pub use moments::{Estimate, Moments, mean_and_deviation};
pub use regression::{Line, line};
