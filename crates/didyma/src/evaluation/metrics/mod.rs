//! How far a set of samples is from a reference set, or simulations from an observation.
//!
//! | metric | 0 or best when | needs |
//! |---|---|---|
//! | [`c2st`] | ½: classifiers cannot tell the samples from the reference | two sets of samples |
//! | [`mmd2`] | 0: means in a kernel's feature space agree; a little below is possible | two sets of samples |
//! | [`sliced_wasserstein`] | 0: every projection has the same quantiles | two sets of samples |
//! | [`median_distance`] | small: simulations from the samples resemble the observation | simulations |
//! | [`nlog`] | small: the posterior is high at the true parameters | one log-density |
//!
//! The first, second and fourth are those of sbibm (Lueckmann et al. 2021) and of the paper. All
//! are functions of their arguments alone: the same numbers for any number of threads. An argument
//! that makes no sense is an error that names it.

mod c2st;
mod distance;
mod mmd;
mod wasserstein;

pub use crate::network::folds::FOLDS;
pub use c2st::{CLASSIFIER_SEEDS, c2st, c2st_by_seed, c2st_of_one_fold};
pub use distance::{median_distance, nlog};
pub use mmd::mmd2;
pub use wasserstein::sliced_wasserstein;

use crate::error::Result;
use crate::parallel;
use crate::rows::Rows;

/// What every comparison of two sets asks of them.
fn check_sets(reference: Rows, samples: Rows, threads: usize) -> Result<()> {
    samples.expect_columns(reference.columns(), "as many as the reference has")?;
    reference.expect_finite()?;
    samples.expect_finite()?;
    parallel::check_threads(threads)
}
