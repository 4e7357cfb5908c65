//! Mathematics that knows nothing of inference.

pub(crate) mod binomial;
pub(crate) mod cholesky;
pub(crate) mod dual;
pub(crate) mod ecdf;
pub(crate) mod kolmogorov;
mod log_sum;
pub(crate) mod masses;
pub(crate) mod moments;
pub(crate) mod normal;
pub(crate) mod particles;
mod principal;
pub(crate) mod regression;
mod sobol;

pub use dual::Dual;
pub(crate) use log_sum::{log_mean_exp, log_sum_exp};
pub use moments::{Estimate, Moments, mean_and_deviation};
pub use normal::normal_quantile;
pub(crate) use principal::principal;
pub use regression::{Line, line};
pub use sobol::Net;
