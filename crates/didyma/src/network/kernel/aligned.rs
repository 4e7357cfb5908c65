//! A fixed-size buffer that starts on a cache line, so that no SIMD load straddles two.

use super::Real;
use std::ops::{Deref, DerefMut};

const CACHE_LINE: usize = 64;

/// Zeroed numbers whose first lies on a 64-byte boundary.
#[derive(Debug)]
pub struct Aligned<F> {
    data: Vec<F>,
    start: usize,
    len: usize,
}

impl<F: Real> Aligned<F> {
    /// `len` zeros.
    pub fn zeros(len: usize) -> Self {
        let data = vec![F::zero(); len + CACHE_LINE / size_of::<F>()];
        let start = data.as_ptr().align_offset(CACHE_LINE);
        assert!(start + len <= data.len(), "a Vec of floats can be aligned");
        Self { data, start, len }
    }
}

impl<F> Deref for Aligned<F> {
    type Target = [F];
    fn deref(&self) -> &[F] {
        &self.data[self.start..self.start + self.len]
    }
}

impl<F> DerefMut for Aligned<F> {
    fn deref_mut(&mut self) -> &mut [F] {
        &mut self.data[self.start..self.start + self.len]
    }
}
