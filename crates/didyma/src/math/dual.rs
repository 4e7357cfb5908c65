//! Numbers that carry their derivative, for exact gradients and exact minima of short formulas.

use std::ops::{Add, Div, Mul, Neg, Sub};

/// A value and its derivative with respect to one variable.
#[derive(Clone, Copy, Debug)]
pub struct Dual {
    /// The value.
    pub value: f64,
    /// Its derivative.
    pub slope: f64,
}

impl Dual {
    /// The variable itself.
    pub fn variable(value: f64) -> Self {
        Self { value, slope: 1.0 }
    }

    /// e to this power.
    pub fn exp(self) -> Self {
        let value = self.value.exp();
        Self { value, slope: value * self.slope }
    }

    /// 2 to this power.
    pub fn exp2(self) -> Self {
        let value = self.value.exp2();
        Self { value, slope: value * std::f64::consts::LN_2 * self.slope }
    }

    /// The natural logarithm.
    pub fn ln(self) -> Self {
        Self { value: self.value.ln(), slope: self.slope / self.value }
    }

    /// The square.
    pub fn square(self) -> Self {
        self * self
    }
}

impl From<f64> for Dual {
    fn from(value: f64) -> Self {
        Self { value, slope: 0.0 }
    }
}

impl Neg for Dual {
    type Output = Self;
    fn neg(self) -> Self {
        Self { value: -self.value, slope: -self.slope }
    }
}

impl<T: Into<Dual>> Add<T> for Dual {
    type Output = Self;
    fn add(self, other: T) -> Self {
        let other = other.into();
        Self { value: self.value + other.value, slope: self.slope + other.slope }
    }
}

impl<T: Into<Dual>> Sub<T> for Dual {
    type Output = Self;
    fn sub(self, other: T) -> Self {
        self + -other.into()
    }
}

impl<T: Into<Dual>> Mul<T> for Dual {
    type Output = Self;
    fn mul(self, other: T) -> Self {
        let other = other.into();
        let slope = self.slope * other.value + self.value * other.slope;
        Self { value: self.value * other.value, slope }
    }
}

impl<T: Into<Dual>> Div<T> for Dual {
    type Output = Self;
    fn div(self, other: T) -> Self {
        let other = other.into();
        let value = self.value / other.value;
        Self { value, slope: (self.slope - value * other.slope) / other.value }
    }
}

impl std::iter::Sum for Dual {
    fn sum<I: Iterator<Item = Self>>(terms: I) -> Self {
        terms.fold(Self::from(0.0), |sum, term| sum + term)
    }
}

/// Where a function with one minimum between `low` and `high` has it: the zero of its slope, by
/// bisection to the last bit, or an end if the slope has one sign.
pub(crate) fn minimise(low: f64, high: f64, function: impl Fn(Dual) -> Dual) -> f64 {
    let (mut low, mut high) = (low, high);
    loop {
        let middle = 0.5 * (low + high);
        if middle <= low || middle >= high {
            return middle;
        }
        match function(Dual::variable(middle)).slope > 0.0 {
            true => high = middle,
            false => low = middle,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slopes_are_those_of_calculus() {
        let f = |x: Dual| (x.exp() * x.exp2() - x.ln() / (x.square() + 1.0)) * 3.0;
        let (x, h) = (0.7, 1e-6);
        let difference = (f(Dual::from(x + h)).value - f(Dual::from(x - h)).value) / (2.0 * h);
        // Rounding: ε |f| / h = 2e-9.
        assert!((f(Dual::variable(x)).slope - difference).abs() < 1e-8);
    }

    #[test]
    fn a_minimum_is_found_to_the_last_bits() {
        let found = minimise(0.0, 9.0, |x| (x - 2.0f64.sqrt()).square() + 1.0);
        assert!((found - 2.0f64.sqrt()).abs() < 4e-16);
        assert!(minimise(1.0, 2.0, |x| -x) > 2.0 - 1e-15);
    }
}
