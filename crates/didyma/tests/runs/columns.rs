//! Moments of the columns of a table, for several tests.

/// Mean and standard deviation (n − 1) of each column.
pub fn moments(rows: &[f64], columns: usize) -> (Vec<f64>, Vec<f64>) {
    let n = (rows.len() / columns) as f64;
    let column = |k: usize| rows.iter().skip(k).step_by(columns).copied();
    let mean: Vec<f64> = (0..columns).map(|k| column(k).sum::<f64>() / n).collect();
    let sd = |k: usize| (column(k).map(|v| (v - mean[k]).powi(2)).sum::<f64>() / (n - 1.0)).sqrt();
    let sd = (0..columns).map(sd).collect();
    (mean, sd)
}
