//! A dataset as a flow reads it.

use super::{Scaling, SplineFlow};
use crate::dataset::Dataset;
use crate::error::Result;
use crate::rows::Rows;

/// The columns of a dataset behind the scalings of a flow, so that no step of training scales them again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ScaledData {
    /// θ, scaled, row after row.
    pub theta: Vec<f32>,
    /// x, scaled, row after row.
    pub x: Vec<f32>,
    /// log p(θ) of every row, as it was.
    pub log_prior: Vec<f64>,
}

impl SplineFlow {
    /// A dataset as this flow reads it; refuses one of other dimensions.
    pub fn scaled_data(&self, data: &Dataset) -> Result<ScaledData> {
        data.theta().expect_columns(self.config.theta_dim, "theta_dim of the flow")?;
        data.x().expect_columns(self.config.x_dim, "x_dim of the flow")?;
        let scaled = |rows: Rows, scaling: &Scaling| {
            rows.iter().flat_map(|row| scaling.apply::<f32>(row)).collect()
        };
        Ok(ScaledData {
            theta: scaled(data.theta(), &self.theta),
            x: scaled(data.x(), &self.x),
            log_prior: data.log_prior().to_vec(),
        })
    }
}
