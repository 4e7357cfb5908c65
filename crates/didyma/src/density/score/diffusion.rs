//! The variance-preserving diffusion: how much of θ is left at a time, and how much noise there is.
//!
//! dθ = −½ β(t) θ dt + √β(t) dW on \[0, 1\] with β(t) = β₀ + t (β₁ − β₀) has θ(t) = m θ(0) + std · noise with
//!
//! ```text
//! log m = −¼ t² (β₁ − β₀) − ½ t β₀,    std² = 1 − m²
//! ```

const BETA_0: f64 = 0.01;
const BETA_1: f64 = 10.0;

/// The earliest time that the network is trained at: nearer to 0 the target ε / std is nearly all noise.
pub(crate) const TRAINED_FROM: f64 = 1e-4;
/// Where samples are taken to be data: noise of standard deviation 3·10⁻⁴ is left.
pub(super) const END: f64 = 1e-5;

/// What the diffusion has made of θ at some time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moment {
    /// m, the factor of θ.
    pub mean: f64,
    /// The standard deviation of the noise.
    pub std: f64,
}

impl Moment {
    /// At time t from 0 to 1.
    ///
    /// ```
    /// use didyma::score::Moment;
    /// let Moment { mean, std } = Moment::at(0.5);
    /// assert!((mean - 0.534259).abs() < 5e-7 && (std - 0.845321).abs() < 5e-7);
    /// ```
    pub fn at(t: f64) -> Self {
        let log_mean = -0.25 * t * t * (BETA_1 - BETA_0) - 0.5 * t * BETA_0;
        Self { mean: log_mean.exp(), std: (-(2.0 * log_mean).exp_m1()).sqrt() }
    }

    /// Where std / mean is this: the mean is 1 / √(1 + ratio²), since mean² + std² = 1.
    pub(super) fn of_ratio(ratio: f64) -> Self {
        let mean = 1.0 / ratio.hypot(1.0);
        Self { mean, std: ratio * mean }
    }

    /// std / mean, which rises with time.
    pub(super) fn ratio(&self) -> f64 {
        self.std / self.mean
    }
}
