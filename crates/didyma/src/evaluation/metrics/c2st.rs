//! The classifier two-sample test: how often a network tells samples from a reference.

use super::check_sets;
use crate::error::{Error, Result};
use crate::math::{Estimate, mean_and_deviation};
use crate::network::classifier::{Classifier, Labelled};
use crate::network::folds::{FOLDS, fold_rows};
use crate::parallel;
use crate::rng::{Purpose, Streams};
use crate::rows::Rows;
use rand::seq::SliceRandom;

/// Largest number of standard deviations that the classifier is shown.
///
/// A reference of n rows lies within (n − 1)/√n of its own deviations from its mean, so for any reference
/// that fits into memory only samples that nothing could confuse with it are cut, and f32 does not overflow.
const FARTHEST: f64 = 1e6;

/// Classifier seeds over which [`c2st`] is a mean.
///
/// Of 2000 against 2000 rows the result of one seed has a standard deviation of up to .02 from its folds and first
/// weights alone.
pub const CLASSIFIER_SEEDS: usize = 4;

/// Accuracy, on held-out rows, of a classifier trained to tell `samples` from `reference`: ½ if
/// they have the same law, 1 if a network can separate them (Friedman 2003; Lopez-Paz & Oquab 2017).
///
/// It is the mean over [`CLASSIFIER_SEEDS`] classifier seeds, with its standard error over these seeds: how far
/// more seeds could move the result for the same rows. How far other rows would move it is not part of the error.
///
/// As in sbibm, for each seed: both sets are brought to the mean and standard deviation of the reference (a constant
/// column keeps its scale), shuffled together and cut into five folds; a network with two hidden layers of
/// 10 · dim rectified units is trained on four of them and judged by its accuracy on the fifth; the result is
/// the mean of the five. If the sets have different sizes, always naming the larger one is already better
/// than ½: give sets of one size.
///
/// ```
/// use didyma::{metrics::c2st, rng::Streams, Rows};
/// let near: Vec<f64> = (0..50).map(|i| f64::from(i) / 50.0).collect();
/// let far: Vec<f64> = near.iter().map(|x| x + 9.0).collect();
/// let (near, far) = (Rows::new("reference", &near, 1)?, Rows::new("samples", &far, 1)?);
/// let found = c2st(near, far, 1, &Streams::new(1))?;
/// assert_eq!((found.mean, found.error), (1.0, 0.0));
/// # Ok::<(), didyma::Error>(())
/// ```
pub fn c2st(reference: Rows, samples: Rows, threads: usize, streams: &Streams) -> Result<Estimate> {
    let by_seed = c2st_by_seed(reference, samples, (CLASSIFIER_SEEDS, FOLDS), threads, streams)?;
    Ok(Estimate::of(&by_seed))
}

/// The same from a fifth of the work: each seed is judged on one of its five folds alone. Its expectation is that of
/// [`c2st`]. Its standard error is larger, since a seed then also chooses the rows that are asked about.
pub fn c2st_of_one_fold(
    reference: Rows,
    samples: Rows,
    threads: usize,
    streams: &Streams,
) -> Result<Estimate> {
    let by_seed = c2st_by_seed(reference, samples, (CLASSIFIER_SEEDS, 1), threads, streams)?;
    Ok(Estimate::of(&by_seed))
}

/// The accuracy of [`c2st`] for each of so many classifier seeds, by so many of its five folds. A seed is the order of the
/// rows, and so the folds, the first weights and the batches; the first seeds are the same, however many follow.
pub fn c2st_by_seed(
    reference: Rows,
    samples: Rows,
    (seeds, folds): (usize, usize),
    threads: usize,
    streams: &Streams,
) -> Result<Vec<f64>> {
    if !(1..=MOST_SEEDS).contains(&seeds) {
        return Err(Error::setting("seeds", seeds, "between 1 and 1000"));
    }
    if !(1..=FOLDS).contains(&folds) {
        return Err(Error::setting("folds", folds, "between 1 and 5"));
    }
    // Seeds that take some of their folds alone begin with different ones.
    let job = |i: usize| (i / folds, (i / folds + i % folds) % FOLDS);
    let jobs: Vec<_> = (0..seeds * folds).map(job).collect();
    let accuracies = accuracies(reference, samples, &jobs, threads, streams)?;
    let mean = |of: &[f64]| of.iter().sum::<f64>() / folds as f64;
    Ok(accuracies.chunks_exact(folds).map(mean).collect())
}

/// Most classifier seeds: beyond, their error is nothing beside that of the rows.
const MOST_SEEDS: usize = 1000;

/// Accuracies of networks on these folds of these seeds.
fn accuracies(
    reference: Rows,
    samples: Rows,
    jobs: &[(usize, usize)],
    threads: usize,
    streams: &Streams,
) -> Result<Vec<f64>> {
    check_sets(reference, samples, threads)?;
    for rows in [reference, samples] {
        rows.expect_rows_from(FOLDS, "at least one for each of the five folds; draw more")?;
    }
    let data = scaled(reference, samples);
    let labelled = Labelled::new(&data, reference.columns(), reference.len());
    Ok(parallel::map(jobs.len(), threads, |i| accuracy(labelled, streams, jobs[i])))
}

/// Accuracy on a fold of a network that is trained on the others.
fn accuracy(data: Labelled, streams: &Streams, (seed, fold): (usize, usize)) -> f64 {
    // Streams of other rounds belong to other metrics and to draws.
    let stream = |index: usize| streams.stream(Purpose::Metric, 0, (2 * seed + index) as u64);
    let mut order: Vec<usize> = (0..data.len()).collect();
    order.shuffle(&mut stream(0));
    let held_out = fold_rows(order.len(), fold);
    let mut rest = [&order[..held_out.start], &order[held_out.end..]].concat();
    let mut classifier = Classifier::<f32>::new(data, rest.len());
    // As in sbibm, every fold of a seed starts from the same random state.
    classifier.fit(&mut rest, &mut stream(1));
    classifier.accuracy(&order[held_out])
}

/// Reference and samples, one after the other, in standard deviations of the reference.
fn scaled(reference: Rows, samples: Rows) -> Vec<f32> {
    let scales: Vec<_> = (0..reference.columns()).map(|c| scale(reference, c)).collect();
    let in_scale = |row: &[f64]| -> Vec<f32> {
        let z = |(v, &(mean, deviation)): (&f64, &(f64, f64))| {
            ((v - mean) / deviation).clamp(-FARTHEST, FARTHEST) as f32
        };
        row.iter().zip(&scales).map(z).collect()
    };
    reference.iter().chain(samples.iter()).flat_map(in_scale).collect()
}

/// Mean and deviation of a column; 1 if all its numbers are the same.
fn scale(rows: Rows, column: usize) -> (f64, f64) {
    let values: Vec<f64> = rows.iter().map(|row| row[column]).collect();
    let (mean, deviation) = mean_and_deviation(&values);
    (mean, if deviation > 0.0 { deviation } else { 1.0 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_sets_are_scaled_by_the_reference() -> Result<()> {
        let reference = [1.0, 7.1, 2.0, 7.1, 3.0, 7.1];
        let samples = [4.0, 8.1, f64::MAX, -1e300];
        let z = scaled(Rows::new("r", &reference, 2)?, Rows::new("s", &samples, 2)?);
        // Mean 2, deviation 1; the second column is constant, and 8.1 − 7.1 is rounded.
        assert_eq!(z[..7], [-1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 2.0]);
        assert!((z[7] - 1.0).abs() < 1e-6);
        assert_eq!(z[8..], [FARTHEST as f32, -FARTHEST as f32]);
        Ok(())
    }
}
