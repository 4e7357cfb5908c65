//! The squared maximum mean discrepancy, in its unbiased form.

use super::check_sets;
use crate::error::{Error, Result};
use crate::parallel;
use crate::rows::Rows;

/// Rows whose pairs are summed as one piece of work.
const BLOCK: usize = 64;

/// Unbiased estimate of MMD² (Gretton et al. 2012, eq. 3) with a Gaussian kernel:
///
/// mean k(X, X') + mean k(Y, Y') − 2 mean k(X, Y), k(a, b) = exp(−‖a − b‖² / (2σ²)),
///
/// the first two over pairs of different rows of the reference X and of the samples Y. σ is the median
/// distance between two rows of the reference (of two middle ones the lower). Being unbiased, it may be a little
/// below zero. It takes time for all pairs, and memory for none.
///
/// ```
/// use didyma::{metrics::mmd2, Rows};
/// let reference = Rows::new("reference", &[0.0, 1.0], 1)?; // σ = 1
/// let samples = Rows::new("samples", &[0.0, 1.0, 1.0], 1)?;
/// let near = (-0.5f64).exp();
/// let expected = near + (2.0 * near + 1.0) / 3.0 - 2.0 * (3.0 + 3.0 * near) / 6.0;
/// assert!((mmd2(reference, samples, 1)? - expected).abs() < 1e-15);
/// # Ok::<(), didyma::Error>(())
/// ```
pub fn mmd2(reference: Rows, samples: Rows, threads: usize) -> Result<f64> {
    check_sets(reference, samples, threads)?;
    for rows in [reference, samples] {
        rows.expect_rows_from(2, "at least: it is a mean over pairs; draw more")?;
    }
    let sigma2 = median_square(reference, threads);
    if sigma2 == 0.0 {
        let name = "the median distance between two rows of the reference";
        let remedy = "positive: half of its pairs are equal; give reference samples that differ";
        return Err(Error::setting(name, 0, remedy));
    }
    let kernel = |a: &[f64], b: &[f64]| (-square_distance(a, b) / (2.0 * sigma2)).exp();
    let within = |rows: Rows| {
        let sum = sum_rows(rows.len(), threads, |i| {
            (0..i).map(|j| kernel(rows.row(i), rows.row(j))).sum()
        });
        sum / pairs(rows.len()) as f64
    };
    let between = sum_rows(samples.len(), threads, |i| {
        reference.iter().map(|row| kernel(samples.row(i), row)).sum()
    });
    let between = between / reference.len() as f64 / samples.len() as f64;
    Ok(within(reference) + within(samples) - 2.0 * between)
}

/// Number of pairs of different rows.
fn pairs(rows: usize) -> u64 {
    let rows = rows as u64;
    rows * (rows - 1) / 2
}

fn square_distance(a: &[f64], b: &[f64]) -> f64 {
    let square = |(&a, &b): (&f64, &f64)| (a - b).powi(2);
    a.iter().zip(b).map(square).sum()
}

/// Σ `of_row`(i); blocks are added up in their order, so that threads do not matter.
fn sum_rows(rows: usize, threads: usize, of_row: impl Fn(usize) -> f64 + Sync) -> f64 {
    let block = |b: usize| -> f64 { (b * BLOCK..rows.min((b + 1) * BLOCK)).map(&of_row).sum() };
    parallel::map(rows.div_ceil(BLOCK), threads, block).iter().sum()
}

/// The lower middle one of the squared distances between rows.
///
/// The bits of floating-point numbers that are not negative are in the order of the numbers, so they are found 16
/// at a time, from the top, by counting: no list of all pairs is kept.
fn median_square(rows: Rows, threads: usize) -> f64 {
    let (mut found, mut rank) = (0u64, (pairs(rows.len()) - 1) / 2);
    for shift in [48, 32, 16, 0] {
        let mut digit = 0;
        for count in count_digits(rows, threads, found, shift) {
            if rank < count {
                break;
            }
            rank -= count;
            digit += 1;
        }
        found |= digit << shift;
    }
    f64::from_bits(found)
}

/// How many squared distances that agree with `found` above the digit at `shift` have each digit there.
fn count_digits(rows: Rows, threads: usize, found: u64, shift: u32) -> Vec<u64> {
    let digits = 1 << 16;
    let strides = threads.min(rows.len());
    // Counts are whole numbers: the order in which they are added does not matter.
    let counts = parallel::map(strides, threads, |first| {
        let mut counts = vec![0u64; digits];
        for i in (first..rows.len()).step_by(strides) {
            for j in 0..i {
                let bits = square_distance(rows.row(i), rows.row(j)).to_bits();
                if (bits ^ found) >> shift >> 16 == 0 {
                    counts[(bits >> shift) as usize % digits] += 1;
                }
            }
        }
        counts
    });
    counts.into_iter().fold(vec![0; digits], |mut sum, counts| {
        sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        sum
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, Streams};
    use rand::RngExt;

    #[test]
    fn median_is_that_of_the_sorted_list() -> Result<()> {
        let mut rng = Streams::new(2).stream(Purpose::Synthetic, 0, 0);
        // Whole numbers have many ties; 4 and 5 rows have even, 3 and 7 odd numbers of pairs.
        for (n, whole) in [(2, false), (3, true), (4, false), (5, true), (7, false), (60, true)] {
            let draw = |_| match rng.random_range(-3.0f64..3.0) {
                v if whole => v.round(),
                v => v,
            };
            let data: Vec<f64> = (0..2 * n).map(draw).collect();
            let rows = Rows::new("rows", &data, 2)?;
            let square = |i, j| square_distance(rows.row(i), rows.row(j));
            let mut all: Vec<f64> =
                (0..n).flat_map(|i| (0..i).map(move |j| square(i, j))).collect();
            all.sort_unstable_by(f64::total_cmp);
            for threads in [1, 3] {
                assert_eq!(median_square(rows, threads), all[(all.len() - 1) / 2]);
            }
        }
        Ok(())
    }
}
