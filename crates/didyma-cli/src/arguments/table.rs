//! Columns of a CSV file that an option names.

use anyhow::{Context, bail};
use didyma::storage::Table;
use std::path::Path;

/// The columns of these names in a file, or all of them in order if it has no header.
pub fn columns_of(option: &str, path: &Path, names: &[&str]) -> anyhow::Result<Vec<f64>> {
    let table = Table::read(path, false)?;
    match table.names.is_empty() {
        true if table.columns == names.len() => Ok(table.data),
        true => bail!(
            "{option}: {} has {} numbers on a line, but {} are needed: {}",
            path.display(),
            table.columns,
            names.len(),
            names.join(", ")
        ),
        false => table.select(names).with_context(|| {
            format!("{option}: {} needs the columns {}", path.display(), names.join(", "))
        }),
    }
}
