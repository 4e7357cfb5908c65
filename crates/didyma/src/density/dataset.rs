//! The columns that training reads: θ, x and log p(θ), checked once.

use crate::error::{Error, Result};
use crate::rows::Rows;

/// Simulations: row i is θ_i, the x_i that the simulator gave for it, and log p(θ_i).
#[derive(Clone, Debug)]
pub struct Dataset {
    theta: Vec<f32>,
    x: Vec<f32>,
    log_prior: Vec<f64>,
    theta_dim: usize,
    x_dim: usize,
}

impl Dataset {
    /// Copies the columns; refuses other lengths and anything that is not finite.
    pub fn new(theta: Rows<f32>, x: Rows<f32>, log_prior: &[f64]) -> Result<Self> {
        theta.expect_finite()?;
        x.expect_finite()?;
        x.expect_rows(theta.len(), "one for each row of theta")?;
        let (name, why) = ("log_prior", "one for each row of theta");
        if log_prior.len() != theta.len() {
            let (found, expected) = (log_prior.len(), theta.len());
            return Err(Error::Shape { name, unit: "numbers", found, expected, why });
        }
        if let Some(row) = log_prior.iter().position(|l| !l.is_finite()) {
            return Err(Error::NotFinite { name, row, column: 0, value: log_prior[row] });
        }
        Ok(Self {
            theta: theta.data().to_vec(),
            x: x.data().to_vec(),
            log_prior: log_prior.to_vec(),
            theta_dim: theta.columns(),
            x_dim: x.columns(),
        })
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.log_prior.len()
    }

    /// Whether there is no row.
    pub fn is_empty(&self) -> bool {
        self.log_prior.is_empty()
    }

    /// All θ.
    pub fn theta(&self) -> Rows<'_, f32> {
        Rows::new("theta", &self.theta, self.theta_dim).expect("checked when it was made")
    }

    /// All x.
    pub fn x(&self) -> Rows<'_, f32> {
        Rows::new("x", &self.x, self.x_dim).expect("checked when it was made")
    }

    /// log p(θ) of every row.
    pub fn log_prior(&self) -> &[f64] {
        &self.log_prior
    }
}
