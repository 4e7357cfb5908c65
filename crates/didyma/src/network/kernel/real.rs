//! The two kinds of number that the flow and its kernels are written for.

use super::Kernels;
use std::sync::OnceLock;

mod sealed {
    pub trait Sealed {}
    impl Sealed for f32 {}
    impl Sealed for f64 {}
}

/// Environment variable that picks the `f32` kernels by name, to compare them: `scalar`,
/// `portable`, `avx2` or `avx512`. A name that this CPU does not have is ignored.
pub const KERNELS_VARIABLE: &str = "DIDYMA_KERNELS";

/// `f32`, in which models are trained and used, or `f64`, in which their gradients are checked.
pub trait Real:
    sealed::Sealed
    + num_traits::Float
    + num_traits::NumAssign
    + std::iter::Sum
    + std::fmt::Debug
    + Default
    + Send
    + Sync
    + 'static
{
    /// The fastest kernels on this CPU for this kind of number.
    fn kernels() -> &'static Kernels<Self>;
    /// The nearest number of this kind.
    fn of(value: f64) -> Self;
    /// The same number as `f64`.
    fn f64(self) -> f64;
    /// ln(1 + eˣ) without overflow.
    fn softplus(self) -> Self {
        self.max(Self::zero()) + (-self.abs()).exp().ln_1p()
    }
    /// 1 / (1 + e⁻ˣ), the derivative of [`Real::softplus`].
    fn sigmoid(self) -> Self {
        Self::one() / (Self::one() + (-self).exp())
    }
}

impl Real for f32 {
    fn kernels() -> &'static Kernels<f32> {
        static CHOSEN: OnceLock<&'static Kernels<f32>> = OnceLock::new();
        CHOSEN.get_or_init(|| {
            let wanted = std::env::var(KERNELS_VARIABLE).ok();
            let is_wanted = |k: &&Kernels<f32>| wanted.as_deref() == Some(k.name);
            (Kernels::available().find(is_wanted))
                .or_else(|| Kernels::available().next())
                .expect("the scalar kernels run everywhere")
        })
    }
    fn of(value: f64) -> f32 {
        value as f32
    }
    fn f64(self) -> f64 {
        f64::from(self)
    }
}

impl Real for f64 {
    fn kernels() -> &'static Kernels<f64> {
        Kernels::scalar()
    }
    fn of(value: f64) -> f64 {
        value
    }
    fn f64(self) -> f64 {
        self
    }
}
