//! Numbers by column.

/// Numbers by column.
pub type Columns = Vec<Vec<f64>>;

/// Rows of `dim` numbers, column by column.
pub fn columns(rows: &[f64], dim: usize) -> Columns {
    (0..dim).map(|i| rows.iter().skip(i).step_by(dim).copied().collect()).collect()
}
