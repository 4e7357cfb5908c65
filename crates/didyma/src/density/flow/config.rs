//! The shape of a flow.

use crate::error::{Error, Result};
use crate::network::kernel::{MIN_BIN, SplineShape};
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
