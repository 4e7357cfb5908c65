//! Observations from a file, at which a run's posterior is asked.

use super::columns_of;
use crate::output::tell;
use crate::wording::sentence;
use anyhow::anyhow;
use didyma::run::RunDir;
use didyma::{Error, Posterior, Rows};
use std::path::Path;

/// Observations, one in each row.
pub struct Observations {
    x: Vec<f64>,
    summaries: usize,
}

impl Observations {
    /// The rows of a file, or the run's own observation. A warning tells if one is outside of all simulations.
    pub fn read(run: &RunDir, posterior: &Posterior, file: Option<&Path>) -> anyhow::Result<Self> {
        let own = posterior.observation();
        let Some(path) = file else { return Ok(Self { x: own.to_vec(), summaries: own.len() }) };
        let names = run.manifest().task()?.summaries;
        let columns: Vec<&str> = names.iter().map(String::as_str).collect();
        let found = Self { x: columns_of("--x", path, &columns)?, summaries: columns.len() };
        if let Some(words) = posterior.untrained(found.rows()?, &names) {
            tell(&format!("warning: {words}"));
        }
        Ok(found)
    }

    pub fn rows(&self) -> didyma::Result<Rows<'_>> {
        Rows::new("x", &self.x, self.summaries)
    }

    /// The error with the number of its row as files count it, from 1.
    pub fn located(&self, error: Error) -> anyhow::Error {
        match error {
            Error::AtRow { error, .. } if self.x.len() == self.summaries => (*error).into(),
            Error::AtRow { row, error, .. } => {
                anyhow!("--x, observation {}: {}", row + 1, sentence(&error))
            }
            other => other.into(),
        }
    }
}
