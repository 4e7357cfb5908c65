//! Numbers by column, and their moments.

/// Numbers by column.
pub type Columns = Vec<Vec<f64>>;

/// Rows of `dim` numbers, column by column.
pub fn columns(rows: &[f32], dim: usize) -> Columns {
    (0..dim).map(|i| rows.iter().skip(i).step_by(dim).map(|&v| f64::from(v)).collect()).collect()
}

/// Mean and standard deviation.
pub fn moments(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt())
}
