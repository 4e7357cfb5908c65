//! What a training step computes: the loss of sequential neural posterior estimation and its gradient.
//!
//! # The loss
//! Outer samples (θ, x) come from the proposal p̃ and the simulator. With g(x, θ) = q(θ | x) / p(θ) and
//! Z(x) = E_{θ'~p̃} g(x, θ'), the loss whose minimum is the posterior is
//!
//! ```text
//! L = E[ −log g(x, θ) + log Z(x) ]
//! ```
//!
//! In round 1 the proposal is the prior and Z = 1: what is left is −log q, maximum likelihood. From round
//! 2 on Z is a nested expectation, estimated by inner samples θ'_1, θ'_2, … of p̃, independent of (θ, x).
//! With u_j = log g(x, θ'_j) and LME(u) = log (1/M Σ exp u_j), a query with M of them is
//!
//! ```text
//! ψ_M = −u_0 + LME(u_1 … u_M)            ∂ψ_M/∂u_0 = −1,  ∂ψ_M/∂u_j = softmax_j
//! ```
//!
//! whose mean is L − O(1/M). The derivative of the loss with respect to each log q is all that the flow
//! needs for the gradient ρ_M = ∇ψ_M: there is no automatic differentiation.
//!
//! # Levels
//! Let M_l = M₀ 2^l. The antithetic difference of level l takes one block of M_l inner samples and its
//! halves a, b:
//!
//! ```text
//! Δψ_l = LME(a ++ b) − ½ LME(a) − ½ LME(b)            ∂Δψ_l/∂u_j = softmax_j − ½ softmax_j of its half
//! ```
//!
//! The outer term cancels, and so does any constant in u; the weights sum to 0; Δψ_l ≥ 0 (the mean of
//! two numbers is not below their geometric mean). What is left is of second order: Δψ_l is O(1/M_l) and
//! its mean square O(M_l^(−2)) where moments allow. A half has the law of a block of level l − 1, so the
//! means telescope, E ψ_{M_m} + Σ_{j=m+1}^{J} E Δψ_j = E ψ_{M_J}, and a random level L makes them one
//! estimator:
//!
//! ```text
//! ru              Δψ_L / P(L),   with Δψ_0 = ψ_{M_0}
//! rr, grr         ψ_{M_m} + Σ_{j=m+1}^{L} Δψ_j / P(L ≥ j)
//! ```
//!
//! Without a top level the mean is L itself. `tru` and `tgrr` stop at a top level, and so does any method
//! whose level is capped, as it must be where inner samples come from a finite pool: its mean is then
//! that of nested APT with M_top samples, and [`Estimator::target`] says so.
//!
//! With **inclusive** coupling the outer θ is one more member of the fine block and of each half, I(B) =
//! LME(u_0 ++ B). The levels still telescope, to −u_0 + I: atomic APT with M_top + 1 atoms, whose minimiser
//! is the posterior for any number of atoms and which is bounded below by −log(M_top + 1), while the
//! excluded form can run away to ever narrower q. Its differences fall more slowly; do not use it without
//! a top level.
//!
//! # Plan and reduction
//! All of these are sums over groups of atoms that share one x,
//!
//! ```text
//! Σ over groups [ −own · log q(θ_0 | x) + Σ over terms weight · mean over blocks LME(block) ]
//! ```
//!
//! An [`Estimator`], made from [`Settings`], writes them into a [`Plan`] as row numbers and weights; a
//! [`Source`] gives the inner samples, with log-weights log p̃ − log r if they come from another law r;
//! [`reduce()`] turns the log-densities of a group into its loss and the derivatives. None of them knows
//! the flow. [`alpha`] says how the law of the level is chosen.

pub mod alpha;
mod bank;
mod choices;
mod draw;
mod law;
mod multilevel;
mod near;
mod plan;
mod reduce;
mod settings;

pub(crate) use settings::LARGEST_BLOCK;

pub use bank::{Bank, Stock};
pub use choices::{Alpha, Blocks, Coupling, Difference, Levels, Method, Tails, Target};
pub use draw::{Draws, Pool, Replacement, Source};
pub use law::LevelLaw;
pub use multilevel::Estimator;
pub use near::{Near, Neighbours};
pub use plan::{Group, GroupMut, Plan, Term, Thinning};
pub use reduce::{reduce, reduce_loss};
pub use settings::Settings;
