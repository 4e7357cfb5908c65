//! The columns that training reads: θ, x and log p(θ), checked once; and parameters that nobody simulated.

use crate::error::{Error, Result};
use crate::rows::Rows;
use std::sync::Arc;

/// Simulations: row i is θ_i, the x_i that the simulator gave for it, and log p(θ_i). Rows after them may have no x: they are
/// inner samples, never contexts. Clones share the numbers.
#[derive(Clone, Debug)]
pub struct Dataset {
    columns: Arc<Columns>,
    theta_dim: usize,
    x_dim: usize,
}

#[derive(Clone, Debug)]
struct Columns {
    theta: Vec<f32>,
    x: Vec<f32>,
    log_prior: Vec<f64>,
}

impl Dataset {
    /// Copies the columns; refuses other lengths and anything that is not finite.
    pub fn new(theta: Rows<f32>, x: Rows<f32>, log_prior: &[f64]) -> Result<Self> {
        x.expect_finite()?;
        x.expect_rows(theta.len(), "one for each row of theta")?;
        let columns = Columns { theta: Vec::new(), x: x.data().to_vec(), log_prior: Vec::new() };
        let (theta_dim, x_dim) = (theta.columns(), x.columns());
        Self { columns: columns.into(), theta_dim, x_dim }.with_parameters(theta, log_prior)
    }

    /// Adds parameters without x after all rows.
    pub fn with_parameters(mut self, theta: Rows<f32>, log_prior: &[f64]) -> Result<Self> {
        theta.expect_columns(self.theta_dim, "parameters of the dataset")?;
        theta.expect_finite()?;
        let (name, why) = ("log_prior", "one for each row of theta");
        if log_prior.len() != theta.len() {
            let (found, expected) = (log_prior.len(), theta.len());
            return Err(Error::Shape { name, unit: "numbers", found, expected, why });
        }
        if let Some(row) = log_prior.iter().position(|l| !l.is_finite()) {
            return Err(Error::NotFinite { name, row, column: 0, value: log_prior[row] });
        }
        let columns = Arc::make_mut(&mut self.columns);
        columns.theta.extend_from_slice(theta.data());
        columns.log_prior.extend_from_slice(log_prior);
        Ok(self)
    }

    /// Number of rows, those without x among them.
    pub fn len(&self) -> usize {
        self.columns.log_prior.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All θ.
    pub fn theta(&self) -> Rows<'_, f32> {
        Rows::new("theta", &self.columns.theta, self.theta_dim).expect("checked when it was made")
    }

    /// All x, of the first rows.
    pub fn x(&self) -> Rows<'_, f32> {
        Rows::new("x", &self.columns.x, self.x_dim).expect("checked when it was made")
    }

    /// log p(θ) of every row.
    pub fn log_prior(&self) -> &[f64] {
        &self.columns.log_prior
    }
}
