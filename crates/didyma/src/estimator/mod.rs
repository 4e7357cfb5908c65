//! What a training step computes: groups of atoms that share an observation, and how they reduce.
//!
//! For one observation x and a group of parameters ("atoms") θ_0, θ_1, … let
//! u_j = log q(θ_j | x) − log p(θ_j). Every loss of the project is a sum over groups
//!
//! ```text
//! Σ over groups [ − own · log q(θ_0 | x) + weight · T(u) ]
//! ```
//!
//! with T the log-mean-exp of u, or the antithetic difference of log-mean-exps: all of u, minus half of
//! that of its first half and half of that of its second ([`Term`]). Maximum likelihood is own = 1,
//! weight = 0; the nested estimator of the normalising constant is a group of inner samples with
//! weight 1. A [`Plan`] says which; [`reduce()`] gives value and derivative. Neither knows the flow.

mod plan;
mod reduce;

pub use plan::{Group, Plan, Term};
pub use reduce::reduce;
