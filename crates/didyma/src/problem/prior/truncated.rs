//! A normal law between two bounds, with the digits that its tails need.

use crate::math::normal;

/// The law of mean + sd·t, where t is standard normal between `from` and `to`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Truncated {
    pub mean: f64,
    pub sd: f64,
    from: f64,
    to: f64,
}

impl Truncated {
    /// A law between these bounds, each of which may be infinite.
    pub(super) fn new(mean: f64, sd: f64, (low, high): (f64, f64)) -> Self {
        Self { mean, sd, from: (low - mean) / sd, to: (high - mean) / sd }
    }

    /// The share of the normal law that lies between the bounds.
    pub(super) fn mass(&self) -> f64 {
        between(self.from, self.to)
    }

    pub(super) fn log_density(&self, value: f64) -> f64 {
        let t = (value - self.mean) / self.sd;
        normal::log_density(t) - self.sd.ln() - self.mass().ln()
    }

    /// The standard normal z that has as much of its law below as the value has of this one.
    pub(super) fn z(&self, value: f64) -> f64 {
        let t = (value - self.mean) / self.sd;
        let (below, above) = (between(self.from, t), between(t, self.to));
        match below < above {
            true => normal::quantile(below / self.mass()),
            false => -normal::quantile(above / self.mass()),
        }
    }

    /// The value of a z.
    pub(super) fn value(&self, z: f64) -> f64 {
        let below = normal::distribution(self.from) + normal::distribution(z) * self.mass();
        let above = normal::distribution(-self.to) + normal::distribution(-z) * self.mass();
        let t = match below < above {
            true => normal::quantile(below),
            false => -normal::quantile(above),
        };
        self.mean + self.sd * t.clamp(self.from, self.to)
    }
}

/// Φ(to) − Φ(from), from the tail in which the difference keeps its digits.
fn between(from: f64, to: f64) -> f64 {
    match from > 0.0 {
        true => normal::distribution(-from) - normal::distribution(-to),
        false => normal::distribution(to) - normal::distribution(from),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// z and the value are inverse, and the density is the derivative of the share below, near and far in the tails.
    #[test]
    fn the_bijection_and_the_density_agree() {
        let inf = f64::INFINITY;
        for bounds in [(0.0, inf), (-inf, 0.5), (-1.0, 2.0), (3.0, 5.0), (-7.0, -6.0)] {
            let law = Truncated::new(0.4, 1.3, bounds);
            for z in [-4.0, -1.0, -0.1, 0.0, 0.7, 2.0, 4.0] {
                let value = law.value(z);
                assert!(bounds.0 < value && value < bounds.1, "{bounds:?}, {z}: {value}");
                // Digits of the value are lost where the law is much narrower than its distance from the mean.
                assert!((law.z(value) - z).abs() < 1e-8, "{bounds:?}, {z}: {}", law.z(value));
                let h = 1e-5 * (1.0 + value.abs());
                let share = |v: f64| between(law.from, (v - law.mean) / law.sd) / law.mass();
                if bounds.0 < value - h && value + h < bounds.1 {
                    let slope = (share(value + h) - share(value - h)) / (2.0 * h);
                    let density = law.log_density(value).exp();
                    // A difference of second order: its error is of the order h², and that of rounding 1e-16/h.
                    assert!((slope / density - 1.0).abs() < 1e-5, "{bounds:?}, {z}");
                }
            }
        }
    }
}
