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

pub mod alpha;
mod draw;
pub(crate) mod dual;
mod law;
mod multilevel;
mod plan;
mod reduce;
mod settings;

pub use draw::{Draws, Pool, Replacement, Source};
pub use law::LevelLaw;
pub use multilevel::{Estimator, Target};
pub use plan::{Group, GroupMut, Plan, Term};
pub use reduce::reduce;
pub use settings::{Blocks, Coupling, Difference, Levels, Method, Named, Settings, Tails};
