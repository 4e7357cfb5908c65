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

/// A name for another column beside these: this one, with as many underscores as tell it from them.
pub fn free_name(name: &str, names: &[impl AsRef<str>]) -> String {
    let mut free = name.to_owned();
    while names.iter().any(|name| name.as_ref() == free) {
        free.push('_');
    }
    free
}

#[cfg(test)]
mod tests {
    use super::free_name;

    #[test]
    fn the_columns_names_differ() {
        assert_eq!(free_name("log_density", &["a"]), "log_density");
        assert_eq!(free_name("log_density", &["log_density"]), "log_density_");
    }
}
