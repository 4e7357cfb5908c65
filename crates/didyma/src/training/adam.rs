//! Adam (Kingma & Ba 2015) with weight decay and a clipped gradient.

use crate::error::{Error, Result};
use crate::network::kernel::AdamStep;
use serde::{Deserialize, Serialize};

/// How weights are drawn towards zero.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Decay {
    /// λ w is added to the gradient, before the moments: L2 as in the paper (PyTorch's `Adam`).
    Coupled(f64),
    /// Weights shrink by the factor 1 − rate · λ (PyTorch's `AdamW`).
    Decoupled(f64),
}

/// Settings of the optimiser; the default is the paper's code.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Weight decay.
    pub decay: Decay,
    /// The gradient's norm is cut down to this; infinity leaves it alone.
    pub clip: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        Self { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, decay: Decay::Coupled(1e-4), clip: 5.0 }
    }
}

impl AdamConfig {
    /// Added to the gradient's norm before the clip is divided by it (PyTorch's `clip_grad_norm_`).
    pub const NORM_FLOOR: f64 = 1e-6;

    /// Refuses settings outside their range.
    pub fn check(&self) -> Result<()> {
        let (Decay::Coupled(decay) | Decay::Decoupled(decay)) = self.decay;
        for (name, value, ok, expected) in [
            ("beta1", self.beta1, (0.0..1.0).contains(&self.beta1), "at least 0 and below 1"),
            ("beta2", self.beta2, (0.0..1.0).contains(&self.beta2), "at least 0 and below 1"),
            ("epsilon", self.epsilon, self.epsilon > 0.0 && self.epsilon.is_finite(), "positive"),
            ("decay", decay, decay >= 0.0 && decay.is_finite(), "zero or positive"),
            ("clip", self.clip, self.clip > 0.0, "positive (inf for no clipping)"),
        ] {
            if !ok {
                return Err(Error::setting(name, value, expected));
            }
        }
        Ok(())
    }

    /// Refuses a rate that can only destroy the weights: Adam moves one by about the rate.
    pub fn check_rate(learning_rate: f64) -> Result<()> {
        match (0.0..=1.0).contains(&learning_rate) {
            true => Ok(()),
            false => Err(Error::setting("learning_rate", learning_rate, "between 0 and 1")),
        }
    }

    /// The numbers of step `t`, from 1, for a gradient of this norm.
    ///
    /// The gradient's scale, min(1, clip / (norm + [`NORM_FLOOR`](Self::NORM_FLOOR))), is the only one that depends on
    /// the norm: an engine that learns the norm elsewhere takes the others from here, with any norm.
    pub fn numbers(&self, t: u64, learning_rate: f64, gradient_norm: f64) -> AdamStep {
        let (coupled_decay, shrink) = match self.decay {
            Decay::Coupled(decay) => (decay, 1.0),
            Decay::Decoupled(decay) => (0.0, 1.0 - learning_rate * decay),
        };
        AdamStep {
            gradient_scale: (self.clip / (gradient_norm + Self::NORM_FLOOR)).min(1.0),
            coupled_decay,
            shrink,
            beta1: [self.beta1, 1.0 - self.beta1],
            beta2: [self.beta2, 1.0 - self.beta2],
            rate: learning_rate / (1.0 - self.beta1.powf(t as f64)),
            v_scale: 1.0 / (1.0 - self.beta2.powf(t as f64)),
            epsilon: self.epsilon,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::network::kernel::{AdamJob, Kernels, Real};

    /// The textbook's loop in f64, as PyTorch's `Adam` and `AdamW` document it.
    fn reference(config: &AdamConfig, rate: f64, gradients: &[[f64; 3]]) -> [f64; 3] {
        let (mut w, mut m, mut v) = ([0.5, -1.0, 2.0], [0.0; 3], [0.0; 3]);
        for (t, g) in (1..).zip(gradients) {
            let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
            let clip = (config.clip / (norm + 1e-6)).min(1.0);
            for i in 0..3 {
                let mut g = g[i] * clip;
                match config.decay {
                    Decay::Coupled(decay) => g += decay * w[i],
                    Decay::Decoupled(decay) => w[i] -= rate * decay * w[i],
                }
                m[i] = config.beta1 * m[i] + (1.0 - config.beta1) * g;
                v[i] = config.beta2 * v[i] + (1.0 - config.beta2) * g * g;
                let (m_hat, v_hat) =
                    (m[i] / (1.0 - config.beta1.powi(t)), v[i] / (1.0 - config.beta2.powi(t)));
                w[i] -= rate * m_hat / (v_hat.sqrt() + config.epsilon);
            }
        }
        w
    }

    fn found<F: Real>(
        kernels: &Kernels<F>,
        config: &AdamConfig,
        rate: f64,
        gs: &[[f64; 3]],
    ) -> [f64; 3] {
        let (mut w, mut m, mut v) = ([0.5, -1.0, 2.0].map(F::of), [F::zero(); 3], [F::zero(); 3]);
        for (t, g) in (1..).zip(gs) {
            let norm = g.iter().map(|g| g * g).sum::<f64>().sqrt();
            let step = config.numbers(t, rate, norm);
            let (weights, gradient) = (&mut w[..], &g.map(F::of)[..]);
            (kernels.adam)(AdamJob { weights, gradient, m: &mut m, v: &mut v, step });
        }
        w.map(F::f64)
    }

    #[test]
    fn five_steps_are_those_of_the_textbook() {
        // The last parameter has a gradient so small that ε matters.
        let gradients = [1.0, -0.4, 7.0, 0.2, -3.0].map(|g| [g, 1.0 - g, 1e-8 * g]);
        for decay in [Decay::Coupled(0.0), Decay::Coupled(0.1), Decay::Decoupled(0.3)] {
            for clip in [0.9, f64::INFINITY] {
                let config = AdamConfig { decay, clip, epsilon: 1e-7, ..AdamConfig::default() };
                let expected = reference(&config, 0.01, &gradients);
                for (found, expected) in
                    found(Kernels::<f64>::scalar(), &config, 0.01, &gradients).iter().zip(expected)
                {
                    assert!((found - expected).abs() < 1e-14, "{config:?}: {found} {expected}");
                }
                for kernels in Kernels::<f32>::available() {
                    let found = found(kernels, &config, 0.01, &gradients);
                    for (found, expected) in found.iter().zip(expected) {
                        // Five roundings of a weight of size 2, and 1e-6 of five moves of 0.01.
                        assert!((found - expected).abs() < 5.0 * 2.4e-7, "{found} {expected}");
                    }
                }
            }
        }
    }

    /// The moments of a weight whose gradient has vanished reach 0 without passing through subnormal numbers.
    #[test]
    fn moments_settle_at_zero() {
        for kernels in Kernels::<f32>::available() {
            let (mut w, mut m, mut v) = ([1.0f32], [0.0f32], [0.0f32]);
            for t in 1..=80_000 {
                let g = if t == 1 { 1e-3 } else { 0.0 };
                let step = AdamConfig::default().numbers(t, 1e-3, f64::from(g));
                (kernels.adam)(AdamJob {
                    weights: &mut w,
                    gradient: &[g],
                    m: &mut m,
                    v: &mut v,
                    step,
                });
                assert!(!m[0].is_subnormal() && !v[0].is_subnormal(), "{} {t}", kernels.name);
            }
            assert_eq!((m[0], v[0]), (0.0, 0.0), "{}", kernels.name);
        }
    }
}
