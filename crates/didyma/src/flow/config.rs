//! The shape of a flow, and the affine maps that bring θ and x to unit scale before it.

use crate::error::{Error, Result};
use crate::kernel::{MIN_BIN, SplineShape};
use crate::rows::Rows;
use serde::{Deserialize, Serialize};

/// The shape of a conditional spline flow; [`FlowConfig::new`] gives the paper's.
///
/// ```
/// use didyma::FlowConfig;
/// let config = FlowConfig { layers: 5, ..FlowConfig::new(4, 9) };
/// assert_eq!((config.units, config.bins, config.bound), (50, 10, 20.0));
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FlowConfig {
    /// D, the dimension of θ.
    pub theta_dim: usize,
    /// C, the dimension of x.
    pub x_dim: usize,
    /// Coupling layers, each followed by a linear layer.
    pub layers: usize,
    /// Residual blocks of a conditioner.
    pub blocks: usize,
    /// Units of a conditioner.
    pub units: usize,
    /// Bins of a spline.
    pub bins: usize,
    /// The splines act on \[−bound, bound\].
    pub bound: f64,
}

impl FlowConfig {
    /// The paper's shape for θ of `theta_dim` and x of `x_dim` numbers.
    pub fn new(theta_dim: usize, x_dim: usize) -> Self {
        Self { theta_dim, x_dim, layers: 8, blocks: 2, units: 50, bins: 10, bound: 20.0 }
    }

    /// Refuses shapes that no flow can have.
    pub fn check(&self) -> Result<()> {
        let largest_bins = (1.0 / MIN_BIN) as usize - 1;
        for (name, value, low, high, expected) in [
            ("theta_dim", self.theta_dim, 1, 1 << 10, "between 1 and 1024"),
            ("x_dim", self.x_dim, 1, 1 << 16, "between 1 and 65536"),
            ("layers", self.layers, 1, 1 << 8, "between 1 and 256"),
            ("blocks", self.blocks, 0, 1 << 8, "between 0 and 256"),
            ("units", self.units, 1, 1 << 12, "between 1 and 4096"),
            ("bins", self.bins, 2, largest_bins, "between 2 and 999"),
        ] {
            if !(low..=high).contains(&value) {
                return Err(Error::setting(name, value, expected));
            }
        }
        if !(self.bound.is_finite() && self.bound >= 1e-3 && self.bound <= 1e6) {
            return Err(Error::setting("bound", self.bound, "between 0.001 and 1000000"));
        }
        Ok(())
    }

    /// The splines of this flow. Width and height logits are divided by √units, as in nflows.
    pub fn spline(&self) -> SplineShape {
        SplineShape {
            bins: self.bins,
            bound: self.bound,
            logit_scale: 1.0 / (self.units as f64).sqrt(),
        }
    }
}

/// v ↦ (v − mean) / scale, number by number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Scaling {
    /// What is subtracted.
    pub mean: Vec<f64>,
    /// What is divided by, all positive.
    pub scale: Vec<f64>,
}

impl Scaling {
    /// The identity on `dim` numbers.
    pub fn identity(dim: usize) -> Self {
        Self { mean: vec![0.0; dim], scale: vec![1.0; dim] }
    }

    /// Mean and standard deviation of each column; a column that never changes keeps its scale.
    pub fn of(rows: Rows) -> Result<Self> {
        rows.expect_finite()?;
        if rows.is_empty() {
            return Err(Error::setting("the number of rows to scale by", 0, "at least 1"));
        }
        let mut scaling = Self::identity(rows.columns());
        let n = rows.len() as f64;
        for column in 0..rows.columns() {
            let values = || rows.iter().map(|row| f64::from(row[column]));
            let mean = values().sum::<f64>() / n;
            let deviation = (values().map(|v| (v - mean).powi(2)).sum::<f64>() / n).sqrt();
            scaling.mean[column] = mean;
            if deviation > 1e-6 * mean.abs().max(f64::MIN_POSITIVE) {
                scaling.scale[column] = deviation;
            }
        }
        Ok(scaling)
    }

    /// Σ log scale, which a density in the scaled space loses.
    pub fn log_volume(&self) -> f64 {
        self.scale.iter().map(|s| s.ln()).sum()
    }

    pub(super) fn check(&self, name: &'static str, dim: usize) -> Result<()> {
        for found in [self.mean.len(), self.scale.len()] {
            if found != dim {
                let why = "one for each dimension";
                return Err(Error::Shape { name, unit: "numbers", found, expected: dim, why });
            }
        }
        let bad_mean = self.mean.iter().find(|m| !m.is_finite());
        let bad_scale = self.scale.iter().find(|&&s| !(s.is_finite() && s > 0.0));
        match bad_mean.or(bad_scale) {
            Some(value) => Err(Error::setting(name, value, "finite, and every scale positive")),
            None => Ok(()),
        }
    }
}
