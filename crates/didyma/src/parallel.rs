//! Independent pieces of work on several threads, with results in the order of the pieces.

use crate::error::{Error, Result};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

/// All cores of this machine.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// Refuses numbers of threads that no machine has.
pub fn check_threads(threads: usize) -> Result<()> {
    match (1..=1024).contains(&threads) {
        true => Ok(()),
        false => Err(Error::setting("threads", threads, "between 1 and 1024")),
    }
}

/// `work(0), work(1), …, work(count − 1)`, computed by up to `threads` threads. The result does not
/// depend on their number; a panic in one of them reaches the caller.
///
/// ```
/// use didyma::parallel;
/// assert_eq!(parallel::map(5, 2, |i| i * i), [0, 1, 4, 9, 16]);
/// ```
pub fn map<T: Send>(count: usize, threads: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
    if threads <= 1 || count <= 1 {
        return (0..count).map(work).collect();
    }
    let next = AtomicUsize::new(0);
    let done = Mutex::new(Vec::with_capacity(count));
    std::thread::scope(|scope| {
        for _ in 0..threads.min(count) {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    if i >= count {
                        break;
                    }
                    let result = work(i);
                    done.lock().unwrap_or_else(PoisonError::into_inner).push((i, result));
                }
            });
        }
    });
    let mut done = done.into_inner().unwrap_or_else(PoisonError::into_inner);
    done.sort_unstable_by_key(|(i, _)| *i);
    done.into_iter().map(|(_, result)| result).collect()
}

/// Rows that `work` writes one by one, in order, computed by up to `threads` threads.
pub fn rows<T: Send>(
    count: usize,
    threads: usize,
    work: impl Fn(usize, &mut Vec<T>) + Sync,
) -> Vec<T> {
    let pieces = map(count.div_ceil(PIECE), threads, |piece| {
        let mut rows = Vec::new();
        (piece * PIECE..count.min((piece + 1) * PIECE)).for_each(|row| work(row, &mut rows));
        rows
    });
    pieces.into_iter().flatten().collect()
}

/// Rows of a piece of work.
const PIECE: usize = 1024;
