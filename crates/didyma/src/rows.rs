//! Borrowed row-major matrices, the only matrix type of the public interface.

use crate::error::{Error, Result};

/// `len` rows of `columns` numbers each, one after the other: f64 as users see them, f32 in the coordinates of a flow.
///
/// ```
/// use didyma::Rows;
/// let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];
/// let rows = Rows::new("theta", &data, 3)?;
/// assert_eq!((rows.len(), rows.columns()), (2, 3));
/// assert_eq!(rows.row(1), [4.0, 5.0, 6.0]);
/// assert!(Rows::new("theta", &data, 4).is_err());
/// # Ok::<(), didyma::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Rows<'a, T = f64> {
    name: &'static str,
    data: &'a [T],
    columns: usize,
}

impl<'a, T: Copy + Into<f64>> Rows<'a, T> {
    /// Views `data` as rows of `columns` numbers. `name` is what error messages call it.
    pub fn new(name: &'static str, data: &'a [T], columns: usize) -> Result<Self> {
        if columns == 0 {
            let why = "a row holds at least one number";
            return Err(Error::Shape { name, unit: "columns", found: 0, expected: 1, why });
        }
        if !data.len().is_multiple_of(columns) {
            return Err(Error::Shape {
                name,
                unit: "numbers",
                found: data.len(),
                expected: data.len().next_multiple_of(columns),
                why: "whole rows",
            });
        }
        Ok(Self { name, data, columns })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.data.len() / self.columns
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.data.is_empty()
    }

    /// Numbers in a row.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Row `i`; panics if there is none.
    pub fn row(&self, i: usize) -> &'a [T] {
        &self.data[i * self.columns..][..self.columns]
    }

    /// All rows in order.
    pub fn iter(&self) -> std::slice::ChunksExact<'a, T> {
        self.data.chunks_exact(self.columns)
    }

    /// The numbers, row after row.
    pub fn data(&self) -> &'a [T] {
        self.data
    }

    /// Requires this many columns.
    pub fn expect_columns(&self, expected: usize, why: &'static str) -> Result<()> {
        match self.columns == expected {
            true => Ok(()),
            false => Err(self.shape_error("columns", self.columns, expected, why)),
        }
    }

    /// Requires this many rows.
    pub fn expect_rows(&self, expected: usize, why: &'static str) -> Result<()> {
        match self.len() == expected {
            true => Ok(()),
            false => Err(self.shape_error("rows", self.len(), expected, why)),
        }
    }

    /// Requires this many rows or more.
    pub fn expect_rows_from(&self, least: usize, why: &'static str) -> Result<()> {
        match self.len() >= least {
            true => Ok(()),
            false => Err(self.shape_error("rows", self.len(), least, why)),
        }
    }

    /// Requires every number to be finite.
    pub fn expect_finite(&self) -> Result<()> {
        match self.data.iter().position(|&v| !v.into().is_finite()) {
            None => Ok(()),
            Some(i) => Err(Error::NotFinite {
                name: self.name,
                row: i / self.columns,
                column: i % self.columns,
                value: self.data[i].into(),
            }),
        }
    }

    fn shape_error(
        &self,
        unit: &'static str,
        found: usize,
        expected: usize,
        why: &'static str,
    ) -> Error {
        Error::Shape { name: self.name, unit, found, expected, why }
    }
}
